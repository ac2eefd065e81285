"""The beta dialect as a translation: every event has one, both ways, and what is said in it is valid by its own official classes."""

from __future__ import annotations

import contextlib
import json
import re
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.beta.realtime import RealtimeClientEvent
from openai.types.realtime import RealtimeServerEvent

from beta_wire import beta_server_events, check_beta_event
from omni_realtime.protocol import (
    BetaDialect,
    Capabilities,
    ContentPart,
    DecodeLimits,
    ErrorEvent,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputText,
    Message,
    OutputAudio,
    OutputText,
    ProtocolError,
    Response,
    ResponseError,
    SessionConfig,
    StatusDetails,
    Usage,
    client_events,
    decode,
    default_session,
    open_session,
    response_settings,
    server_events,
    update_session,
)
from omni_realtime.protocol.beta import CLIENT_EVENTS, RESPONSE, SERVER_EVENTS, SESSION, to_beta, to_ga
from omni_realtime.protocol.server_events import RateLimit, ServerEvent

DOCS = Path(__file__).parents[2] / "docs" / "beta_dialect.md"

HEARD = Message(id="item_1", role="user", content=(InputText(text="x"), InputAudio(audio=b"\1\2", transcript=None)))
SPOKEN = Message(id="item_2", role="assistant", content=(OutputAudio(transcript="hi", audio=b"\1\2"), OutputText(text="ho")))
OPEN = Message(id="item_3", role="assistant", content=(), status="in_progress")
CALL = FunctionCall(id="item_4", call_id="call_1", name="f", arguments="{}")
ANSWER = FunctionCallOutput(id="item_5", call_id="call_1", output="1")
ITEMS = (HEARD, SPOKEN, OPEN, CALL, ANSWER)
STARTED = Response(
    id="resp_1",
    status="in_progress",
    conversation_id="conv_1",
    output_modalities=("audio",),
    max_output_tokens="inf",
    output_format="audio/pcm",
    voice=None,
)
FAILED = Response(
    id="resp_1",
    status="failed",
    conversation_id=None,
    output_modalities=("text",),
    max_output_tokens=7,
    output_format="audio/pcmu",
    voice="anna",
    metadata={"a": "b"},
    status_details=StatusDetails(error=ResponseError(type="t", code="c", message="No.")),
    output=ITEMS,
    usage=Usage(input_text_tokens=1, output_audio_tokens=2),
)
part = {"item_id": "item_2", "content_index": 0}
output = {"response_id": "resp_1", "output_index": 0}

SAMPLES: list[ServerEvent] = [
    server_events.ErrorEvent(event_id="e", error_type="server_error", message="No."),
    *(server_events.ConversationItemAdded(event_id="e", item=item, previous_item_id=None) for item in ITEMS),
    server_events.ConversationItemDone(event_id="e", item=SPOKEN, previous_item_id="item_1"),
    *(server_events.ConversationItemRetrieved(event_id="e", item=item) for item in ITEMS),
    server_events.ConversationItemDeleted(event_id="e", item_id="item_1"),
    server_events.ConversationItemTruncated(event_id="e", audio_end_ms=5, **part),
    server_events.InputAudioTranscriptionDelta(event_id="e", delta="x", **part),
    server_events.InputAudioTranscriptionCompleted(event_id="e", transcript="x", seconds=1.5, **part),
    server_events.InputAudioTranscriptionFailed(event_id="e", error_type="server_error", code="c", message="No.", **part),
    server_events.InputAudioBufferCommitted(event_id="e", item_id="item_1", previous_item_id=None),
    server_events.InputAudioBufferCleared(event_id="e"),
    server_events.InputAudioBufferSpeechStarted(event_id="e", item_id="item_1", audio_start_ms=5),
    server_events.InputAudioBufferSpeechStopped(event_id="e", item_id="item_1", audio_end_ms=5),
    server_events.InputAudioBufferTimeoutTriggered(event_id="e", item_id="item_1", audio_start_ms=5, audio_end_ms=9),
    server_events.RateLimitsUpdated(event_id="e", rate_limits=(RateLimit(name="requests", limit=2, remaining=1, reset_seconds=0.5),)),
    server_events.ResponseCreated(event_id="e", response=STARTED),
    server_events.ResponseDone(event_id="e", response=FAILED),
    server_events.ResponseOutputItemAdded(event_id="e", item=OPEN, **output),
    *(server_events.ResponseOutputItemDone(event_id="e", item=item, **output) for item in (SPOKEN, CALL)),
    server_events.ResponseContentPartAdded(event_id="e", part=ContentPart(type="audio", text=""), **part, **output),
    server_events.ResponseContentPartDone(event_id="e", part=ContentPart(type="text", text="x"), **part, **output),
    server_events.ResponseOutputTextDelta(event_id="e", delta="x", **part, **output),
    server_events.ResponseOutputTextDone(event_id="e", text="x", **part, **output),
    server_events.ResponseOutputAudioDelta(event_id="e", delta=b"\1\2", **part, **output),
    server_events.ResponseOutputAudioDone(event_id="e", **part, **output),
    server_events.ResponseOutputAudioTranscriptDelta(event_id="e", delta="x", **part, **output),
    server_events.ResponseOutputAudioTranscriptDone(event_id="e", transcript="x", **part, **output),
    server_events.ResponseFunctionCallArgumentsDelta(event_id="e", item_id="item_4", call_id="c", delta="{", **output),
    server_events.ResponseFunctionCallArgumentsDone(event_id="e", item_id="item_4", call_id="c", name="f", arguments="{}", **output),
]

