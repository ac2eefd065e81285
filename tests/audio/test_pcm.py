from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from omni_realtime.audio import decode_pcm16, encode_pcm16

EVERY_VALUE = np.arange(-32768, 32768, dtype="<i2")


def values(encoded: bytes) -> list[int]:
    return np.frombuffer(encoded, "<i2").tolist()


def test_every_value_survives_the_round_trip():
    assert encode_pcm16(decode_pcm16(EVERY_VALUE.tobytes())) == EVERY_VALUE.tobytes()


def test_decoding_divides_by_32768_and_is_little_endian():
    samples = decode_pcm16(b"\x00\x80\xff\xff\x00\x00\x01\x00\xff\x7f")
    assert samples.dtype == np.float32
    assert samples.tolist() == [-1.0, -1 / 32768, 0.0, 1 / 32768, 32767 / 32768]


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_any_buffer_decodes(buffer):
    assert decode_pcm16(buffer(b"\x00\x40")).tolist() == [0.5]


def test_decoded_samples_may_be_changed_in_place():
    assert decode_pcm16(b"\x00\x40").flags.writeable


def test_nothing_decodes_to_nothing_and_encodes_to_nothing():
    assert decode_pcm16(b"").shape == (0,)
    assert encode_pcm16(np.empty(0, np.float32)) == b""


def test_an_odd_number_of_bytes_is_refused():
    with pytest.raises(ValueError, match=r"3 bytes end within one.*StreamDecoder"):
        decode_pcm16(b"abc")


@pytest.mark.parametrize(
    ("sample", "value"),
    [
        (0.5 / 32768, 0),
        (1.5 / 32768, 2),
        (-0.5 / 32768, 0),
        (-1.5 / 32768, -2),
        (1.0, 32767),
        (32767.5 / 32768, 32767),
        (-1.0, -32768),
        (-1.00001, -32768),
        (3.4e38, 32767),
        (-3.4e38, -32768),
        (np.inf, 32767),
        (-np.inf, -32768),
        (np.nan, 0),
    ],
)
def test_rounds_half_to_even_clips_and_makes_nan_silence(sample, value):
    assert values(encode_pcm16(np.array([sample, 0.25], np.float32))) == [value, 8192]


def test_encoding_leaves_the_samples_as_they_are():
    samples = np.array([2.0, np.nan, -2.0], np.float32)
    encode_pcm16(samples)
    np.testing.assert_array_equal(samples, np.array([2.0, np.nan, -2.0], np.float32))


@given(arrays(np.float32, st.integers(0, 50), elements=st.floats(width=32)))
def test_any_float_encodes_to_the_nearest_value(samples):
    exact = np.nan_to_num(samples.astype(np.float64), nan=0.0, posinf=1.0, neginf=-1.0) * 32768
    assert values(encode_pcm16(samples)) == [round(max(-32768.0, min(32767.0, value))) for value in exact]
