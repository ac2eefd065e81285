"""Images as vLLM's processor takes them."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from omni_realtime.chat import ImagePart
from omni_realtime.engine.port import EngineError

if TYPE_CHECKING:
    from PIL import Image

LOW_DETAIL_SIDE: Final = 512
"""Pixels of the longer side of an image with ``detail: low``, as in OpenAI's API; otherwise the model's own processor chooses."""
LEAST_SIDE: Final = 8
"""Pixels of the shorter side to which an image is enlarged; processors take sides of 1 or 3 for the channels of colour."""

_sound: WeakSet[ImagePart] = WeakSet()
_resized: WeakKeyDictionary[ImagePart, Image.Image] = WeakKeyDictionary()


class BrokenImageError(EngineError):
    """An image cannot be decoded."""

    def __init__(self) -> None:
        super().__init__("An image of the conversation cannot be decoded: delete its item, and send it anew.", code="invalid_image")


def processor_images(parts: Iterable[ImagePart]) -> list[Any]:
    """The images, in vLLM's wrapper: as they have keys of their own, they are neither hashed nor, once the processor has them, decoded.

    An image is decoded here the first time that it is seen, for vLLM would take what it cannot decode for a black one; from then on only
    its header is read. Call it off the event loop.

    Raises:
        BrokenImageError: if an image cannot be decoded.
    """
    from vllm.multimodal.media import MediaWithBytes  # noqa: PLC0415 - vLLM is there once an engine runs

    return [MediaWithBytes(_image(part), part.data) for part in parts]


def _image(part: ImagePart) -> Image.Image:
    if part in _resized:
        return _resized[part]
    from PIL import Image  # noqa: PLC0415 - comes with vLLM

    try:
        image: Image.Image = Image.open(BytesIO(part.data), formats=("PNG", "JPEG"))
        if part not in _sound:
            image = _decoded(image, part)
    except Exception as error:  # decoders of images raise what they like
        raise BrokenImageError from error
    _sound.add(part)
    return image


def _decoded(image: Image.Image, part: ImagePart) -> Image.Image:
    """The image, decoded; in another size where its detail or its smallness asks for it."""
    enlarge = -(-LEAST_SIDE // min(image.size))
    if part.detail == "low":
        image.thumbnail((LOW_DETAIL_SIDE, LOW_DETAIL_SIDE))
    if enlarge > 1:
        image = image.resize((image.width * enlarge, image.height * enlarge))
    if enlarge > 1 or part.detail == "low":
        _resized[part] = image
    image.load()
    return image