RENAMED = {
    "conversation.item.added": "conversation.item.created",
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
}
UNSAID = {"conversation.item.done", "input_audio_buffer.timeout_triggered"}
NOT_ON_A_WEBSOCKET = {"output_audio_buffer.started", "output_audio_buffer.stopped", "output_audio_buffer.cleared"}

FLAT: dict[str, Any] = {
    "modalities": ["text"],
    "instructions": "Sing.",
    "voice": "bert",
    "input_audio_format": "g711_ulaw",
    "output_audio_format": "g711_alaw",
    "input_audio_transcription": {"model": "tiny", "language": "en"},
    "input_audio_noise_reduction": None,
    "turn_detection": {
        "type": "server_vad",
        "threshold": 0.4,
        "prefix_padding_ms": 100,
        "silence_duration_ms": 200,
        "create_response": False,
        "interrupt_response": False,
    },
    "tools": [{"type": "function", "name": "look"}],
    "tool_choice": {"type": "function", "name": "look"},
    "temperature": 0.8,
    "max_response_output_tokens": 100,
    "speed": 1.0,
    "tracing": {"workflow_name": "w"},
}


def said(event: ServerEvent) -> dict[str, Any]:
    [frame] = BetaDialect(conversation_id="conv_1").encode(event)
    return check_beta_event(frame)


def take(**event: Any) -> client_events.ClientEvent:
    return decode(json.dumps(event), translate=to_ga)


def updated(session: SessionConfig, capabilities: Capabilities, flat: dict[str, Any]) -> SessionConfig:
    event = take(type="session.update", session=flat)
    assert isinstance(event, client_events.SessionUpdate)
    return update_session(session, event.session, capabilities, default=session, voice_locked=False)


def flat_of(session: SessionConfig) -> dict[str, Any]:
    flat: dict[str, Any] = said(server_events.SessionUpdated(event_id="e", session=session))["session"]
    return flat


def refused(**event: Any) -> ProtocolError:
    with pytest.raises(ProtocolError) as refusal:
        take(**event)
    return refusal.value


def types_of(union: object) -> set[str]:
    """The types of the official union of events."""
    return {typing.get_args(cls.model_fields["type"].annotation)[0] for cls in typing.get_args(typing.get_args(union)[0])}


def subclasses() -> set[type[ServerEvent]]:
    found = (cls for cls in vars(server_events).values() if isinstance(cls, type) and issubclass(cls, ServerEvent))
    return {cls for cls in found if cls is not ServerEvent}


# Every event has a translation.


def test_every_server_event_has_a_translation_and_a_sample() -> None:
    assert SERVER_EVENTS.keys() == {cls.type for cls in subclasses()}
    assert {type(event) for event in SAMPLES} | {server_events.SessionCreated, server_events.SessionUpdated} == subclasses()


def test_every_client_event_has_a_translation() -> None:
    ours = {cls.type for cls in typing.get_args(client_events.ClientEvent)}
    assert CLIENT_EVENTS.keys() == ours | {"transcription_session.update"}
    assert CLIENT_EVENTS.keys() == types_of(RealtimeClientEvent) - {"output_audio_buffer.clear"}


