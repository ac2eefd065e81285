"""G.711 against CPython's audioop, whose code is Sun's reference (in 3.13 and later from the package audioop-lts)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from omni_realtime.audio import decode_alaw, decode_mulaw, decode_pcm16, encode_alaw, encode_mulaw

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    audioop = pytest.importorskip("audioop", reason="pip install audioop-lts")

EVERY_CODE = bytes(range(256))
EVERY_VALUE = np.arange(-32768, 32768, dtype="<i2").tobytes()
DECODERS = [pytest.param(decode_mulaw, audioop.ulaw2lin, id="mulaw"), pytest.param(decode_alaw, audioop.alaw2lin, id="alaw")]
ENCODERS = [pytest.param(encode_mulaw, audioop.lin2ulaw, id="mulaw"), pytest.param(encode_alaw, audioop.lin2alaw, id="alaw")]


@pytest.mark.parametrize(("decode", "reference"), DECODERS)
def test_every_code_decodes_as_the_reference_does(decode, reference):
    samples = decode(EVERY_CODE)
    assert samples.dtype == np.float32
    np.testing.assert_array_equal(samples, decode_pcm16(reference(EVERY_CODE, 2)))


@pytest.mark.parametrize(("encode", "reference"), ENCODERS)
def test_every_sample_encodes_as_the_reference_does(encode, reference):
    assert encode(decode_pcm16(EVERY_VALUE)) == reference(EVERY_VALUE, 2)


@pytest.mark.parametrize(
    ("decode", "encode", "merged"),
    [pytest.param(decode_mulaw, encode_mulaw, {0x7F: 0xFF}, id="mulaw"), pytest.param(decode_alaw, encode_alaw, {}, id="alaw")],
)
def test_every_code_survives_the_round_trip_but_mulaw_negative_zero(decode, encode, merged):
    assert encode(decode(EVERY_CODE)) == bytes(merged.get(code, code) for code in EVERY_CODE)


@pytest.mark.parametrize(("encode", "loudest", "softest", "zero"), [(encode_mulaw, 0x80, 0x00, 0xFF), (encode_alaw, 0xAA, 0x2A, 0xD5)])
def test_clips_and_makes_nan_and_negative_zero_silence(encode, loudest, softest, zero):
    samples = np.array([np.inf, 7.0, -np.inf, -7.0, np.nan, -0.0, 0.0], np.float32)
    assert list(encode(samples)) == [loudest, loudest, softest, softest, zero, zero, zero]


@pytest.mark.parametrize("decode", [decode_mulaw, decode_alaw])
def test_decoded_samples_are_the_callers_own(decode):
    decode(EVERY_CODE)[:] = 9.0
    assert np.abs(decode(EVERY_CODE)).max() < 1.0


@pytest.mark.parametrize("decode", [decode_mulaw, decode_alaw])
@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_any_buffer_of_any_length_decodes(decode, buffer):
    assert decode(buffer(b"")).shape == (0,)
    assert decode(buffer(b"\x00\x80\xff")).shape == (3,)
