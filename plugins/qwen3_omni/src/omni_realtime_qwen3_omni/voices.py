"""The voices that the talker was trained with."""

from __future__ import annotations

from functools import cache

from omni_realtime.deployment import Deployment
from omni_realtime_qwen3_omni.model_files import read_model_file
from omni_realtime_qwen3_omni.settings import Qwen3OmniSettings

VOICES = ("chelsie", "ethan", "aiden")
"""Those of Qwen/Qwen3-Omni-30B-A3B-Instruct: what counts where the configuration of the model is not on this machine yet."""


def voices_of(settings: Qwen3OmniSettings) -> tuple[str, ...]:
    """The names in ``talker_config.speaker_id`` of the model's configuration, in lower case; the first is the model's default."""
    return _voices(settings.model, settings.revision)


def speaker(voice: str | None, deployment: Deployment, settings: Qwen3OmniSettings) -> str:
    """The voice to speak with: the one that is asked for, else the deployment's, else the model's default.

    Clients may also name one of OpenAI's voices, which stand for the default.
    """
    names = voices_of(settings)
    wanted = (voice, deployment.session.get("audio", {}).get("output", {}).get("voice"))
    return next((name for name in wanted if name in names), names[0])


@cache
def _voices(model: str, revision: str) -> tuple[str, ...]:
    config = read_model_file(model, revision, "config.json")
    return tuple(name.lower() for name in config.get("talker_config", {}).get("speaker_id", {})) or VOICES
