"""What ``settings:`` of a deployment of this plugin may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from omni_realtime.deployment import Deployment
from omni_realtime.engine.deployment_checks import with_engine_defaults
from omni_realtime.engine.voice_files import VoiceFiles

DEPLOY_CONFIG = "minicpmo_4_5_turn.yaml"
"""vLLM-Omni's own YAML for turns; its default for this model is for native duplex."""


class MinicpmoSettings(BaseModel):
    """The settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: dict[str, Any] = Field(default_factory=dict)
    """The engine's own, checked by its adapter."""
    reference_audio: Path | None = None
    """A WAV file of the voice that the model speaks with; by default the one that comes with the checkpoint."""
    voices: dict[str, Path] = Field(default_factory=dict)
    """More voices: WAV files by the name that a session chooses them with."""

    @property
    def voice_files(self) -> VoiceFiles:
        """The recordings of voices."""
        return VoiceFiles(default=self.reference_audio, named=self.voices)

    @property
    def is_remote(self) -> bool:
        """Whether a server over HTTP runs the model."""
        return self.engine.get("type") == "chat_completions"


def read_settings(deployment: Deployment) -> MinicpmoSettings:
    """The settings of a deployment.

    Raises:
        pydantic.ValidationError: if they are wrong.
    """
    return MinicpmoSettings.model_validate(dict(complete(deployment).settings))


def complete(deployment: Deployment) -> Deployment:
    """The deployment with what its engine needs for this model, where it says nothing else."""
    engine = deployment.settings.get("engine")
    if isinstance(engine, dict) and engine.get("type") == "vllm_omni":
        return with_engine_defaults(deployment, deploy_config=DEPLOY_CONFIG, tool_parser="hermes")
    return deployment
