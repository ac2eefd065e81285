"""The settings of vLLM-Omni."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from omni_realtime.engine.vllm_common.settings import VllmSettings


class VllmOmniSettings(VllmSettings):
    """``settings.engine`` of a deployment on vLLM-Omni."""

    type: Literal["vllm_omni"]
    deploy_config: str | None = None
    """vLLM-Omni's deploy YAML: a path, or the name of one that it ships; ``None`` for the model's default."""
    stage_overrides: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Engine arguments by stage number, over the deploy YAML."""
