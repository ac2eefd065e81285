"""What ``settings:`` of a deployment of this plugin may say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from omni_realtime.deployment import Deployment
from omni_realtime.engine.deployment_checks import with_engine_defaults
from omni_realtime.engine.voice_files import VoiceFiles

DEPLOY_CONFIG = "mimo_audio.yaml"
"""vLLM-Omni's own YAML for this model."""
TOKENIZER_VARIABLE = "MIMO_AUDIO_TOKENIZER_PATH"
"""Where vLLM-Omni looks for the audio tokenizer, in this process and in those of its stages."""


class MimoAudioSettings(BaseModel):
    """The settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: dict[str, Any] = Field(default_factory=dict)
    """The engine's own, checked by its adapter."""
    audio_tokenizer: Path | None = None
    """The folder of MiMo-Audio-Tokenizer; by default what the environment's ``MIMO_AUDIO_TOKENIZER_PATH`` says."""
    voice_prompt: Path | None = None
    """A WAV file of the voice that the model speaks with; by default it chooses one."""
    voices: dict[str, Path] = Field(default_factory=dict)
    """More voices: WAV files by the name that a session chooses them with."""

    @property
    def voice_files(self) -> VoiceFiles:
        """The recordings of voices."""
        return VoiceFiles(default=self.voice_prompt, named=self.voices)

    @property
    def tokenizer_folder(self) -> Path | None:
        """The folder of the audio tokenizer, if one is told."""
        variable = os.environ.get(TOKENIZER_VARIABLE)
        return self.audio_tokenizer or (Path(variable) if variable else None)

    @property
    def is_remote(self) -> bool:
        """Whether a server over HTTP runs the model."""
        return self.engine.get("type") == "chat_completions"


def read_settings(deployment: Deployment) -> MimoAudioSettings:
    """The settings of a deployment.

    Raises:
        pydantic.ValidationError: if they are wrong.
    """
    return MimoAudioSettings.model_validate(dict(complete(deployment).settings))


def complete(deployment: Deployment) -> Deployment:
    """The deployment with what its engine needs for this model, where it says nothing else."""
    engine = deployment.settings.get("engine")
    if isinstance(engine, dict) and engine.get("type") == "vllm_omni":
        return with_engine_defaults(deployment, deploy_config=DEPLOY_CONFIG)
    return deployment
