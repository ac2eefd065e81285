"""Images of the tests' own, made without an image library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Samples of a pixel by PNG's colour type: grey, RGB, grey and alpha, RGBA."""


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width: int, height: int, colour_type: int = 2) -> bytes:
    """The first chunk of a PNG of 8 bits a sample."""
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0))


def png(width: int = 64, height: int = 48, colour: tuple[int, ...] = (200, 30, 30), colour_type: int = 2) -> bytes:
    """A PNG of one colour: as many samples as its colour type has."""
    assert len(colour) == CHANNELS[colour_type]
    rows = (b"\0" + bytes(colour) * width) * height
    return SIGNATURE + header(width, height, colour_type) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND")


def hollow_png(width: int = 64, height: int = 48) -> bytes:
    """A PNG whose structure is right, and whose pixels cannot be decoded."""
    return SIGNATURE + header(width, height) + chunk(b"IDAT", b"no pixels") + chunk(b"IEND")


def segment(marker: int, data: bytes = b"") -> bytes:
    """A segment of a JPEG."""
    return bytes((0xFF, marker)) + struct.pack(">H", len(data) + 2) + data


def hollow_jpeg(width: int = 64, height: int = 48, kind: int = 0xC0) -> bytes:
    """A JPEG whose structure is right, and whose pixels cannot be decoded; ``kind`` is the marker of its frame header."""
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + segment(0xE0, b"JFIF\0") + segment(kind, frame) + segment(0xDA, b"\1\1\0\0\x3f\0") + b"\0\0\xff\xd9"


JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H////6/+b9"
    "//j/2wBDASstLTw1PHZBQXb4pYyl+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj/wAARCAAMABADASIAAhEB"
    "AxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAAAwT/xAAUEQEAAAAAAAAAAAAA"
    "AAAAAAAA/9oADAMBAAIRAxEAPwCMBcJ//9k="
)
"""A picture of 16 x 12 pixels."""


def data_uri(file: bytes, media_type: str | None = None) -> str:
    """A file as a client sends it."""
    kind = media_type or ("image/png" if file.startswith(SIGNATURE) else "image/jpeg")
    return f"data:{kind};base64,{base64.b64encode(file).decode()}"


def input_image(file: bytes, **fields: Any) -> dict[str, Any]:
    """A content part."""
    return {"type": "input_image", "image_url": data_uri(file), **fields}


def seen(*parts: bytes | str, **fields: Any) -> dict[str, Any]:
    """A message of the user: images and texts in order."""
    content = [{"type": "input_text", "text": part} if isinstance(part, str) else input_image(part) for part in parts]
    return {"type": "message", "role": "user", "content": content, **fields}