def test_every_event_of_the_dialect_is_said_or_not_on_a_websocket() -> None:
    spoken = {RENAMED.get(kind, kind) for kind in SERVER_EVENTS if kind not in UNSAID}
    assert beta_server_events() == spoken | {"conversation.created", "transcription_session.updated"} | NOT_ON_A_WEBSOCKET


def test_every_name_is_in_the_documentation() -> None:
    names = set(re.findall(r"`([a-z_0-9.]+)`", DOCS.read_text()))
    fields = {field.path for field in (*SESSION.values(), *RESPONSE.values())}
    beta = {*CLIENT_EVENTS, *SESSION, *RESPONSE, *RENAMED.values(), "conversation.created", *NOT_ON_A_WEBSOCKET}
    same = {field for field in fields if field in SESSION or field in RESPONSE}
    assert beta | (fields - same) | SERVER_EVENTS.keys() <= names


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_a_server_event_is_valid_in_the_dialect(event: ServerEvent) -> None:
    if event.type in UNSAID:
        assert to_beta(event) is None
        assert BetaDialect(conversation_id="conv_1").encode(event) == []
        return
    sent = said(event)
    assert (sent["type"], sent["event_id"]) == (RENAMED.get(event.type, event.type), "e")


def test_no_word_of_ga_alone_is_left_in_an_event() -> None:
    ga_only = types_of(RealtimeServerEvent) - beta_server_events()
    for event in SAMPLES:
        if (sent := to_beta(event)) is not None:
            frame = json.dumps(sent)
            assert not ga_only & set(re.findall(r"[a-z_.]+", frame)), frame
            assert 'output_audio"' not in frame, frame
            assert "output_text" not in frame, frame
            assert "output_modalities" not in frame, frame


# To the client.


def test_session_created_is_flat_and_followed_by_conversation_created(session: SessionConfig) -> None:
    frames = BetaDialect(conversation_id="conv_1").encode(server_events.SessionCreated(event_id="e", session=session))
    created, conversation = map(check_beta_event, frames)
    assert created["session"] == {
        "id": "sess_1",
        "object": "realtime.session",
        "model": "served",
        "expires_at": 1_700_000_000,
        "modalities": ["audio", "text"],
        "instructions": "Be brief.",
        "voice": "anna",
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "input_audio_transcription": None,
        "input_audio_noise_reduction": None,
        "turn_detection": {
            "type": "server_vad",
            "threshold": 0.5,
            "prefix_padding_ms": 300,
            "silence_duration_ms": 500,
            "create_response": True,
            "interrupt_response": True,
        },
        "tools": [],
        "tool_choice": "auto",
        "temperature": 0.8,
        "max_response_output_tokens": "inf",
        "speed": 1.0,
        "tracing": None,
    }
    assert conversation["conversation"] == {"id": "conv_1", "object": "realtime.conversation"}
    assert conversation["event_id"] != created["event_id"]


def test_a_response_is_flat() -> None:
    assert said(server_events.ResponseCreated(event_id="e", response=STARTED))["response"] == {
        "object": "realtime.response",
        "id": "resp_1",
        "status": "in_progress",
        "status_details": None,
        "output": [],
        "conversation_id": "conv_1",
        "modalities": ["audio", "text"],
        "voice": None,
        "output_audio_format": "pcm16",
        "temperature": 0.8,
        "max_output_tokens": "inf",
        "usage": None,
        "metadata": None,
    }
    done = said(server_events.ResponseDone(event_id="e", response=FAILED))["response"]
    assert (done["modalities"], done["voice"], done["output_audio_format"]) == (["text"], "anna", "g711_ulaw")
    assert done["status_details"] == {"type": "failed", "error": {"type": "t", "code": "c", "message": "No."}}
    assert done["usage"]["input_token_details"] == {"text_tokens": 1, "audio_tokens": 0, "cached_tokens": 0}
    assert [part["type"] for part in done["output"][1]["content"]] == ["audio", "text"]


def test_created_things_begin_with_what_the_client_adds_to() -> None:
    created = said(server_events.ConversationItemAdded(event_id="e", item=OPEN, previous_item_id="item_1"))
    assert (created["item"]["content"], created["previous_item_id"]) == ([], "item_1")
    call = FunctionCall(id="i", call_id="c", name="f", arguments="", status="in_progress")
    assert said(server_events.ConversationItemAdded(event_id="e", item=call, previous_item_id=None))["item"]["arguments"] == ""
    added = server_events.ResponseContentPartAdded(event_id="e", part=ContentPart(type="audio", text=""), **part, **output)
    assert said(added)["part"] == {"type": "audio", "transcript": ""}


