"""Every code that a server can send, and the client's events that bring it about."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

Event = dict[str, Any]

ANSWER = "$answer"
"""Stands for the id of a finished spoken answer in the conversation."""

_PCM = {"type": "audio/pcm", "rate": 24000}
_MEBIBYTE = 1024 * 1024
_UNKNOWN = "item_unknown"


def provocations() -> list[dict[str, Any]]:
    """List what to send, and what must come back.

    Each has a ``name``, what to ``send`` (events; ``{"raw": text}`` or ``{"binary": text}`` is a frame as it is), the ``code`` that must
    come ``in`` an ``error``, a ``response.done`` or an ``...input_audio_transcription.failed``, and events that ``restore`` the session.
    """
    return [*_REFUSED, *_refused_at_length(), *_failed(), _untranscribed()]


def _refusal(code: str | None, *send: Event, name: str | None = None, restore: tuple[Event, ...] = ()) -> dict[str, Any]:
    return {"name": name or code, "code": code, "in": "error", "send": list(send), "restore": list(restore)}


def _update(**session: Any) -> Event:
    return {"type": "session.update", "session": {"type": "realtime", **session}}


def _message(text: str, **fields: Any) -> Event:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}], **fields}
    return {"type": "conversation.item.create", "item": item}


def _item(doing: str, item_id: str, **fields: Any) -> Event:
    return {"type": f"conversation.item.{doing}", "item_id": item_id, **fields}


_RESPOND: Event = {"type": "response.create"}
_ASIDE: Event = {"type": "response.create", "response": {"conversation": "none", "input": [_message("Tell me a long story.")["item"]]}}

_REFUSED = [
    _refusal("invalid_json", {"raw": '{"type": "response.create"'}),
    _refusal("invalid_frame", {"binary": '{"type": "response.create"}'}),
    _refusal("invalid_type", {"raw": "[]"}, name="invalid_type of an event"),
    _refusal("invalid_type", _update(instructions=5)),
    _refusal("invalid_value", {"type": "response.begin"}),
    _refusal("missing_required_parameter", {"type": "session.update", "session": {}}),
    _refusal("unknown_parameter", _update(colour="blue")),
    _refusal("cannot_update_voice", _update(audio={"output": {"voice": "ben"}})),
    _refusal("response_cancel_not_active", {"type": "response.cancel"}),
    _refusal("conversation_already_has_active_response", _message("Tell me a long story."), _RESPOND, _RESPOND),
    _refusal("too_many_responses", *[_ASIDE] * 9),
    _refusal("input_audio_buffer_commit_empty", {"type": "input_audio_buffer.clear"}, {"type": "input_audio_buffer.commit"}),
    _refusal("item_create_duplicate_item_id", *[_message("Hello.", id="item_twice")] * 2, restore=(_item("delete", "item_twice"),)),
    _refusal("item_delete_invalid_item_id", _item("delete", _UNKNOWN)),
    _refusal("item_retrieve_invalid_item_id", {**_item("retrieve", _UNKNOWN), "event_id": f"rci_{_UNKNOWN}"}),
    _refusal("item_truncate_invalid_item_id", _item("truncate", _UNKNOWN, content_index=0, audio_end_ms=0)),
    _refusal(None, _item("truncate", ANSWER, content_index=0, audio_end_ms=3_600_000), name="truncation beyond the audio"),
    _refusal(
        "unsupported_content_type",
        _message("Hello.", id="item_typed"),
        _item("truncate", "item_typed", content_index=0, audio_end_ms=0),
        restore=(_item("delete", "item_typed"),),
    ),
]


def _refused_at_length() -> list[dict[str, Any]]:
    depth, items = 200, [f"item_{n}" for n in range(18)]
    long_ago = [_message("x" * (_MEBIBYTE - 1024), id=item) for item in items]
    silence = {"type": "input_audio_buffer.append", "audio": "AAAA" * (_MEBIBYTE // 3 + 1)}
    return [
        _refusal("event_too_deep", {"type": "session.update", "session": _nested(depth)}),
        _refusal("event_too_large", {"type": "input_audio_buffer.append", "audio": "A" * (21 * _MEBIBYTE)}),
        _refusal("input_audio_buffer_full", silence),
        {
            "name": "a prompt beyond the model's context",
            "code": "context_length_exceeded",
            "in": "response.done",
            "send": [_update(truncation="disabled"), _message("word " * 40_000, id="item_long"), _RESPOND],
            "restore": [_item("delete", "item_long"), _update(truncation="auto")],
        },
        _refusal("conversation_full", *long_ago, restore=tuple(_item("delete", item) for item in items[:-1])),
    ]


def _nested(depth: int) -> Event:
    value: Event = {}
    for _ in range(depth):
        value = {"prompt": value}
    return value


ENGINE_CODES = (
    "context_length_exceeded",
    "engine_refused",
    "engine_unavailable",
    "invalid_image",
    "invalid_prompt",
    "invalid_tool_call",
    "invalid_tool_schema",
    "rate_limit_exceeded",
    "server_error",
)
"""What a failed response can say."""


def _failed() -> list[dict[str, Any]]:
    return [
        {
            "name": f"a response that fails with {code}",
            "code": code,
            "in": "response.done",
            "send": [_message(f"Fail with {code}"), _RESPOND],
            "restore": [],
        }
        for code in ENGINE_CODES
    ]


def _untranscribed() -> dict[str, Any]:
    audio = base64.b64encode(b"".join(struct.pack("<h", round(9000 * math.sin(2 * math.pi * 1600 * n / 24000))) for n in range(24000)))
    return {
        "name": "a transcription that fails",
        "code": "transcription_unavailable",
        "in": "conversation.item.input_audio_transcription.failed",
        "send": [
            _update(audio={"input": {"format": _PCM, "turn_detection": None, "transcription": {"model": "whisper-1"}}}),
            {"type": "input_audio_buffer.append", "audio": audio.decode()},
            {"type": "input_audio_buffer.commit"},
        ],
        "restore": [],
    }
