"""Conversation items as clients send them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from omni_realtime.protocol.base64_audio import decode_audio
from omni_realtime.protocol.image_data import decode_image
from omni_realtime.protocol.items import (
    Content,
    FunctionCall,
    FunctionCallOutput,
    ImageDetail,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemReference,
    ItemStatus,
    Message,
    OutputAudio,
    OutputText,
)
from omni_realtime.protocol.session_object import Sequence
from omni_realtime.protocol.validation import WireModel, pick, refuse_missing, refuse_type, refuse_unknown, refuse_value, validate

_MAX_ID = 64


class _Item(WireModel):
    """What all items share; the service decides the status, so a client's is taken and not used."""

    type: str
    id: str | None = Field(default=None, min_length=1, max_length=_MAX_ID)
    object: Literal["realtime.item"] | None = None
    status: ItemStatus | None = None


class _Part(WireModel):
    """The fields of all parts; each type has its own of them."""

    type: str
    text: str | None = None
    audio: str | None = None
    transcript: str | None = None
    image_url: str | None = None
    detail: ImageDetail | None = None


class _Message(_Item):
    role: str
    content: Sequence[Any]


class _FunctionCall(_Item):
    call_id: str | None = Field(default=None, min_length=1, max_length=_MAX_ID)
    name: str = Field(min_length=1)
    arguments: str


class _FunctionCallOutput(_Item):
    call_id: str = Field(min_length=1, max_length=_MAX_ID)
    output: str


class _Reference(WireModel):
    type: str
    id: str = Field(min_length=1, max_length=_MAX_ID)


def _input_text(part: _Part, param: str) -> Content:
    return InputText(text=_given(part.text, f"{param}.text"))


def _input_audio(part: _Part, param: str) -> Content:
    if part.audio is None and part.transcript is None:
        refuse_missing(f"{param}.audio")
    audio = None if part.audio is None else decode_audio(part.audio, f"{param}.audio")
    return InputAudio(audio=audio, transcript=part.transcript)


def _input_image(part: _Part, param: str) -> Content:
    image, media_type = decode_image(_given(part.image_url, f"{param}.image_url"), f"{param}.image_url")
    return InputImage(image=image, media_type=media_type, detail=part.detail or "auto")


def _output_text(part: _Part, param: str) -> Content:
    return OutputText(text=_given(part.text, f"{param}.text"))


def _output_audio(part: _Part, param: str) -> Content:
    if part.audio is not None:
        refuse_value(f"{param}.audio", "a client cannot bring assistant audio; send its transcript.")
    return OutputAudio(transcript=_given(part.transcript, f"{param}.transcript"))


_PARTS: dict[str, tuple[Callable[[_Part, str], Content], frozenset[str]]] = {
    "input_text": (_input_text, frozenset({"text"})),
    "input_audio": (_input_audio, frozenset({"audio", "transcript"})),
    "input_image": (_input_image, frozenset({"image_url", "detail"})),
    "output_text": (_output_text, frozenset({"text"})),
    "output_audio": (_output_audio, frozenset({"audio", "transcript"})),
}
_PARTS_OF_ROLE: dict[Literal["system", "user", "assistant"], tuple[str, ...]] = {
    "system": ("input_text",),
    "user": ("input_text", "input_audio", "input_image"),
    "assistant": ("output_text", "output_audio"),
}


def decode_item(value: Mapping[str, Any], param: str = "item") -> Item:
    """Return the item of a parsed JSON value.

    Raises:
        ProtocolError: the value is no item that a client can bring; ``param`` is the path of the fault, below the path given.
    """
    item = _ITEMS[pick(value, "type", _ITEMS, param)](value, param)
    if item.id == "root":
        refuse_value(f"{param}.id", "'root' stands for the front of the conversation; choose another id.")
    return item


def decode_input_item(value: Mapping[str, Any], param: str) -> Item | ItemReference:
    """Return an item of ``response.input``, which may refer to one of the conversation.

    Raises:
        ProtocolError: the value is neither.
    """
    if value.get("type") == "item_reference":
        return ItemReference(id=validate(_Reference, value, param).id)
    return decode_item(value, param)


def _message(value: Mapping[str, Any], param: str) -> Message:
    message = validate(_Message, value, param)
    role = pick(value, "role", _PARTS_OF_ROLE, param)
    content = tuple(_part(part, _PARTS_OF_ROLE[role], f"{param}.content.{index}") for index, part in enumerate(message.content))
    return Message(id=message.id or "", role=role, content=content)


def _part(value: object, types: tuple[str, ...], param: str) -> Content:
    if not isinstance(value, Mapping):
        refuse_type(param, "an object", value)
    build, own = _PARTS[pick(value, "type", types, param)]
    part = validate(_Part, value, param)
    for name, given in part:
        if given is not None and name != "type" and name not in own:
            refuse_unknown(f"{param}.{name}")
    return build(part, param)


def _function_call(value: Mapping[str, Any], param: str) -> FunctionCall:
    call = validate(_FunctionCall, value, param)
    return FunctionCall(id=call.id or "", call_id=call.call_id or "", name=call.name, arguments=call.arguments)


def _function_call_output(value: Mapping[str, Any], param: str) -> FunctionCallOutput:
    output = validate(_FunctionCallOutput, value, param)
    return FunctionCallOutput(id=output.id or "", call_id=output.call_id, output=output.output)


_ITEMS: dict[str, Callable[[Mapping[str, Any], str], Item]] = {
    "message": _message,
    "function_call": _function_call,
    "function_call_output": _function_call_output,
}


def _given(value: str | None, param: str) -> str:
    if value is None:
        refuse_missing(param)
    return value
