"""Images as they travel in JSON: a data URI with a PNG or a JPEG, taken apart without decoding a pixel.

What is checked here is all that can be told from the file's structure: its kind, its size in pixels, and that nothing of it is missing
(for a PNG, that no byte has changed). So an image that is damaged or too large is refused before it is part of a conversation.
"""

from __future__ import annotations

import binascii
import re
import zlib
from typing import Final, Literal, NoReturn, TypeAlias

import pybase64

from omni_realtime.protocol.validation import refuse_value

ImageMediaType: TypeAlias = Literal["image/png", "image/jpeg"]

MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
"""Of the file."""
MAX_IMAGE_PIXELS: Final = 4096 * 4096
"""So that a small file does not become gigabytes of pixels."""
MAX_ASPECT_RATIO: Final = 100
"""Of the longer side to the shorter; no image encoder makes anything of more."""

_HEADER = re.compile(r"data:(image/(?:png|jpeg));base64,", re.ASCII)
_WANTED: Final = "send a data URI, data:image/png;base64,... or data:image/jpeg;base64,..."

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_FRAME: Final = 12
"""Bytes of a chunk beside its data: length, type and checksum."""
_MOST_PIECES: Final = 16384
"""Chunks of a PNG, or segments of a JPEG; a file of nothing but empty ones would be slow to walk through."""
_JPEG_START: Final = b"\xff\xd8"
_JPEG_END: Final = b"\xff\xd9"
_JPEG_SCAN: Final = 0xDA
_JPEG_SIZES: Final = frozenset({0xC0, 0xC1, 0xC2})
"""Markers of the frame header of a baseline, extended or progressive JPEG."""
_JPEG_OTHER_KINDS: Final = frozenset({0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_JPEG_FILL: Final = 0xFF


class _DamagedError(Exception):
    """The file breaks off, or is none of its kind."""


def decode_image(image_url: str, param: str) -> tuple[bytes, ImageMediaType]:
    """Return the file of a data URI, and its media type.

    Raises:
        ProtocolError: it is no data URI of a whole PNG or JPEG, or larger than this takes; nothing is fetched from anywhere.
    """
    head = _HEADER.match(image_url)
    if head is None:
        fetched = "this server fetches nothing; " if image_url[:5].lower().startswith("http") else ""
        refuse_value(param, f"{fetched}{_WANTED}")
    media_type: ImageMediaType = "image/png" if head[1] == "image/png" else "image/jpeg"
    file = _decode(image_url, head.end(), param)
    try:
        width, height = (_png_size if media_type == "image/png" else _jpeg_size)(file)
    except _DamagedError as fault:
        refuse_value(param, f"{fault}; send a whole file of type {media_type}.")
    _check_size(width, height, param)
    return file, media_type


def image_url(file: bytes, media_type: ImageMediaType) -> str:
    """Return the data URI of a file."""
    return f"data:{media_type};base64,{pybase64.b64encode_as_string(file)}"


def _decode(url: str, start: int, param: str) -> bytes:
    if (len(url) - start) // 4 * 3 > MAX_IMAGE_BYTES + 3:
        _refuse_bytes(param)
    try:
        file = pybase64.b64decode(url[start:], validate=True)
    except (binascii.Error, ValueError):
        refuse_value(param, "behind its comma, it is not base64 with padding in the standard alphabet, without line breaks.")
    if len(file) > MAX_IMAGE_BYTES:
        _refuse_bytes(param)
    return file


def _check_size(width: int, height: int, param: str) -> None:
    if width * height > MAX_IMAGE_PIXELS:
        refuse_value(param, f"the image has {width} x {height} pixels; send at most {MAX_IMAGE_PIXELS} in all.")
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        refuse_value(param, f"the image has {width} x {height} pixels; send one whose sides are at most {MAX_ASPECT_RATIO} to 1.")


def _refuse_bytes(param: str) -> NoReturn:
    refuse_value(param, f"the image has more than {MAX_IMAGE_BYTES} bytes; send a smaller one.")


def _png_size(file: bytes) -> tuple[int, int]:
    """Width and height, once every chunk up to the last has its checksum. Source: the PNG specification (W3C), section 5."""
    if not file.startswith(_PNG):
        raise _DamagedError("it is no PNG")
    view, at, kinds = memoryview(file), len(_PNG), list[bytes]()
    while not kinds or kinds[-1] != b"IEND":
        if len(kinds) == _MOST_PIECES:
            raise _DamagedError(f"the PNG has more than {_MOST_PIECES} chunks")
        length = int.from_bytes(view[at : at + 4])
        end = at + _PNG_FRAME + length
        if end > len(file):
            raise _DamagedError("the PNG breaks off")
        if zlib.crc32(view[at + 4 : end - 4]) != int.from_bytes(view[end - 4 : end]):
            raise _DamagedError("the PNG is damaged")
        kinds.append(bytes(view[at + 4 : at + 8]))
        at = end
    header = len(_PNG) + 8
    width, height = int.from_bytes(view[header : header + 4]), int.from_bytes(view[header + 4 : header + 8])
    if kinds[0] != b"IHDR" or b"IDAT" not in kinds or not width or not height:
        raise _DamagedError("the PNG has no image")
    return width, height


def _jpeg_size(file: bytes) -> tuple[int, int]:
    """Width and height, once there are a scan and an end. Source: ITU-T T.81, annex B."""
    if not file.startswith(_JPEG_START):
        raise _DamagedError("it is no JPEG")
    size, at = (0, 0), len(_JPEG_START)
    for _ in range(_MOST_PIECES):
        if at + 4 > len(file) or file[at] != _JPEG_FILL:
            raise _DamagedError("the JPEG breaks off")
        marker = file[at + 1]
        if marker in _JPEG_OTHER_KINDS:
            raise _DamagedError("of JPEGs, only baseline and progressive ones are taken")
        if marker in _JPEG_SIZES:
            size = int.from_bytes(file[at + 7 : at + 9]), int.from_bytes(file[at + 5 : at + 7])
        at += 1 if marker == _JPEG_FILL else 2 + int.from_bytes(file[at + 2 : at + 4])
        if marker == _JPEG_SCAN:
            break
    if not all(size) or file.find(_JPEG_END, at) < 0:
        raise _DamagedError("the JPEG breaks off")
    return size
