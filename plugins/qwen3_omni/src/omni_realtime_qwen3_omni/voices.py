"""The voices that the talker was trained with."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from omni_realtime.deployment import Deployment
from omni_realtime_qwen3_omni.settings import Qwen3OmniSettings

VOICES = ("chelsie", "ethan", "aiden")
"""Those of Qwen/Qwen3-Omni-30B-A3B-Instruct: what counts where the configuration of the model is not on this machine yet."""


def voices_of(settings: Qwen3OmniSettings) -> tuple[str, ...]:
    """The names in ``talker_config.speaker_id`` of the model's configuration, in lower case; the first is the model's default."""
    return _voices(str(settings.engine.get("model")), str(settings.engine_args.get("revision") or "main"))


def speaker(voice: str | None, deployment: Deployment, settings: Qwen3OmniSettings) -> str:
    """The voice to speak with: the one that is asked for, else the deployment's, else the model's default.

    Clients may also name one of OpenAI's voices, which stand for the default.
    """
    names = voices_of(settings)
    wanted = (voice, deployment.session.get("audio", {}).get("output", {}).get("voice"))
    return next((name for name in wanted if name in names), names[0])


@cache
def _voices(model: str, revision: str) -> tuple[str, ...]:
    config = _config(model, revision)
    return tuple(name.lower() for name in config.get("talker_config", {}).get("speaker_id", {})) or VOICES


def _config(model: str, revision: str) -> dict[str, Any]:
    for file in (Path(model) / "config.json", _cached(model, revision) / "config.json"):
        if file.is_file():
            return dict(json.loads(file.read_text(encoding="utf-8")))
    return {}


def _cached(model: str, revision: str) -> Path:
    """Where the Hugging Face cache has a model, if it has it."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    folder = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser() / f"models--{model.replace('/', '--')}"
    named = folder / "refs" / revision
    return folder / "snapshots" / (named.read_text(encoding="utf-8").strip() if named.is_file() else revision)
