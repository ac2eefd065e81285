"""The configuration files of the model, where they are on this machine already."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_model_file(model: str, revision: str, name: str) -> dict[str, Any]:
    """A JSON file of a model, in its folder or in the Hugging Face cache; empty where it is not on this machine yet."""
    for file in (Path(model) / name, _cached(model, revision) / name):
        if file.is_file():
            return dict(json.loads(file.read_text(encoding="utf-8")))
    return {}


def _cached(model: str, revision: str) -> Path:
    """Where the Hugging Face cache has a model, if it has it."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    folder = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser() / f"models--{model.replace('/', '--')}"
    named = folder / "refs" / revision
    return folder / "snapshots" / (named.read_text(encoding="utf-8").strip() if named.is_file() else revision)
