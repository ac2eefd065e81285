"""What a client can say, decoded: one frozen value per event of the GA vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from omni_realtime.protocol.items import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdate:
    """A partial session object; absent, null and object are three things, so it stays as it came."""

    type: ClassVar[str] = "session.update"
    session: Mapping[str, Any]
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferAppend:
    """Audio in the session's input format."""

    type: ClassVar[str] = "input_audio_buffer.append"
    audio: bytes
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferCommit:
    """Make a user message of the buffer."""

    type: ClassVar[str] = "input_audio_buffer.commit"
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferClear:
    """Empty the buffer."""

    type: ClassVar[str] = "input_audio_buffer.clear"
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemCreate:
    """Put an item into the conversation."""

    type: ClassVar[str] = "conversation.item.create"
    item: Item
    previous_item_id: str | None = None
    """An item's id, ``root`` for the front, ``None`` for the end."""
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemDelete:
    """Take an item out of the conversation."""

    type: ClassVar[str] = "conversation.item.delete"
    item_id: str
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemRetrieve:
    """Ask for an item with its audio."""

    type: ClassVar[str] = "conversation.item.retrieve"
    item_id: str
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemTruncate:
    """Cut an assistant's speech to what was heard."""

    type: ClassVar[str] = "conversation.item.truncate"
    item_id: str
    content_index: int
    audio_end_ms: int
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCreate:
    """Ask for a response; ``response`` holds the parameters that the client gave, as they came."""

    type: ClassVar[str] = "response.create"
    response: Mapping[str, Any] = field(default_factory=dict)
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCancel:
    """Stop a response: the one named, else the conversation's."""

    type: ClassVar[str] = "response.cancel"
    response_id: str | None = None
    event_id: str | None = None


ClientEvent: TypeAlias = (
    SessionUpdate
    | InputAudioBufferAppend
    | InputAudioBufferCommit
    | InputAudioBufferClear
    | ConversationItemCreate
    | ConversationItemDelete
    | ConversationItemRetrieve
    | ConversationItemTruncate
    | ResponseCreate
    | ResponseCancel
)
