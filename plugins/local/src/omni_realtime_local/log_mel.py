"""The log-mel spectrogram of Whisper, as smart-turn takes it: 80 bands of 25 ms frames, a frame every 10 ms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omni_realtime.chat import Samples

RATE = 16_000
FRAME = 400
HOP = 160
BANDS = 80

KNEE_HZ = 1000.0
"""Up to here Slaney's mel scale is linear, and logarithmic above."""
KNEE_MEL = 15.0
MELS_PER_OCTAVE = 27.0 * np.log(2.0) / np.log(6.4)

QUIETEST = 1e-10
RANGE = 8.0
"""Orders of magnitude below the loudest value that are kept."""


def log_mel(samples: Samples) -> NDArray[np.float32]:
    """Return the spectrogram of samples at 16 kHz, normalised first: shape ``(80, n // 160)``, values around -1 to 1.

    The scale is that of Whisper's own features (Radford et al. 2022, appendix), computed of a signal of mean 0 and variance 1.
    """
    normal = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
    padded = np.pad(normal.astype(np.float32), FRAME // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP][: len(samples) // HOP]
    power = np.abs(np.fft.rfft(frames * _window())) ** 2
    levels = np.log10(np.maximum(_filters() @ power.T, QUIETEST))
    floored = np.maximum(levels, levels.max() - RANGE)
    return np.asarray((floored + 4.0) / 4.0, np.float32)


@cache
def _window() -> NDArray[Any]:
    """A Hann window that a next one would continue."""
    return np.hanning(FRAME + 1)[:-1].astype(np.float32)


@cache
def _filters() -> NDArray[Any]:
    """Triangles of equal area between 0 Hz and half the rate, shape ``(80, 201)``."""
    edges = _hertz(np.linspace(0.0, _mel(RATE / 2), BANDS + 2))
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bins = np.fft.rfftfreq(FRAME, 1 / RATE)
    rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
    triangles = np.clip(np.minimum(rising, falling), 0.0, None)
    return np.asarray(triangles * 2.0 / (high - low), np.float32)


def _mel(hertz: float) -> float:
    """Of a frequency above the knee."""
    return float(KNEE_MEL + MELS_PER_OCTAVE * np.log2(hertz / KNEE_HZ))


def _hertz(mel: NDArray[Any]) -> NDArray[Any]:
    above = KNEE_HZ * 2.0 ** ((mel - KNEE_MEL) / MELS_PER_OCTAVE)
    return np.where(mel < KNEE_MEL, mel * KNEE_HZ / KNEE_MEL, above)
