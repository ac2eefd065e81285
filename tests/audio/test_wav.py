from __future__ import annotations

import io
import struct
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.audio import read_wav, write_wav

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import wave

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
HALVES = [0.5, -0.5, 0.0, -1.0]
PCM16_HALVES = struct.pack("<4h", 16384, -16384, 0, -32768)


def chunk(name, body, size=None):
    return name + struct.pack("<I", len(body) if size is None else size) + body + b"\0" * (len(body) % 2)


def form(*, encoding=PCM, channels=1, rate=16000, bits=16, rest=b""):
    frame = channels * bits // 8
    return chunk(b"fmt ", struct.pack("<HHIIHH", encoding, channels, rate, rate * frame, frame, bits) + rest)


def riff(*chunks, size=None):
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def extensible(encoding, bits):
    rest = struct.pack("<HHI", 22, bits, 4) + struct.pack("<H", encoding) + bytes.fromhex("000000001000800000aa00389b71")
    return form(encoding=EXTENSIBLE, bits=bits, rest=rest)


@given(st.lists(st.integers(-32768, 32767)), st.sampled_from([8000, 16000, 22050, 24000, 48000]))
def test_what_is_written_reads_back(values, rate):
    samples = (np.array(values, np.float32) / 32768).astype(np.float32)
    written = write_wav(samples, rate)
    read, read_rate = read_wav(written)
    assert (read.tolist(), read_rate) == (samples.tolist(), rate)
    with wave.open(io.BytesIO(written)) as reference:
        assert (reference.getnchannels(), reference.getsampwidth(), reference.getframerate()) == (1, 2, rate)
        assert np.frombuffer(reference.readframes(len(values)), "<i2").tolist() == values


def test_a_file_of_the_standard_library_reads():
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(22050)
        writer.writeframes(PCM16_HALVES)
    samples, rate = read_wav(file.getvalue())
    assert samples.dtype == np.float32
    assert (samples.tolist(), rate) == (HALVES, 22050)


@pytest.mark.parametrize(
    ("fmt", "data"),
    [
        pytest.param(form(bits=8), bytes([192, 64, 128, 0]), id="pcm8"),
        pytest.param(form(bits=16), PCM16_HALVES, id="pcm16"),
        pytest.param(form(bits=24), bytes.fromhex("000040 0000c0 000000 000080"), id="pcm24"),
        pytest.param(form(bits=32), struct.pack("<4i", 2**30, -(2**30), 0, -(2**31)), id="pcm32"),
        pytest.param(form(encoding=FLOAT, bits=32), struct.pack("<4f", *HALVES), id="float32"),
        pytest.param(extensible(PCM, 16), PCM16_HALVES, id="extensible-pcm16"),
        pytest.param(extensible(FLOAT, 32), struct.pack("<4f", *HALVES), id="extensible-float32"),
    ],
)
def test_every_encoding_reads(fmt, data):
    samples, rate = read_wav(riff(fmt, chunk(b"data", data)))
    assert samples.dtype == np.float32
    assert (samples.tolist(), rate) == (HALVES, 16000)


def test_channels_are_mixed_down():
    samples, _ = read_wav(riff(form(channels=2), chunk(b"data", struct.pack("<4h", 16384, 0, -8192, -8192))))
    assert samples.dtype == np.float32
    assert samples.tolist() == [0.25, -0.25]


def test_other_chunks_are_skipped_and_odd_ones_are_padded():
    file = riff(chunk(b"LIST", b"odd"), form(), chunk(b"fact", b"1234"), chunk(b"data", PCM16_HALVES), chunk(b"id3 ", b"tail"))
    assert read_wav(file)[0].tolist() == HALVES


@pytest.mark.parametrize(
    ("riff_size", "data_size"),
    [(0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (36, 0), (0x7FFFF024, 0x7FFFF000), (0, 0xFFFFFFFF), (0xFFFFFFFF, 0), (None, 0xFFFFFFFF), (36, 1000)],
)
def test_a_streams_header_reads_up_to_the_end(riff_size, data_size):
    for tail in (b"", b"\x01"):
        file = riff(form(), b"data", struct.pack("<I", data_size), PCM16_HALVES, tail, size=riff_size)
        assert read_wav(file)[0].tolist() == HALVES


def test_an_empty_data_chunk_of_a_whole_file_is_empty():
    assert read_wav(riff(form(), chunk(b"data", b""), chunk(b"LIST", b"more")))[0].tolist() == []


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "Not a WAV file"),
        (b"RIFF", "Not a WAV file"),
        (b"OggS" + bytes(60), "Not a WAV file"),
        (b"RIFF\0\0\0\0AVI " + bytes(60), "Not a WAV file"),
        (riff(), "no data chunk"),
        (riff(form()), "no data chunk"),
        (riff(form(), b"data"), "no data chunk"),
        (riff(chunk(b"data", b"1234"), form()), "before the fmt chunk"),
        (riff(chunk(b"fmt ", b"1234"), chunk(b"data", b"")), "has 4 bytes, fewer than 16"),
        (riff(form(channels=0), chunk(b"data", b"")), "0 channels at 16000 Hz"),
        (riff(form(rate=0), chunk(b"data", b"")), "1 channels at 0 Hz"),
        (riff(form(encoding=7, bits=8), chunk(b"data", b"")), "encoding 7 with 8 bits: convert the file to PCM16"),
        (riff(form(bits=12), chunk(b"data", b"")), "encoding 1 with 12 bits"),
        (riff(form(encoding=FLOAT, bits=64), chunk(b"data", b"")), "encoding 3 with 64 bits"),
        (riff(form(encoding=EXTENSIBLE), chunk(b"data", b"")), "encoding 0 with 16 bits"),
    ],
)
def test_bad_files_say_what_is_wrong(file, message):
    with pytest.raises(ValueError, match=message):
        read_wav(file)


@given(st.binary(max_size=80))
def test_any_bytes_read_or_are_refused(noise):
    for file in (noise, riff(noise), riff(form(channels=3, bits=24), noise), riff(form(), chunk(b"data", b"", size=7), noise)):
        try:
            samples, rate = read_wav(file)
        except ValueError:
            continue
        assert samples.ndim == 1
        assert rate > 0
