"""Audio as vLLM-Omni gives it."""

from __future__ import annotations

from typing import Any

import numpy as np

from omni_realtime.chat import Samples

RATE_KEYS = ("output_sample_rate", "audio_sample_rate", "sample_rate", "sampling_rate", "sr")
"""The names under which stages tell their rate, in vLLM-Omni's order of preference."""

DEFAULT_RATE = 24000
"""What vLLM-Omni assumes where a stage names no rate."""


def samples_of(value: Any) -> Samples:
    """A tensor or array, or a list of them, of any shape and dtype, as mono float32: every sample once, in order."""
    pieces = value if isinstance(value, list | tuple) else [value]
    return np.concatenate([np.empty(0, np.float32), *(_flat(piece) for piece in pieces if piece is not None)])


def rate_of(payload: Any) -> int:
    """The rate in Hz that an output tells."""
    for key in RATE_KEYS:
        value = payload.get(key)
        if value is not None:
            last = value[-1] if isinstance(value, list | tuple) else value
            return int(last)
    return DEFAULT_RATE


def _flat(piece: Any) -> Samples:
    if hasattr(piece, "detach"):
        # numpy has no bfloat16, so a tensor turns to float32 on torch's side
        piece = piece.detach().cpu().float().numpy()
    return np.asarray(piece, dtype=np.float32).reshape(-1)