@pytest.mark.parametrize(
    ("ga", "beta"),
    [
        ("session.output_modalities", "session.modalities"),
        ("session.output_modalities.0", "session.modalities"),
        ("session.max_output_tokens", "session.max_response_output_tokens"),
        ("session.audio.output.voice", "session.voice"),
        ("session.audio.output.speed", "session.speed"),
        ("session.audio.input.format.type", "session.input_audio_format"),
        ("session.audio.output.format", "session.output_audio_format"),
        ("session.audio.input.transcription", "session.input_audio_transcription"),
        ("session.audio.input.transcription.model", "session.input_audio_transcription.model"),
        ("session.audio.input.noise_reduction", "session.input_audio_noise_reduction"),
        ("session.audio.input.turn_detection.threshold", "session.turn_detection.threshold"),
        ("session.tools.0.name", "session.tools.0.name"),
        ("session.model", "session.model"),
        ("response.output_modalities", "response.modalities"),
        ("response.audio.output.voice", "response.voice"),
        ("response.audio.output.format.type", "response.output_audio_format"),
        ("response.max_output_tokens", "response.max_response_output_tokens"),
        ("response.input.0.content.0.type", "response.input.0.content.0.type"),
        ("item_id", "item_id"),
        ("session", "session"),
    ],
)
def test_an_error_names_the_dialects_parameter(ga: str, beta: str) -> None:
    error = said(ErrorEvent(event_id="e", error_type="t", message=f"Unknown parameter: '{ga}'.", code="c", param=ga))["error"]
    assert error["param"] == beta
    assert error["message"] == f"Unknown parameter: '{beta}'."


@pytest.mark.parametrize(
    ("flat", "message"),
    [
        (
            {"modalities": ["audio", "text"]},
            """Invalid value for 'session.modalities': ["audio", "text"] is not served; served: ["text"].""",
        ),
        (
            {"input_audio_format": "g711_ulaw"},
            "Invalid value for 'session.input_audio_format': 'g711_ulaw' is not served; served: 'pcm16'.",
        ),
    ],
)
def test_an_error_says_values_in_the_dialects_words(flat: dict[str, Any], message: str) -> None:
    capabilities = Capabilities(input_formats=("audio/pcm",))
    plain = default_session(session_id="s", model="m", capabilities=capabilities, defaults={}, expires_at=1)
    with pytest.raises(ProtocolError) as refusal:
        updated(plain, capabilities, flat)
    error = refusal.value
    event = ErrorEvent(event_id="e", error_type=error.type, message=error.message, code=error.code, param=error.param)
    assert said(event)["error"]["message"] == message


# From the client.


def test_a_flat_session_comes_back_as_it_was_sent(session: SessionConfig, capabilities: Capabilities) -> None:
    after = updated(session, capabilities, FLAT)
    flat = flat_of(after)
    assert {name: flat[name] for name in FLAT} == FLAT
    assert updated(after, capabilities, flat) == after, "a client may send back what it got"


@pytest.mark.parametrize(
    ("flat", "ga"),
    [
        ({"modalities": ["audio", "text"]}, {"output_modalities": ["audio"]}),
        ({"modalities": ["text", "audio"]}, {"output_modalities": ["audio"]}),
        ({"modalities": None}, {"output_modalities": None}),
        ({"input_audio_format": "pcm16"}, {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000}}}}),
        ({"output_audio_format": None}, {"audio": {"output": {"format": None}}}),
        ({"turn_detection": None, "voice": "x"}, {"audio": {"input": {"turn_detection": None}, "output": {"voice": "x"}}}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"tool_choice": {"type": "function", "name": "f"}}),
        ({"max_response_output_tokens": 4096}, {"max_output_tokens": "inf"}),
        ({"max_response_output_tokens": 4095}, {"max_output_tokens": 4095}),
        ({"temperature": None}, {}),
        ({"temperature": 0.8}, {}),
        ({}, {}),
    ],
)
def test_a_flat_update_is_nested(flat: dict[str, Any], ga: dict[str, Any]) -> None:
    assert take(type="session.update", session=flat).session == {"type": "realtime"} | ga


