from __future__ import annotations

import typing

import orjson
import pybase64
import pytest
from openai.types.realtime import RealtimeServerEvent

from omni_realtime.protocol import (
    Capabilities,
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    Message,
    OutputAudio,
    OutputText,
    ProtocolError,
    Response,
    ResponseError,
    SessionConfig,
    StatusDetails,
    Usage,
    decode,
    encode,
    item_to_wire,
    response_to_wire,
    server_events,
)
from omni_realtime.protocol.server_events import ServerEvent
from omni_realtime.testing.wire import check_server_event
from pictures import png

SPOKEN = Message(id="item_1", role="assistant", content=(OutputAudio(transcript="hi", audio=b"\1\2\3"),))
HEARD = Message(id="item_2", role="user", content=(InputAudio(audio=b"\1\2\3"),), status="completed")
CALL = FunctionCall(id="item_3", call_id="call_1", name="f", arguments='{"город": "Москва"}')
ANSWER = FunctionCallOutput(id="item_4", call_id="call_1", output="1")
SEEN = Message(id="item_5", role="user", content=(InputText(text="x"), InputImage(image=png())))
RULE = Message(id="item_6", role="system", content=(InputText(text="be"),))
WRITTEN = Message(id="item_7", role="assistant", content=(OutputText(text="ok"),), status="incomplete")
EMPTY = Message(id="item_8", role="assistant", content=(), status="in_progress")
ITEMS = (SPOKEN, HEARD, CALL, ANSWER, SEEN, RULE, WRITTEN, EMPTY)

STARTED = Response(
    id="resp_1",
    status="in_progress",
    conversation_id="conv_1",
    output_modalities=("audio",),
    max_output_tokens="inf",
    output_format="audio/pcm",
    voice="anna",
    metadata={"client_event_id": "e"},
)
USAGE = Usage(
    input_text_tokens=1,
    input_audio_tokens=2,
    input_image_tokens=16,
    cached_text_tokens=1,
    cached_audio_tokens=1,
    cached_image_tokens=16,
    output_text_tokens=4,
    output_audio_tokens=8,
)
ENDED = Response(
    id="resp_1",
    status="completed",
    conversation_id=None,
    output_modalities=("text",),
    max_output_tokens=7,
    output_format="audio/pcmu",
    voice=None,
    output=ITEMS,
    usage=USAGE,
)

part = {"item_id": "item_1", "content_index": 0}
output = {"response_id": "resp_1", "output_index": 0}
EVENTS: list[ServerEvent] = [
    server_events.ErrorEvent(event_id="e", error_type="invalid_request_error", message="No.", code="c", param="p", client_event_id="x"),
    server_events.ErrorEvent(event_id="e", error_type="server_error", message="No."),
    *(server_events.ConversationItemAdded(event_id="e", item=item, previous_item_id=None) for item in ITEMS),
    *(server_events.ConversationItemDone(event_id="e", item=item, previous_item_id="item_0") for item in ITEMS),
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
    server_events.ResponseCreated(event_id="e", response=STARTED),
    server_events.ResponseDone(event_id="e", response=ENDED),
    *(server_events.ResponseOutputItemAdded(event_id="e", item=item, **output) for item in (EMPTY, CALL)),
    *(server_events.ResponseOutputItemDone(event_id="e", item=item, **output) for item in (SPOKEN, CALL)),
    server_events.ResponseContentPartAdded(event_id="e", part=ContentPart(type="audio", text=""), **part, **output),
    server_events.ResponseContentPartDone(event_id="e", part=ContentPart(type="text", text="x"), **part, **output),
    server_events.ResponseOutputTextDelta(event_id="e", delta="x", **part, **output),
    server_events.ResponseOutputTextDone(event_id="e", text="x", **part, **output),
    server_events.ResponseOutputAudioDelta(event_id="e", delta=b"\1\2", **part, **output),
    server_events.ResponseOutputAudioDone(event_id="e", **part, **output),
    server_events.RateLimitsUpdated(
        event_id="e", rate_limits=(server_events.RateLimit(name="tokens", limit=9, remaining=1, reset_seconds=0.5),)
    ),
    server_events.ResponseOutputAudioTranscriptDelta(event_id="e", delta="x", **part, **output),
    server_events.ResponseOutputAudioTranscriptDone(event_id="e", transcript="x", **part, **output),
    server_events.ResponseFunctionCallArgumentsDelta(event_id="e", item_id="item_1", call_id="c", delta="{", **output),
    server_events.ResponseFunctionCallArgumentsDone(event_id="e", item_id="item_1", call_id="c", name="f", arguments="{}", **output),
]

