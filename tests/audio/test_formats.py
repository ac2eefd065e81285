from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.audio import ALAW, FORMATS, MULAW, PCM16, StreamDecoder


def cut(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def test_the_formats_of_the_realtime_api():
    assert {name: (form.name, form.rate, form.bytes_per_sample) for name, form in FORMATS.items()} == {
        "audio/pcm": ("audio/pcm", 24000, 2),
        "audio/pcmu": ("audio/pcmu", 8000, 1),
        "audio/pcma": ("audio/pcma", 8000, 1),
    }


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_format_encodes_what_it_decodes(form):
    samples = (np.arange(-100, 100) / 100).astype(np.float32)
    encoded = form.encode(samples)
    assert len(encoded) == len(samples) * form.bytes_per_sample
    assert np.abs(form.decode(encoded) - samples).max() < 0.04
    assert form.encode(form.decode(encoded)) == encoded


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@given(data=st.binary(max_size=60), places=st.lists(st.integers(0, 60), max_size=8))
def test_pitfall_odd_chunks_any_split_decodes_as_the_whole(form, data, places):
    decoder = StreamDecoder(form)
    chunks = [decoder.decode(chunk) for chunk in cut(data, places)]
    whole = data[: len(data) - len(data) % form.bytes_per_sample]
    np.testing.assert_array_equal(np.concatenate(chunks), form.decode(whole))


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_pitfall_append_of_2n_plus_1_bytes_carries_the_odd_byte(buffer):
    decoder = StreamDecoder(PCM16)
    assert decoder.decode(buffer(b"\x00\x40\x00")).tolist() == [0.5]
    assert decoder.decode(buffer(b"")).tolist() == []
    assert decoder.decode(buffer(b"\xc0\x00")).tolist() == [-0.5]
    assert decoder.decode(buffer(b"\x20")).tolist() == [0.25]
    assert decoder.decode(buffer(b"\x00\x40")).tolist() == [0.5]


def test_a_carried_byte_outlives_the_buffer_it_came_in():
    decoder = StreamDecoder(PCM16)
    buffer = bytearray(b"\x00")
    decoder.decode(buffer)
    buffer[0] = 0xFF
    assert decoder.decode(b"\x40").tolist() == [0.5]


def test_reset_forgets_the_carried_byte():
    decoder = StreamDecoder(PCM16)
    decoder.decode(b"\xff")
    decoder.reset()
    assert decoder.decode(b"\x00\x40").tolist() == [0.5]


@pytest.mark.parametrize("form", [MULAW, ALAW])
def test_pitfall_g711_is_one_byte_a_sample_so_odd_lengths_are_legal(form):
    assert StreamDecoder(form).decode(b"\x01\x02\x03").tolist() == form.decode(b"\x01\x02\x03").tolist()
