"""G.711 mu-law and A-law, 8 bits a sample (ITU-T Recommendation G.711, 11/1988): bytes to float32 samples and back.

Encoding goes through 16-bit values and decides by their upper 14 (mu-law) or 13 (A-law) bits, so 0 and what rounds to it are positive.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from omni_realtime.audio.pcm import STEPS, AudioBytes, quantize
from omni_realtime.chat import Samples


def decode_mulaw(data: AudioBytes) -> Samples:
    """Decode mu-law bytes, one sample a byte."""
    return _mulaw_samples().take(np.frombuffer(data, np.uint8))


def encode_mulaw(samples: Samples) -> bytes:
    """Encode samples as mu-law, rounded and clipped as :func:`omni_realtime.audio.pcm.quantize` does."""
    return _mulaw_codes().take(quantize(samples).view(np.uint16)).tobytes()


def decode_alaw(data: AudioBytes) -> Samples:
    """Decode A-law bytes, one sample a byte."""
    return _alaw_samples().take(np.frombuffer(data, np.uint8))


def encode_alaw(samples: Samples) -> bytes:
    """Encode samples as A-law, rounded and clipped as :func:`omni_realtime.audio.pcm.quantize` does."""
    return _alaw_codes().take(quantize(samples).view(np.uint16)).tobytes()


# A code is 1 bit of sign, 3 of segment and 4 of step within it. Mu-law sends all bits inverted, and its bias of 33 makes each segment
# start at a power of two; A-law sends every other bit inverted, and its segments 0 and 1 share one step size.

SIGN, POSITIVE_MULAW, NEGATIVE_MULAW, POSITIVE_ALAW, NEGATIVE_ALAW = 0x80, 0xFF, 0x7F, 0xD5, 0x55
BIAS = 33
LARGEST_MULAW = 8191 - BIAS


@cache
def _mulaw_samples() -> Samples:
    code = np.arange(256) ^ POSITIVE_MULAW
    segment, step = code >> 4 & 7, code & 0xF
    magnitude = ((2 * step + BIAS) << segment) - BIAS
    return _to_samples(np.where(code & SIGN, -magnitude, magnitude) << 2)


@cache
def _alaw_samples() -> Samples:
    code = np.arange(256) ^ NEGATIVE_ALAW
    segment, step = code >> 4 & 7, code & 0xF
    magnitude = (2 * step + np.where(segment, 33, 1)) << np.maximum(segment - 1, 0)
    return _to_samples(np.where(code & SIGN, magnitude, -magnitude) << 3)


@cache
def _mulaw_codes() -> NDArray[np.uint8]:
    linear = _all_int16() >> 2
    magnitude: NDArray[np.int32] = np.minimum(np.abs(linear), LARGEST_MULAW) + BIAS
    segment = _bit_length(magnitude) - 6
    code = segment << 4 | magnitude >> (segment + 1) & 0xF
    return (code ^ np.where(linear < 0, NEGATIVE_MULAW, POSITIVE_MULAW)).astype(np.uint8)


@cache
def _alaw_codes() -> NDArray[np.uint8]:
    linear = _all_int16() >> 3
    magnitude = np.where(linear < 0, ~linear, linear)
    segment = np.maximum(_bit_length(magnitude) - 5, 0)
    code = segment << 4 | magnitude >> np.maximum(segment, 1) & 0xF
    return (code ^ np.where(linear < 0, NEGATIVE_ALAW, POSITIVE_ALAW)).astype(np.uint8)


def _to_samples(linear: NDArray[np.int_]) -> Samples:
    return (linear / STEPS).astype(np.float32)


def _all_int16() -> NDArray[np.int32]:
    """Every 16-bit value at the place where its bits, read as unsigned, point."""
    return np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32)


def _bit_length(values: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.frexp(values)[1].astype(np.int32)
