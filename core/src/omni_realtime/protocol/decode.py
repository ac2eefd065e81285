"""Client events: from a frame of the socket to a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson
from pydantic import Field

from omni_realtime.protocol.base64_audio import MAX_AUDIO_BYTES, decode_audio
from omni_realtime.protocol.client_events import (
    ClientEvent,
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemRetrieve,
    ConversationItemTruncate,
    InputAudioBufferAppend,
    InputAudioBufferClear,
    InputAudioBufferCommit,
    ResponseCancel,
    ResponseCreate,
    SessionUpdate,
)
from omni_realtime.protocol.errors import ProtocolError
from omni_realtime.protocol.item_decode import decode_item
from omni_realtime.protocol.validation import WireModel, pick, refuse_value, validate

_MAX_EVENT_ID = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """How much one event may hold."""

    frame_chars: int = 21 * 1024 * 1024
    """Characters of a frame; above the base64 of ``audio_bytes``."""
    audio_bytes: int = MAX_AUDIO_BYTES
    """Bytes of one ``input_audio_buffer.append``, decoded."""
    depth: int = 64
    """Objects and arrays within each other."""


DEFAULT_LIMITS: Final = DecodeLimits()

Translate: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class _Event(WireModel):
    type: str
    event_id: str | None = Field(default=None, max_length=_MAX_EVENT_ID)


class _Append(_Event):
    audio: str


class _SessionUpdate(_Event):
    session: dict[str, Any]


class _ItemCreate(_Event):
    item: dict[str, Any]
    previous_item_id: str | None = None


class _ItemId(_Event):
    item_id: str


class _Truncate(_ItemId):
    content_index: int
    audio_end_ms: int


class _ResponseCreate(_Event):
    response: dict[str, Any] | None = None


class _ResponseCancel(_Event):
    response_id: str | None = None


_EVENTS: dict[str, tuple[type[_Event], type[ClientEvent]]] = {
    "session.update": (_SessionUpdate, SessionUpdate),
    "input_audio_buffer.append": (_Append, InputAudioBufferAppend),
    "input_audio_buffer.commit": (_Event, InputAudioBufferCommit),
    "input_audio_buffer.clear": (_Event, InputAudioBufferClear),
    "conversation.item.create": (_ItemCreate, ConversationItemCreate),
    "conversation.item.delete": (_ItemId, ConversationItemDelete),
    "conversation.item.retrieve": (_ItemId, ConversationItemRetrieve),
    "conversation.item.truncate": (_Truncate, ConversationItemTruncate),
    "response.create": (_ResponseCreate, ResponseCreate),
    "response.cancel": (_ResponseCancel, ResponseCancel),
}
_APPEND_KEYS = frozenset({"type", "event_id", "audio"})


def decode(frame: str | bytes, *, limits: DecodeLimits = DEFAULT_LIMITS, translate: Translate | None = None) -> ClientEvent:
    """Return the client event of one frame; ``translate`` makes GA's JSON of another dialect's.

    Raises:
        ProtocolError: the frame is no event of the GA vocabulary; ``param`` names the fault and ``event_id`` is the client's, where
            the frame has one.
    """
    value = _parse(frame, limits)
    try:
        return _append(value, limits) or _decode(value, limits, translate)
    except ProtocolError as error:
        error.event_id = _event_id(value)
        raise


def _parse(frame: str | bytes, limits: DecodeLimits) -> dict[str, Any]:
    if isinstance(frame, bytes):
        raise ProtocolError("Binary frames are not taken: send each event as JSON in a text frame.", code="invalid_frame")
    if len(frame) > limits.frame_chars:
        raise ProtocolError(
            f"The event has {len(frame)} characters; send at most {limits.frame_chars} in one event.", code="event_too_large"
        )
    try:
        value = orjson.loads(frame)
    except orjson.JSONDecodeError as error:
        raise ProtocolError(f"The event is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise ProtocolError('The event is not a JSON object such as {"type": "response.create"}.', code="invalid_type")
    return value


def _event_id(value: Mapping[str, Any]) -> str | None:
    event_id = value.get("event_id")
    return event_id if isinstance(event_id, str) and len(event_id) <= _MAX_EVENT_ID else None


def _append(value: dict[str, Any], limits: DecodeLimits) -> InputAudioBufferAppend | None:
    """Decode every append of the right shape without pydantic: it comes dozens of times a second. The others are refused below."""
    if value.get("type") != "input_audio_buffer.append" or not value.keys() <= _APPEND_KEYS or not isinstance(value.get("audio"), str):
        return None
    event_id = _event_id(value)
    if event_id != value.get("event_id"):
        return None
    return InputAudioBufferAppend(audio=decode_audio(value["audio"], "audio", limits.audio_bytes), event_id=event_id)


def _decode(value: dict[str, Any], limits: DecodeLimits, translate: Translate | None) -> ClientEvent:
    if is_deeper(value, limits.depth):
        raise ProtocolError(f"The event is nested more than {limits.depth} deep.", code="event_too_deep")
    if translate:
        value = translate(value)
    if value.get("type") == "output_audio_buffer.clear":
        refuse_value("type", "'output_audio_buffer.clear' is for WebRTC and SIP; on a WebSocket, stop the playback and truncate the item.")
    wire, event = _EVENTS[pick(value, "type", _EVENTS)]
    fields = {name: given for name, given in validate(wire, value, "") if given is not None and name != "type"}
    if event is ConversationItemCreate:
        fields["item"] = decode_item(fields["item"])
    return event(**fields)


def is_deeper(value: object, limit: int) -> bool:
    """Return whether a JSON value has more than ``limit`` objects and arrays within each other."""
    level = [value]
    for _ in range(limit + 1):  # level by level: a hostile depth must not become recursion
        if not level:
            return False
        level = [inner for outer in level for inner in _inner(outer) if isinstance(inner, (dict, list))]
    return True


def _inner(value: object) -> Any:
    return value.values() if isinstance(value, dict) else value
