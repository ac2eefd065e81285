"""Conversation items and their content parts, as values.

An item that a client sends may lack its id (``""``); every item of a conversation has one. Audio is raw bytes in the format that the
session had when it crossed the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from omni_realtime.protocol.image_data import ImageMediaType

ItemStatus: TypeAlias = Literal["completed", "incomplete", "in_progress"]
ImageDetail: TypeAlias = Literal["auto", "low", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputText:
    """Text of a user or system message."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudio:
    """Audio of a user message."""

    audio: bytes | None = None
    transcript: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputImage:
    """An image of a user message."""

    image: bytes | None = None
    """The whole file."""
    media_type: ImageMediaType = "image/png"
    detail: ImageDetail = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputText:
    """Text of an assistant message."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAudio:
    """Speech of an assistant message and its transcript."""

    transcript: str
    audio: bytes | None = None


Content: TypeAlias = InputText | InputAudio | InputImage | OutputText | OutputAudio


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of the system, the user or the assistant."""

    id: str = ""
    role: Literal["system", "user", "assistant"]
    content: tuple[Content, ...]
    status: ItemStatus = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call that the model made; ``arguments`` is JSON text."""

    id: str = ""
    call_id: str = ""
    name: str
    arguments: str
    status: ItemStatus = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCallOutput:
    """The client's answer to a function call."""

    id: str = ""
    call_id: str
    output: str
    status: ItemStatus = "completed"


Item: TypeAlias = Message | FunctionCall | FunctionCallOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReference:
    """Stands for an item of the conversation in ``response.input``."""

    id: str