NOT_SENT = {
    "conversation.created",  # optional, and ignored by every client
    "conversation.item.created",  # beta
    "conversation.item.input_audio_transcription.segment",  # diarisation
    "input_audio_buffer.dtmf_event_received",  # SIP
    "output_audio_buffer.started",  # WebRTC and SIP
    "output_audio_buffer.stopped",
    "output_audio_buffer.cleared",
    "mcp_list_tools.in_progress",
    "mcp_list_tools.completed",
    "mcp_list_tools.failed",
    "response.mcp_call_arguments.delta",
    "response.mcp_call_arguments.done",
    "response.mcp_call.in_progress",
    "response.mcp_call.completed",
    "response.mcp_call.failed",
}


def wire(event: ServerEvent) -> dict[str, typing.Any]:
    return check_server_event(encode(event))


@pytest.fixture(params=EVENTS, ids=lambda event: event.type)
def event(request: pytest.FixtureRequest) -> ServerEvent:
    return request.param


def test_every_server_event_of_the_official_package_is_sent_or_listed() -> None:
    classes = typing.get_args(typing.get_args(RealtimeServerEvent)[0])
    official = {typing.get_args(cls.model_fields["type"].annotation)[0] for cls in classes}
    ours = {
        cls for cls in vars(server_events).values() if isinstance(cls, type) and issubclass(cls, ServerEvent) and cls is not ServerEvent
    }
    assert {cls.type for cls in ours} == official - NOT_SENT
    assert {type(event) for event in EVENTS} | {server_events.SessionCreated, server_events.SessionUpdated} == ours, "all have a sample"


def test_event_validates_strictly(event: ServerEvent) -> None:
    sent = wire(event)
    assert (sent["type"], sent["event_id"]) == (event.type, "e")


def test_rate_limits_on_the_wire() -> None:
    limit = server_events.RateLimit(name="requests", limit=9, remaining=1, reset_seconds=0.5)
    sent = wire(server_events.RateLimitsUpdated(event_id="e", rate_limits=(limit,)))
    assert sent["rate_limits"] == [{"name": "requests", "limit": 9, "remaining": 1, "reset_seconds": 0.5}]


def test_session_events_carry_the_whole_session(session: SessionConfig) -> None:
    for event in (server_events.SessionCreated(event_id="e", session=session), server_events.SessionUpdated(event_id="e", session=session)):
        assert wire(event)["session"]["audio"]["input"]["turn_detection"]["interrupt_response"] is True


def test_error_carries_all_its_keys() -> None:
    assert wire(EVENTS[0])["error"] == {"type": "invalid_request_error", "code": "c", "message": "No.", "param": "p", "event_id": "x"}
    assert wire(EVENTS[1])["error"] == {"type": "server_error", "code": None, "message": "No.", "param": None, "event_id": None}


def test_refusal_becomes_an_error_event() -> None:
    with pytest.raises(ProtocolError) as refused:
        decode('{"type":"response.cancel","event_id":"x","y":1}')
    error = refused.value
    event = server_events.ErrorEvent(
        event_id="e", error_type=error.type, message=error.message, code=error.code, param=error.param, client_event_id=error.event_id
    )
    assert wire(event)["error"]["event_id"] == "x"


def test_items_come_without_audio_but_when_retrieved() -> None:
    for item in (SPOKEN, HEARD):
        assert "audio" not in item_to_wire(item)["content"][0]
        assert item_to_wire(item, audio=True)["content"][0]["audio"] == "AQID"
    assert wire(server_events.ConversationItemRetrieved(event_id="e", item=HEARD))["item"]["content"] == [
        {"type": "input_audio", "transcript": None, "audio": "AQID"}
    ]
    silent = Message(id="i", role="user", content=(InputAudio(transcript="x"),))
    assert item_to_wire(silent, audio=True)["content"] == [{"type": "input_audio", "transcript": "x"}]


