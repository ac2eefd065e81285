"""PCM16, little endian, mono: bytes to float32 samples and back."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from omni_realtime.chat import Samples

AudioBytes: TypeAlias = bytes | bytearray | memoryview
"""Encoded audio in any contiguous buffer; decoding reads it in place."""

INT16_LE = np.dtype("<i2")
STEPS = 32768
LOUDEST = np.float32(32767 / STEPS)


def decode_pcm16(data: AudioBytes) -> Samples:
    """Decode PCM16 bytes: each sample is the 16-bit value divided by 32768.

    Raises:
        ValueError: if ``data`` ends within a sample.
    """
    if len(data) % 2:
        raise ValueError(f"PCM16 has 2 bytes a sample; {len(data)} bytes end within one. Send whole samples, or decode with StreamDecoder.")
    return np.frombuffer(data, INT16_LE) * np.float32(1 / STEPS)


def encode_pcm16(samples: Samples) -> bytes:
    """Encode samples as PCM16, by the rules of :func:`quantize`."""
    return quantize(samples).tobytes()


def quantize(samples: Samples) -> NDArray[np.int16]:
    """Turn samples into 16-bit values: rounded half to even, clipped to [-32768, 32767].

    Infinities clip like any loud sample. NaN becomes 0: no other value is sure to stay unheard.
    """
    scaled = samples.clip(-1, LOUDEST)
    scaled *= STEPS
    np.rint(scaled, out=scaled)
    scaled[np.isnan(scaled)] = 0
    return scaled.astype(INT16_LE)