def test_a_transcription_session_is_flat_too(capabilities: Capabilities) -> None:
    plain = default_session(session_id="s", model="m", capabilities=capabilities, defaults={}, expires_at=1)
    default, config = open_session(plain, {"type": "transcription"}, capabilities)
    frames = BetaDialect(conversation_id="c").encode(server_events.SessionCreated(event_id="e", session=config))
    created = check_beta_event(frames[0])
    assert created["type"] == "transcription_session.created"
    event = take(type="transcription_session.update", session={"input_audio_format": "g711_alaw", "turn_detection": None})
    assert isinstance(event, client_events.SessionUpdate)
    after = update_session(config, event.session, capabilities, default=default, voice_locked=False)
    sent = said(server_events.SessionUpdated(event_id="e", session=after))
    assert sent["type"] == "transcription_session.updated"
    assert sent["session"] == {
        "id": "s",
        "object": "realtime.transcription_session",
        "expires_at": 1,
        "input_audio_format": "g711_alaw",
        "input_audio_transcription": {"model": "tiny"},
        "input_audio_noise_reduction": None,
        "turn_detection": None,
        "include": None,
    }


def test_response_parameters_are_flat(session: SessionConfig, capabilities: Capabilities) -> None:
    parameters = {
        "modalities": ["text"],
        "instructions": "Sing.",
        "voice": "bert",
        "output_audio_format": "g711_ulaw",
        "tools": [],
        "tool_choice": "none",
        "temperature": 0.8,
        "conversation": "none",
        "metadata": {"a": "b"},
        "input": [
            {"type": "item_reference", "id": "item_1"},
            {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hm"}]},
        ],
    }
    for limit in ("max_response_output_tokens", "max_output_tokens"):
        event = take(type="response.create", response={**parameters, limit: 9})
        assert isinstance(event, client_events.ResponseCreate)
        settings = response_settings(session, event.response, capabilities)
        assert (settings.output_modalities, settings.instructions, settings.voice) == (("text",), "Sing.", "bert")
        assert (settings.output_format, settings.tools, settings.tool_choice) == ("audio/pcmu", (), "none")
        assert (settings.max_output_tokens, settings.conversation, settings.metadata) == (9, "none", {"a": "b"})
        assert settings.input is not None
        assert settings.input[1].content == (OutputText(text="hm"),)
    assert take(type="response.create").response == {}
    assert take(type="response.create", response=None).response == {}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_an_item_comes_back_as_it_was_sent(item: Any) -> None:
    sent = said(server_events.ConversationItemRetrieved(event_id="e", item=item))["item"]
    for content in sent.get("content", ()):
        if content["type"] == "audio":
            del content["audio"]  # a client cannot bring an assistant's audio
    taken = take(type="conversation.item.create", item=sent).item
    again = said(server_events.ConversationItemRetrieved(event_id="e", item=taken))["item"]
    assert {**again, "status": sent["status"]} == sent


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        ({"type": "session.update"}, "missing_required_parameter", "session"),
        ({"type": "session.update", "session": "x"}, "invalid_type", "session"),
        ({"type": "session.update", "session": {"type": "realtime"}}, "unknown_parameter", "session.type"),
        ({"type": "session.update", "session": {"output_modalities": ["text"]}}, "unknown_parameter", "session.output_modalities"),
        ({"type": "session.update", "session": {"audio": {}}}, "unknown_parameter", "session.audio"),
        ({"type": "session.update", "session": {"client_secret": {}}}, "unknown_parameter", "session.client_secret"),
        ({"type": "session.update", "session": {"x" * 100: 1}}, "unknown_parameter", f"session.{'x' * 80}"),
        ({"type": "session.update", "session": {"modalities": ["audio"]}}, "invalid_value", "session.modalities"),
        ({"type": "session.update", "session": {"modalities": "text"}}, "invalid_type", "session.modalities"),
        ({"type": "session.update", "session": {"input_audio_format": "mp3"}}, "invalid_value", "session.input_audio_format"),
        ({"type": "session.update", "session": {"input_audio_format": {}}}, "invalid_type", "session.input_audio_format"),
        ({"type": "session.update", "session": {"temperature": 0.7}}, "invalid_value", "session.temperature"),
        ({"type": "session.update", "session": {"temperature": "0.8"}}, "invalid_type", "session.temperature"),
        ({"type": "session.update", "session": {"temperature": [0.8]}}, "invalid_type", "session.temperature"),
        ({"type": "session.update", "session": {"temperature": True}}, "invalid_type", "session.temperature"),
        (
            {"type": "session.update", "session": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}},
            "unknown_parameter",
            "session.turn_detection.idle_timeout_ms",
        ),
        (
            {"type": "session.update", "session": {"input_audio_transcription": {"keywords": []}}},
            "unknown_parameter",
            "session.input_audio_transcription.keywords",
        ),
        ({"type": "transcription_session.update"}, "missing_required_parameter", "session"),
        ({"type": "transcription_session.update", "session": {"voice": "x"}}, "unknown_parameter", "session.voice"),
        ({"type": "transcription_session.update", "session": {"temperature": 0.8}}, "unknown_parameter", "session.temperature"),
        ({"type": "response.create", "response": 5}, "invalid_type", "response"),
        ({"type": "response.create", "response": {"audio": {}}}, "unknown_parameter", "response.audio"),
        ({"type": "response.create", "response": {"modalities": ["text", "text"]}}, "invalid_value", "response.modalities"),
        ({"type": "response.create", "response": {"temperature": 1.2}}, "invalid_value", "response.temperature"),
        (
            {"type": "response.create", "response": {"max_output_tokens": 1, "max_response_output_tokens": 2}},
            "invalid_value",
            "response.max_response_output_tokens",
        ),
        (
            {"type": "response.create", "response": {"input": [{"role": "assistant", "content": [{"type": "output_text"}]}]}},
            "invalid_value",
            "response.input.0.content.0.type",
        ),
        ({"type": "conversation.item.create", "item": 5}, "invalid_type", "item"),
        (
            {"type": "conversation.item.create", "item": {"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}},
            "invalid_value",
            "item.content.0.type",
        ),
        (
            {"type": "conversation.item.create", "item": {"type": "message", "role": "assistant", "content": ["x"]}},
            "invalid_type",
            "item.content.0",
        ),
        (
            {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_image"}]}},
            "invalid_value",
            "item.content.0.type",
        ),
        (
            {"type": "conversation.item.create", "item": {"type": "message", "role": "assistant", "content": [{"text": "x"}]}},
            "missing_required_parameter",
            "item.content.0.type",
        ),
        ({"type": "output_audio_buffer.clear"}, "invalid_value", "type"),
        ({"type": "no.such.event"}, "invalid_value", "type"),
        ({"type": []}, "invalid_type", "type"),
        ({}, "missing_required_parameter", "type"),
    ],
    ids=lambda value: json.dumps(value)[:70] if isinstance(value, dict) else None,
)
def test_what_the_dialect_lacks_is_refused_by_its_name(event: dict[str, Any], code: str, param: str) -> None:
    error = refused(**event, event_id="mine")
    told = said(ErrorEvent(event_id="e", error_type=error.type, message=error.message, code=error.code, param=error.param))["error"]
    assert (told["code"], told["param"], error.event_id) == (code, param, "mine")


def test_beta_names_stay_refused_in_a_ga_session() -> None:
    with pytest.raises(ProtocolError, match=re.escape("session.output_modalities")):
        update_session(
            default_session(session_id="s", model="m", capabilities=Capabilities(), defaults={}, expires_at=1),
            {"type": "realtime", "modalities": ["text"]},
            Capabilities(),
            default=default_session(session_id="s", model="m", capabilities=Capabilities(), defaults={}, expires_at=1),
            voice_locked=False,
        )


def test_an_append_is_taken_on_the_short_way() -> None:
    def no_translation(event: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError(event)

    taken = decode('{"type":"input_audio_buffer.append","audio":"AQI="}', limits=DecodeLimits(), translate=no_translation)
    assert isinstance(taken, client_events.InputAudioBufferAppend)
    assert taken.audio == b"\1\2"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5000)
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.sampled_from(["text", "audio"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SESSION, *RESPONSE, "type", "content", "role"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.sampled_from([*CLIENT_EVENTS]), st.sampled_from(["session", "response", "item"]), JSON)
def test_whatever_a_client_sends_is_taken_or_refused(kind: str, key: str, value: Any) -> None:
    with contextlib.suppress(ProtocolError):
        take(**{"type": kind, key: value})
