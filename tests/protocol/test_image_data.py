"""Images in data URIs: what is taken, and what is refused before it costs anything."""

from __future__ import annotations

import struct
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.protocol import ProtocolError
from omni_realtime.protocol.image_data import MAX_ASPECT_RATIO, MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS, decode_image, image_url
from pictures import JPEG, SIGNATURE, chunk, data_uri, header, hollow_jpeg, hollow_png, png, segment

PARAM = "item.content.0.image_url"
SIDE = 4096


def outcome(uri: str) -> str | None:
    """The image that is taken, or what the error names."""
    try:
        return image_url(*decode_image(uri, PARAM))
    except ProtocolError as error:
        return error.param


def refusal(uri: str) -> str:
    with pytest.raises(ProtocolError) as caught:
        decode_image(uri, PARAM)
    assert (caught.value.code, caught.value.param) == ("invalid_value", PARAM)
    return caught.value.message


@pytest.mark.parametrize(
    "image",
    [
        png(1, 1),
        png(64, 48, (1, 2, 3, 4), 6),
        png() + b"what some programs leave behind the end",
        hollow_png(SIDE, SIDE),
        hollow_png(MAX_ASPECT_RATIO, 1),
        SIGNATURE + header(4, 4) + chunk(b"tEXt", b"a\0b") + chunk(b"IDAT") * 3 + chunk(b"IEND"),
        JPEG,
        JPEG + b"\0\0",
        hollow_jpeg(SIDE, SIDE, 0xC2),
        b"\xff\xd8\xff" + hollow_jpeg()[2:],
    ],
    ids=lambda image: f"{len(image)} bytes",
)
def test_a_whole_image_is_taken_as_it_is(image: bytes) -> None:
    kind = "image/png" if image.startswith(SIGNATURE) else "image/jpeg"
    assert decode_image(data_uri(image), PARAM) == (image, kind)
    assert image_url(*decode_image(data_uri(image), PARAM)) == data_uri(image)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("https://example.com/a.png", "this server fetches nothing; send a data URI"),
        ("HTTP://example.com/a.png", "this server fetches nothing; send a data URI"),
        ("file:///etc/passwd", "send a data URI"),
        ("", "send a data URI"),
        ("data:image/gif;base64,R0lGODlh", "send a data URI"),
        ("data:image/svg+xml;base64,AAAA", "send a data URI"),
        ("data:image/png,AAAA", "send a data URI"),
        ("data:image/png;base64,", "it is no PNG"),
        ("data:image/png;base64,AAA", "not base64"),
        ("data:image/png;base64,AA_-", "not base64"),
        ("data:image/png;base64,AA\nAA", "not base64"),
        ("data:image/png;base64,Привет", "not base64"),
        (data_uri(JPEG, "image/png"), "it is no PNG; send a whole file of type image/png"),
        (data_uri(png(), "image/jpeg"), "it is no JPEG; send a whole file of type image/jpeg"),
        (data_uri(SIGNATURE), "the PNG breaks off"),
        (data_uri(png()[:-1]), "the PNG breaks off"),
        (data_uri(png()[:-12]), "the PNG breaks off"),
        (data_uri(SIGNATURE + header(4, 4) + struct.pack(">I", 0xFFFFFFFF) + b"IDAT"), "the PNG breaks off"),
        (data_uri(SIGNATURE + header(4, 4) + chunk(b"IEND")), "the PNG has no image"),
        (data_uri(SIGNATURE + chunk(b"IDAT") + chunk(b"IEND")), "the PNG has no image"),
        (data_uri(hollow_png(0, 4)), "the PNG has no image"),
        (data_uri(SIGNATURE + header(4, 4) + chunk(b"IDAT") * 20000 + chunk(b"IEND")), "more than 16384 chunks"),
        (data_uri(JPEG[:-2]), "the JPEG breaks off"),
        (data_uri(b"\xff\xd8"), "the JPEG breaks off"),
        (data_uri(b"\xff\xd8\xff\xd9"), "the JPEG breaks off"),
        (data_uri(b"\xff\xd8" + segment(0xE0) * 20000), "the JPEG breaks off"),
        (data_uri(b"\xff\xd8" + b"\xff" * 20000), "the JPEG breaks off"),
        (data_uri(b"\xff\xd8" + segment(0xDA) + b"\0\xff\xd9"), "the JPEG breaks off"),
        (data_uri(hollow_jpeg(0, 4)), "the JPEG breaks off"),
        (data_uri(hollow_jpeg(kind=0xC3)), "only baseline and progressive"),
        (data_uri(hollow_png(SIDE + 1, SIDE)), f"4097 x 4096 pixels; send at most {MAX_IMAGE_PIXELS} in all"),
        (data_uri(hollow_png(0xFFFFFFFF, 0xFFFFFFFF)), "pixels; send at most"),
        (data_uri(hollow_jpeg(0xFFFF, 0xFFFF)), "65535 x 65535 pixels; send at most"),
        (data_uri(hollow_png(MAX_ASPECT_RATIO + 1, 1)), "at most 100 to 1"),
        (data_uri(hollow_jpeg(1, MAX_ASPECT_RATIO + 1)), "at most 100 to 1"),
    ],
)
def test_what_is_no_image_is_refused_and_told_why(uri: str, words: str) -> None:
    assert words in refusal(uri)


@pytest.mark.parametrize("size", [MAX_IMAGE_BYTES + 1, MAX_IMAGE_BYTES + 10])
def test_an_image_of_too_many_bytes_is_refused(size: int) -> None:
    assert f"more than {MAX_IMAGE_BYTES} bytes" in refusal(data_uri(bytes(size), "image/png"))


def test_a_bomb_is_refused_without_a_look_at_its_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = zlib.compress(bytes(1 << 20))
    bomb = SIGNATURE + header(1 << 20, 1 << 20) + chunk(b"IDAT", pixels) + chunk(b"IEND")
    monkeypatch.setattr(zlib, "decompressobj", None)
    monkeypatch.setattr(zlib, "decompress", None)
    assert "pixels" in refusal(data_uri(bomb))


def test_a_file_of_nothing_but_empty_pieces_costs_no_time() -> None:
    filler = MAX_IMAGE_BYTES // 16
    begun = time.process_time()
    for file in (SIGNATURE + header(4, 4) + chunk(b"IDAT") * (filler * 4 // 3), b"\xff\xd8" + segment(0xE0) * filler * 4):
        refusal(data_uri(file[:MAX_IMAGE_BYTES]))
    assert time.process_time() - begun < 1


@given(at=st.integers(0, len(png()) - 1), bit=st.integers(0, 7))
def test_every_changed_bit_of_a_png_is_found(at: int, bit: int) -> None:
    file = bytearray(png())
    file[at] ^= 1 << bit
    assert refusal(data_uri(bytes(file), "image/png"))


@given(st.binary(max_size=200), st.sampled_from([SIGNATURE, SIGNATURE + header(4, 4), b"\xff\xd8", b""]), st.sampled_from(["png", "jpeg"]))
def test_whatever_the_bytes_they_are_taken_or_refused(noise: bytes, head: bytes, kind: str) -> None:
    uri = data_uri(head + noise, f"image/{kind}")
    assert outcome(uri) in {uri, PARAM}
