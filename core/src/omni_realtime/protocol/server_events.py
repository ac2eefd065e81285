"""What the server can say on a WebSocket: one frozen value per event of the GA vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from omni_realtime.protocol.items import Item
from omni_realtime.protocol.response import ContentPart, Response
from omni_realtime.protocol.session_object import SessionConfig
from omni_realtime.protocol.transcript import TokenLogprob


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """What all server events share."""

    type: ClassVar[str]
    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCreated(ServerEvent):
    """The session as it stands at the start."""

    type: ClassVar[str] = "session.created"
    session: SessionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdated(ServerEvent):
    """The whole session as it is now in force."""

    type: ClassVar[str] = "session.updated"
    session: SessionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(ServerEvent):
    """A client event was refused, or the session is about to end; ``client_event_id`` names the client's event."""

    type: ClassVar[str] = "error"
    error_type: str
    message: str
    code: str | None = None
    param: str | None = None
    client_event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemAdded(ServerEvent):
    """An item entered the conversation behind ``previous_item_id``."""

    type: ClassVar[str] = "conversation.item.added"
    item: Item
    previous_item_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemDone(ServerEvent):
    """An item of the conversation is finished."""

    type: ClassVar[str] = "conversation.item.done"
    item: Item
    previous_item_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemDeleted(ServerEvent):
    """An item left the conversation."""

    type: ClassVar[str] = "conversation.item.deleted"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemRetrieved(ServerEvent):
    """An item with its audio."""

    type: ClassVar[str] = "conversation.item.retrieved"
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItemTruncated(ServerEvent):
    """An assistant's speech was cut."""

    type: ClassVar[str] = "conversation.item.truncated"
    item_id: str
    content_index: int
    audio_end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioTranscriptionDelta(ServerEvent):
    """A piece of what the user said, with its ``logprobs`` where the session includes them."""

    type: ClassVar[str] = "conversation.item.input_audio_transcription.delta"
    item_id: str
    content_index: int
    delta: str
    logprobs: tuple[TokenLogprob, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioTranscriptionCompleted(ServerEvent):
    """What the user said in ``seconds`` of audio, with its ``logprobs`` where the session includes them."""

    type: ClassVar[str] = "conversation.item.input_audio_transcription.completed"
    item_id: str
    content_index: int
    transcript: str
    seconds: float
    logprobs: tuple[TokenLogprob, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioTranscriptionFailed(ServerEvent):
    """The user's audio could not be written down."""

    type: ClassVar[str] = "conversation.item.input_audio_transcription.failed"
    item_id: str
    content_index: int
    error_type: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferCommitted(ServerEvent):
    """The buffer became a user message."""

    type: ClassVar[str] = "input_audio_buffer.committed"
    item_id: str
    previous_item_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferCleared(ServerEvent):
    """The buffer is empty."""

    type: ClassVar[str] = "input_audio_buffer.cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferSpeechStarted(ServerEvent):
    """Speech began, prefix padding included."""

    type: ClassVar[str] = "input_audio_buffer.speech_started"
    item_id: str
    audio_start_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferSpeechStopped(ServerEvent):
    """Speech ended, the silence window included."""

    type: ClassVar[str] = "input_audio_buffer.speech_stopped"
    item_id: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAudioBufferTimeoutTriggered(ServerEvent):
    """Nothing was said for ``idle_timeout_ms`` after the last response had played."""

    type: ClassVar[str] = "input_audio_buffer.timeout_triggered"
    item_id: str
    audio_start_ms: int
    audio_end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCreated(ServerEvent):
    """A response begins."""

    type: ClassVar[str] = "response.created"
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseDone(ServerEvent):
    """A response ended; nothing of it follows."""

    type: ClassVar[str] = "response.done"
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """One limit of a deployment; ``reset_seconds`` is how long it takes to be whole again."""

    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitsUpdated(ServerEvent):
    """How the deployment's limits stand as a response begins."""

    type: ClassVar[str] = "rate_limits.updated"
    rate_limits: tuple[RateLimit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputItemAdded(ServerEvent):
    """A response began an item."""

    type: ClassVar[str] = "response.output_item.added"
    response_id: str
    output_index: int
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputItemDone(ServerEvent):
    """A response finished an item."""

    type: ClassVar[str] = "response.output_item.done"
    response_id: str
    output_index: int
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseContentPartAdded(ServerEvent):
    """A message began a part."""

    type: ClassVar[str] = "response.content_part.added"
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    part: ContentPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseContentPartDone(ServerEvent):
    """A message finished a part."""

    type: ClassVar[str] = "response.content_part.done"
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    part: ContentPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputTextDelta(ServerEvent):
    """New text."""

    type: ClassVar[str] = "response.output_text.delta"
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputTextDone(ServerEvent):
    """All text of a part."""

    type: ClassVar[str] = "response.output_text.done"
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputAudioDelta(ServerEvent):
    """New audio in the response's output format; base64 happens at encoding."""

    type: ClassVar[str] = "response.output_audio.delta"
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputAudioDone(ServerEvent):
    """A part's audio is complete."""

    type: ClassVar[str] = "response.output_audio.done"
    response_id: str
    item_id: str
    output_index: int
    content_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputAudioTranscriptDelta(ServerEvent):
    """New transcript of the audio."""

    type: ClassVar[str] = "response.output_audio_transcript.delta"
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutputAudioTranscriptDone(ServerEvent):
    """All transcript of a part."""

    type: ClassVar[str] = "response.output_audio_transcript.done"
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFunctionCallArgumentsDelta(ServerEvent):
    """New argument text of a call."""

    type: ClassVar[str] = "response.function_call_arguments.delta"
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFunctionCallArgumentsDone(ServerEvent):
    """A call's arguments are complete."""

    type: ClassVar[str] = "response.function_call_arguments.done"
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    name: str
    arguments: str
