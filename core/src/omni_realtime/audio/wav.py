"""WAV files: any plain one in, PCM16 mono out."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from omni_realtime.audio.pcm import encode_pcm16
from omni_realtime.chat import Samples

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
SMALLEST_FORMAT = 16
SUBFORMAT = slice(24, 26)


def read_wav(data: bytes) -> tuple[Samples, int]:
    """Read a WAV file: integer PCM of 8, 16, 24 or 32 bits, or 32-bit float.

    Channels are mixed down to their mean. Other chunks are skipped. A data size that the file does not bear out, as the header of a
    stream has it (0, 0xFFFFFFFF, or beyond the end), means all whole frames up to the end.

    Returns:
        Mono samples, and their rate in Hz.

    Raises:
        ValueError: saying what is wrong with the file.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ValueError("Not a WAV file: it does not begin with RIFF and WAVE.")
    layout = None
    for name, body in _chunks(memoryview(data)):
        if name == b"fmt ":
            layout = _read_format(body)
        elif name == b"data":
            if layout is None:
                raise ValueError("Bad WAV file: the data chunk comes before the fmt chunk.")
            encoding, bits, channels, rate = layout
            frame = channels * bits // 8
            interleaved = _to_float(body[: len(body) - len(body) % frame], encoding, bits)
            return _mix_down(interleaved, channels), rate
    raise ValueError("Bad WAV file: it has no data chunk.")


def write_wav(samples: Samples, rate: int) -> bytes:
    """Write a WAV file of PCM16 mono.

    Args:
        samples: rounded and clipped as :func:`omni_realtime.audio.pcm.quantize` does.
        rate: samples a second, in Hz.
    """
    pcm = encode_pcm16(samples)
    form = struct.pack("<HHIIHH", PCM, 1, rate, rate * 2, 2, 16)
    return struct.pack("<4sI4s4sI16s4sI", b"RIFF", 36 + len(pcm), b"WAVE", b"fmt ", len(form), form, b"data", len(pcm)) + pcm


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    (riff_size,) = struct.unpack_from("<I", data, 4)
    streamed = riff_size + 8 != len(data)
    place = 12
    while place + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, place)
        place += 8
        if name == b"data" and size == 0 and streamed:
            size = len(data) - place
        yield name, data[place : place + size]
        place += size + size % 2


def _read_format(body: memoryview) -> tuple[int, int, int, int]:
    if len(body) < SMALLEST_FORMAT:
        raise ValueError(f"Bad WAV file: its fmt chunk has {len(body)} bytes, fewer than {SMALLEST_FORMAT}.")
    encoding, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if encoding == EXTENSIBLE:
        encoding = int.from_bytes(body[SUBFORMAT], "little")
    if not channels or not rate:
        raise ValueError(f"Bad WAV file: it claims {channels} channels at {rate} Hz.")
    if (encoding, bits) not in {(PCM, 8), (PCM, 16), (PCM, 24), (PCM, 32), (FLOAT, 32)}:
        raise ValueError(f"Unsupported WAV encoding {encoding} with {bits} bits: convert the file to PCM16.")
    return encoding, bits, channels, rate


def _to_float(data: memoryview, encoding: int, bits: int) -> Samples:
    if encoding == FLOAT:
        return np.frombuffer(data, "<f4").astype(np.float32)
    if bits == 8:  # noqa: PLR2004 - the one width that is unsigned
        return (np.frombuffer(data, np.uint8) - np.float32(128)) / np.float32(128)
    return _to_int(data, bits).astype(np.float32) * np.float32(2.0 ** (1 - bits))


def _to_int(data: memoryview, bits: int) -> NDArray[np.signedinteger]:
    if bits != 24:  # noqa: PLR2004 - the one width without a numpy type
        return np.frombuffer(data, f"<i{bits // 8}")
    padded = np.zeros((len(data) // 3, 4), np.uint8)
    padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return padded.view("<i4").ravel() >> 8


def _mix_down(interleaved: Samples, channels: int) -> Samples:
    return interleaved if channels == 1 else interleaved.reshape(-1, channels).mean(axis=1)
