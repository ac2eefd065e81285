"""Import of the heavy runtime packages, at start and not before."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from omni_realtime_local.weights import INSTALL_COMMAND

MODULES = {
    "faster_whisper": "faster-whisper",
    "onnxruntime": "onnxruntime",
    "piper": "piper-tts (GPL-3.0-or-later, runs in a process of its own)",
    "xllamacpp": "xllamacpp",
}
"""Distributions by the module that they bring."""


class MissingRuntimeError(Exception):
    """A runtime package cannot be imported."""


def load(module: str) -> Any:
    """Import a runtime package.

    Raises:
        MissingRuntimeError: if it or one of the system's libraries that it needs is missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if "libgomp" in str(error):
            raise MissingRuntimeError(f"{module} needs the system's library libgomp. On Debian: apt-get install libgomp1") from error
        raise MissingRuntimeError(f"{module} cannot be imported ({error}). Install it with: {INSTALL_COMMAND}") from error


def missing() -> list[str]:
    """Distributions that are not installed, without importing any."""
    return [distribution for module, distribution in MODULES.items() if importlib.util.find_spec(module) is None]


def onnx_session(path: Path) -> Any:
    """Return an ``onnxruntime.InferenceSession`` of a network, on one thread of the CPU."""
    onnxruntime = load("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
