"""The settings of vLLM."""

from __future__ import annotations

from typing import Literal

from omni_realtime.engine.vllm_common.settings import VllmSettings


class VllmEngineSettings(VllmSettings):
    """``settings.engine`` of a deployment on vLLM."""

    type: Literal["vllm"]
