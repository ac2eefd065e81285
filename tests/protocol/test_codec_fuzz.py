from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omni_realtime.protocol import (
    Capabilities,
    ConversationItemCreate,
    ProtocolError,
    ResponseCreate,
    SessionConfig,
    SessionUpdate,
    check_item,
    decode,
    response_settings,
    update_session,
)

KINDS = [
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "output_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.delete",
    "conversation.item.retrieve",
    "conversation.item.truncate",
    "response.create",
    "response.cancel",
]
KEYS = st.sampled_from(
    """
    type event_id session audio input output format transcription turn_detection noise_reduction voice speed rate threshold tools
    tool_choice name parameters item previous_item_id role content text transcript image_url arguments call_id item_id content_index
    audio_end_ms response conversation metadata instructions output_modalities max_output_tokens model prompt include tracing
    truncation id object status eagerness retention_ratio language
    """.split()  # noqa: SIM905 - reads better
)
WORDS = st.sampled_from(
    """
    realtime message user system assistant input_text input_audio input_image output_text output_audio function function_call
    function_call_output item_reference mcp server_vad semantic_vad audio/pcm audio/pcmu auto none required inf text audio AAAA root
    retention_ratio disabled whisper-1 anna alloy served
    """.split()  # noqa: SIM905 - reads better
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=5), max_leaves=25
)
EVENTS = st.builds(lambda kind, fields: {**fields, "type": kind}, st.sampled_from(KINDS) | WORDS, st.dictionaries(KEYS, VALUES, max_size=6))


def typed(kind: str) -> Any:
    return st.builds(lambda fields: {**fields, "type": kind}, st.dictionaries(KEYS, VALUES, max_size=6))


def dig(text: str, session: SessionConfig, capabilities: Capabilities) -> None:
    """Take a frame as far as the codec goes."""
    event = decode(text)
    if isinstance(event, SessionUpdate):
        update_session(session, event.session, capabilities, default=session, voice_locked=True)
    if isinstance(event, ResponseCreate):
        response_settings(session, event.response, capabilities)
    if isinstance(event, ConversationItemCreate):
        check_item(event.item, capabilities)


def assert_tells(error: ProtocolError) -> None:
    assert error.message
    assert error.code
    assert error.type == "invalid_request_error"
    assert len(error.message) < 2000


fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=150)


@fuzz
@given(text=st.text() | VALUES.map(lambda value: orjson.dumps(value).decode()))
def test_any_text_decodes_or_is_refused(text: str) -> None:
    try:
        decode(text)
    except ProtocolError as error:
        assert_tells(error)


@fuzz
@given(
    event=EVENTS
    | typed("realtime").map(lambda session: {"type": "session.update", "session": session})
    | VALUES.map(lambda response: {"type": "response.create", "response": response})
    | (typed("message") | typed("function_call") | typed("function_call_output")).map(
        lambda item: {"type": "conversation.item.create", "item": item}
    )
)
def test_any_event_is_taken_or_refused(event: dict[str, Any], session: SessionConfig, capabilities: Capabilities) -> None:
    try:
        dig(orjson.dumps(event).decode(), session, capabilities)
    except ProtocolError as error:
        assert_tells(error)


@fuzz
@given(frame=st.binary())
def test_binary_frames_are_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(frame)