def test_items_on_the_wire() -> None:
    assert item_to_wire(CALL) == {
        "id": "item_3",
        "object": "realtime.item",
        "type": "function_call",
        "status": "completed",
        "name": "f",
        "call_id": "call_1",
        "arguments": '{"город": "Москва"}',
    }
    assert item_to_wire(EMPTY) == {
        "id": "item_8",
        "object": "realtime.item",
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    assert "id" not in item_to_wire(Message(role="user", content=()))


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_items_come_back_as_they_went(item: Item) -> None:
    text = orjson.dumps({"type": "conversation.item.create", "item": item_to_wire(item, audio=item is not SPOKEN)})
    event = decode(text.decode())
    assert item_to_wire(event.item) == item_to_wire(item) | {"status": "completed"}


def test_tool_arguments_in_other_scripts_are_plain_utf8() -> None:
    frame = encode(server_events.ConversationItemAdded(event_id="e", item=CALL, previous_item_id=None))
    assert "Москва" in frame
    assert orjson.loads(orjson.loads(frame)["item"]["arguments"]) == {"город": "Москва"}


def test_content_parts_are_called_audio_and_text() -> None:
    speech = server_events.ResponseContentPartAdded(event_id="e", part=ContentPart(type="audio", text="x"), **part, **output)
    text = server_events.ResponseContentPartAdded(event_id="e", part=ContentPart(type="text", text=""), **part, **output)
    assert wire(speech)["part"] == {"type": "audio", "transcript": "x"}
    assert wire(text)["part"] == {"type": "text", "text": ""}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 9600])
def test_audio_delta_is_base64(size: int) -> None:
    audio = bytes(range(256)) * (size // 256) + bytes(size % 256)
    sent = wire(server_events.ResponseOutputAudioDelta(event_id="e", delta=audio, **part, **output))
    assert pybase64.b64decode(sent["delta"], validate=True) == audio


def test_response_at_its_start() -> None:
    assert response_to_wire(STARTED) == {
        "object": "realtime.response",
        "id": "resp_1",
        "status": "in_progress",
        "status_details": None,
        "output": [],
        "conversation_id": "conv_1",
        "output_modalities": ("audio",),
        "max_output_tokens": "inf",
        "audio": {"output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "anna"}},
        "usage": None,
        "metadata": {"client_event_id": "e"},
    }


def test_response_at_its_end() -> None:
    ended = wire(server_events.ResponseDone(event_id="e", response=ENDED))["response"]
    assert ended["conversation_id"] is None
    assert ended["metadata"] is None
    assert ended["audio"] == {"output": {"format": {"type": "audio/pcmu"}}}
    assert [item["id"] for item in ended["output"]] == [item.id for item in ITEMS]
    assert not any("audio" in part for item in ended["output"] for part in item.get("content", ()))
    assert ended["usage"] == {
        "total_tokens": 31,
        "input_tokens": 19,
        "output_tokens": 12,
        "input_token_details": {
            "text_tokens": 1,
            "audio_tokens": 2,
            "image_tokens": 16,
            "cached_tokens": 18,
            "cached_tokens_details": {"text_tokens": 1, "audio_tokens": 1, "image_tokens": 16},
        },
        "output_token_details": {"text_tokens": 4, "audio_tokens": 8},
    }


@pytest.mark.parametrize(
    ("status", "details", "expected"),
    [
        ("completed", None, None),
        ("cancelled", StatusDetails(reason="turn_detected"), {"type": "cancelled", "reason": "turn_detected"}),
        ("incomplete", StatusDetails(reason="max_output_tokens"), {"type": "incomplete", "reason": "max_output_tokens"}),
        (
            "failed",
            StatusDetails(error=ResponseError(type="server_error", code="c", message="No.")),
            {"type": "failed", "error": {"type": "server_error", "code": "c", "message": "No."}},
        ),
    ],
)
def test_status_details_repeat_the_status(status: str, details: StatusDetails | None, expected: object) -> None:
    response = Response(
        id="r",
        status=status,
        conversation_id=None,
        output_modalities=("audio",),
        max_output_tokens="inf",
        output_format="audio/pcma",
        voice=None,
        status_details=details,
        usage=Usage(),
    )
    assert wire(server_events.ResponseDone(event_id="e", response=response))["response"]["status_details"] == expected


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"input_audio_buffer.cleared"}',
        '{"type":"input_audio_buffer.cleared","event_id":5}',
        '{"type":"input_audio_buffer.cleared","event_id":"e","ours":1}',
        '{"type":"ours","event_id":"e"}',
        '{"type":"conversation.item.done","event_id":"e","item":{"type":"function_call","id":null,"name":"f","arguments":""}}',
        '{"type":"conversation.item.done","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"input_audio"}]}}',
        '{"type":"conversation.item.done","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"input_text","text":null}]}}',
        '{"type":"response.done","event_id":"e","response":{"usage":{"total_tokens":NaN}}}',
    ],
)
def test_validator_can_fail(frame: str) -> None:
    with pytest.raises((ValueError, AssertionError)):
        check_server_event(frame)


def test_validator_needs_no_served_detector() -> None:
    from omni_realtime.protocol import default_session

    config = default_session(session_id="s", model="m", capabilities=Capabilities(), defaults={}, expires_at=0)
    assert wire(server_events.SessionCreated(event_id="e", session=config))["session"]["audio"]["input"]["turn_detection"] is None
