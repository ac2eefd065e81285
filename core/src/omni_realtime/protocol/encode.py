"""Server events: from a value to a frame of the socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any

import pybase64

from omni_realtime.protocol.frame import to_frame
from omni_realtime.protocol.item_encode import item_to_wire
from omni_realtime.protocol.items import FunctionCall, FunctionCallOutput, Message
from omni_realtime.protocol.response import ContentPart, Response, Usage
from omni_realtime.protocol.server_events import (
    ConversationItemRetrieved,
    ErrorEvent,
    InputAudioTranscriptionCompleted,
    InputAudioTranscriptionDelta,
    InputAudioTranscriptionFailed,
    RateLimitsUpdated,
    ResponseOutputAudioDelta,
    ServerEvent,
)
from omni_realtime.protocol.session_object import FORMATS, SessionConfig, to_wire
from omni_realtime.protocol.transcript import TokenLogprob

_Json = dict[str, Any]


def encode(event: ServerEvent) -> str:
    """Return the text frame of a server event."""
    return to_frame(event_to_wire(event))


def event_to_wire(event: ServerEvent) -> _Json:
    """Return the JSON object of a server event."""
    body = _BODIES.get(type(event), _body)(event)
    return {"type": event.type, "event_id": event.event_id, **body}


def response_to_wire(response: Response) -> _Json:
    """Return the API's response resource; its items come without audio."""
    output: _Json = {"format": FORMATS[response.output_format]().model_dump()}
    if response.voice is not None:
        output["voice"] = response.voice
    return {
        "object": "realtime.response",
        "id": response.id,
        "status": response.status,
        "status_details": _status_details(response),
        "output": [item_to_wire(item) for item in response.output],
        "conversation_id": response.conversation_id,
        "output_modalities": response.output_modalities,
        "max_output_tokens": response.max_output_tokens,
        "audio": {"output": output},
        "usage": None if response.usage is None else _usage(response.usage),
        "metadata": None if response.metadata is None else dict(response.metadata),
    }


def _body(event: ServerEvent) -> _Json:
    """Every field under its own name; the events with other names on the wire stand in ``_BODIES``."""
    return {field.name: _plain(getattr(event, field.name)) for field in fields(event) if field.name != "event_id"}


def _plain(value: object) -> object:
    return _PLAIN[type(value)](value) if type(value) in _PLAIN else value


def _status_details(response: Response) -> _Json | None:
    details = response.status_details
    if details is None:
        return None
    wire: _Json = {"type": response.status}
    if details.reason is not None:
        wire["reason"] = details.reason
    if (error := details.error) is not None:
        wire["error"] = {"type": error.type, "code": error.code, "message": error.message}
    return wire


def _usage(usage: Usage) -> _Json:
    return {
        "total_tokens": usage.total_tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_token_details": {
            "text_tokens": usage.input_text_tokens,
            "audio_tokens": usage.input_audio_tokens,
            "image_tokens": usage.input_image_tokens,
            "cached_tokens": usage.cached_text_tokens + usage.cached_audio_tokens + usage.cached_image_tokens,
            "cached_tokens_details": {
                "text_tokens": usage.cached_text_tokens,
                "audio_tokens": usage.cached_audio_tokens,
                "image_tokens": usage.cached_image_tokens,
            },
        },
        "output_token_details": {"text_tokens": usage.output_text_tokens, "audio_tokens": usage.output_audio_tokens},
    }


def _content_part(part: ContentPart) -> _Json:
    return {"type": part.type, "transcript" if part.type == "audio" else "text": part.text}


def _rate_limits(event: RateLimitsUpdated) -> _Json:
    return {"rate_limits": [asdict(limit) for limit in event.rate_limits]}


def _audio_delta(event: ResponseOutputAudioDelta) -> _Json:
    return {
        "response_id": event.response_id,
        "item_id": event.item_id,
        "output_index": event.output_index,
        "content_index": event.content_index,
        "delta": pybase64.b64encode_as_string(event.delta),
    }


def _error(event: ErrorEvent) -> _Json:
    error = {
        "type": event.error_type,
        "code": event.code,
        "message": event.message,
        "param": event.param,
        "event_id": event.client_event_id,
    }
    return {"error": error}


def _retrieved(event: ConversationItemRetrieved) -> _Json:
    return {"item": item_to_wire(event.item, audio=True)}


def _transcription_delta(event: InputAudioTranscriptionDelta) -> _Json:
    return {"item_id": event.item_id, "content_index": event.content_index, "delta": event.delta, **_logprobs(event.logprobs)}


def _transcription_completed(event: InputAudioTranscriptionCompleted) -> _Json:
    return {
        "item_id": event.item_id,
        "content_index": event.content_index,
        "transcript": event.transcript,
        "usage": {"type": "duration", "seconds": event.seconds},
        **_logprobs(event.logprobs),
    }


def _logprobs(logprobs: Sequence[TokenLogprob] | None) -> _Json:
    return {} if logprobs is None else {"logprobs": [_logprob(each) for each in logprobs]}


def _logprob(one: TokenLogprob) -> _Json:
    return {"token": one.token, "bytes": list(one.token.encode(errors="replace")), "logprob": one.logprob}


def _transcription_failed(event: InputAudioTranscriptionFailed) -> _Json:
    error = {"type": event.error_type, "code": event.code, "message": event.message}
    return {"item_id": event.item_id, "content_index": event.content_index, "error": error}


_BODIES: Mapping[type[ServerEvent], Callable[[Any], _Json]] = MappingProxyType({
    ConversationItemRetrieved: _retrieved,
    ErrorEvent: _error,
    RateLimitsUpdated: _rate_limits,
    InputAudioTranscriptionCompleted: _transcription_completed,
    InputAudioTranscriptionDelta: _transcription_delta,
    InputAudioTranscriptionFailed: _transcription_failed,
    ResponseOutputAudioDelta: _audio_delta,
})
_PLAIN: Mapping[type, Callable[[Any], _Json]] = MappingProxyType({
    ContentPart: _content_part,
    FunctionCall: item_to_wire,
    FunctionCallOutput: item_to_wire,
    Message: item_to_wire,
    Response: response_to_wire,
    SessionConfig: to_wire,
})
