"""What ``settings:`` of a deployment of this plugin may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from omni_realtime.deployment import Deployment
from omni_realtime.engine.deploy_config import parts_limit, read_deploy_config
from omni_realtime.engine.deployment_checks import with_engine_defaults

DEPLOY_CONFIG = "qwen3_omni_moe.yaml"
"""vLLM-Omni's own YAML for this model: thinker, talker and vocoder, for turns."""
TOOL_PARSER = "hermes"


class Qwen3OmniSettings(BaseModel):
    """The settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: dict[str, Any] = Field(default_factory=dict)
    """The engine's own, checked by its adapter."""

    @property
    def engine_type(self) -> str:
        """Which engine runs the model."""
        return str(self.engine.get("type"))

    @property
    def model(self) -> str:
        """A folder, or a name on the Hugging Face hub."""
        return str(self.engine.get("model"))

    @property
    def revision(self) -> str:
        """Of the model on the hub."""
        return str(self.engine_args.get("revision") or "main")

    @property
    def engine_args(self) -> Mapping[str, Any]:
        """Arguments of an engine in process."""
        return self.engine.get("engine_args") or {}

    @property
    def speaks(self) -> bool:
        """Whether the talker runs: vLLM itself has the thinker alone."""
        return self.engine_type != "vllm"

    @property
    def has_tools(self) -> bool:
        """Whether something parses tool calls: in process the parser that is named, over HTTP the server."""
        return self.engine_type == "chat_completions" or self.engine.get("tool_parser") is not None

    @property
    def audio_parts(self) -> int | None:
        """The most audio parts of one prompt, where the deployment sets a limit of its own."""
        return parts_limit(self._limits(), "audio")

    @property
    def image_parts(self) -> int | None:
        """The most images of one prompt, where the deployment sets a limit of its own; none loads no image encoder."""
        return parts_limit(self._limits(), "image")

    def _limits(self) -> Mapping[str, Any]:
        if self.engine_type == "vllm_omni":
            return read_deploy_config(self.engine).get_of_stage(0, "limit_mm_per_prompt") or {}
        return self.engine_args.get("limit_mm_per_prompt") or {}


def read_settings(deployment: Deployment) -> Qwen3OmniSettings:
    """The settings of a deployment.

    Raises:
        pydantic.ValidationError: if they are wrong.
    """
    return Qwen3OmniSettings.model_validate(dict(complete(deployment).settings))


def complete(deployment: Deployment) -> Deployment:
    """The deployment with what its engine needs for this model, where it says nothing else."""
    engine = deployment.settings.get("engine")
    match engine.get("type") if isinstance(engine, dict) else None:
        case "vllm_omni":
            return with_engine_defaults(deployment, deploy_config=DEPLOY_CONFIG, tool_parser=TOOL_PARSER)
        case "vllm":
            return with_engine_defaults(deployment, tool_parser=TOOL_PARSER)
    return deployment
