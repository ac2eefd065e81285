from __future__ import annotations

import copy
import typing

import orjson
import pybase64
import pytest
from openai.types import realtime
from openai.types.realtime import RealtimeClientEvent, realtime_conversation_item_user_message
from pydantic import BaseModel

from omni_realtime.protocol import (
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemRetrieve,
    ConversationItemTruncate,
    DecodeLimits,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputAudioBufferAppend,
    InputAudioBufferClear,
    InputAudioBufferCommit,
    InputImage,
    InputText,
    Message,
    OutputAudio,
    OutputText,
    ProtocolError,
    ResponseCancel,
    ResponseCreate,
    SessionUpdate,
    decode,
)
from omni_realtime.protocol.base64_audio import MAX_AUDIO_BYTES
from pictures import data_uri, png

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}

EVENTS = {
    "conversation.item.create": ({"item": USER, "previous_item_id": "root"}, ConversationItemCreate),
    "conversation.item.delete": ({"item_id": "i"}, ConversationItemDelete),
    "conversation.item.retrieve": ({"item_id": "i"}, ConversationItemRetrieve),
    "conversation.item.truncate": ({"item_id": "i", "content_index": 0, "audio_end_ms": 5}, ConversationItemTruncate),
    "input_audio_buffer.append": ({"audio": "AAAA"}, InputAudioBufferAppend),
    "input_audio_buffer.commit": ({}, InputAudioBufferCommit),
    "input_audio_buffer.clear": ({}, InputAudioBufferClear),
    "response.create": ({"response": {"instructions": "x"}}, ResponseCreate),
    "response.cancel": ({"response_id": "r"}, ResponseCancel),
    "session.update": ({"session": {"type": "realtime"}}, SessionUpdate),
}
REFUSED_BY_NAME = {"output_audio_buffer.clear"}


def official(kind: str) -> type[BaseModel]:
    classes = typing.get_args(typing.get_args(RealtimeClientEvent)[0])
    return {typing.get_args(cls.model_fields["type"].annotation)[0]: cls for cls in classes}[kind]


def official_kinds() -> set[str]:
    classes = typing.get_args(typing.get_args(RealtimeClientEvent)[0])
    return {typing.get_args(cls.model_fields["type"].annotation)[0] for cls in classes}


def frame(kind: str, **fields: object) -> str:
    return orjson.dumps({"type": kind, **fields}).decode()


def refusal(text: str | bytes, **kwargs: object) -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        decode(text, **kwargs)
    return refused.value


def test_every_client_event_of_the_official_package_is_known() -> None:
    assert official_kinds() == EVENTS.keys() | REFUSED_BY_NAME


@pytest.mark.parametrize("kind", EVENTS)
def test_event_decodes_with_its_optional_fields_set_absent_and_null(kind: str) -> None:
    fields, cls = EVENTS[kind]
    whole = {"event_id": "evt_1", **fields}
    official(kind).model_validate_json(frame(kind, **whole), strict=True)
    assert official(kind).model_fields.keys() == {"type", *whole}, "the sample sets every field"
    optional = [name for name, field in official(kind).model_fields.items() if not field.is_required()]
    event = decode(frame(kind, **whole))
    assert type(event) is cls
    assert event.type == kind
    assert event.event_id == "evt_1"
    for name in optional:
        rest = {key: value for key, value in whole.items() if key != name}
        assert decode(frame(kind, **rest)) == decode(frame(kind, **rest, **{name: None}))


@pytest.mark.parametrize("kind", EVENTS)
def test_event_is_refused_without_a_required_field(kind: str) -> None:
    fields, _ = EVENTS[kind]
    required = {name for name, field in official(kind).model_fields.items() if field.is_required()} - {"type"}
    for name in required:
        rest = {key: value for key, value in fields.items() if key != name}
        error = refusal(frame(kind, event_id="evt_1", **rest))
        assert (error.code, error.param, error.event_id) == ("missing_required_parameter", name, "evt_1")


@pytest.mark.parametrize("kind", EVENTS)
def test_unknown_key_is_refused_with_its_name(kind: str) -> None:
    error = refusal(frame(kind, event_id="evt_1", **EVENTS[kind][0], colour="red"))
    assert (error.code, error.param, error.event_id) == ("unknown_parameter", "colour", "evt_1")


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("wrong", [5, True, ["x"], {}, "x" * 513])
def test_bad_event_id_is_refused(kind: str, wrong: object) -> None:
    error = refusal(frame(kind, **EVENTS[kind][0], event_id=wrong))
    assert error.code == ("invalid_value" if isinstance(wrong, str) else "invalid_type")
    assert (error.param, error.event_id) == ("event_id", None)


@pytest.mark.parametrize("kind", EVENTS)
def test_event_id_of_512_characters_is_taken(kind: str) -> None:
    assert decode(frame(kind, **EVENTS[kind][0], event_id="x" * 512)).event_id == "x" * 512


def test_webrtc_event_is_refused_by_name() -> None:
    error = refusal(frame("output_audio_buffer.clear", event_id="e"))
    assert (error.code, error.param, error.event_id) == ("invalid_value", "type", "e")
    assert "WebRTC" in error.message


BAD_FRAMES = [
    ("binary", b'{"type":"response.create"}', "invalid_frame", None),
    ("no JSON", "hello", "invalid_json", None),
    ("empty", "", "invalid_json", None),
    ("two values", "{}{}", "invalid_json", None),
    ("null", "null", "invalid_type", None),
    ("array", "[]", "invalid_type", None),
    ("string", '"x"', "invalid_type", None),
    ("number", "7", "invalid_type", None),
    ("no type", "{}", "missing_required_parameter", "type"),
    ("null type", '{"type":null}', "missing_required_parameter", "type"),
    ("numeric type", '{"type":5}', "invalid_type", "type"),
    ("array type", '{"type":[]}', "invalid_type", "type"),
    ("unknown type", '{"type":"response.explode"}', "invalid_value", "type"),
    ("server's type", '{"type":"response.done"}', "invalid_value", "type"),
    ("nested 100 deep", '{"type":"session.update","session":' + '{"a":' * 100 + "1" + "}" * 101, "event_too_deep", None),
    ("nested 100 deep in arrays", '{"type":"response.create","response":' + "[" * 100 + "]" * 100 + "}", "event_too_deep", None),
    ("nested 100,000 deep", "[" * 100_000 + "]" * 100_000, "invalid_json", None),
    ("escaped lone surrogate", '{"type":"\\ud800"}', "invalid_json", None),
    ("lone surrogate", '{"type":"\ud800"}', "invalid_json", None),
    ("NaN", '{"type":"session.update","session":{"x":NaN}}', "invalid_json", None),
    ("Infinity", '{"type":"session.update","session":{"x":-Infinity}}', "invalid_json", None),
    ("1e999", '{"type":"session.update","session":{"x":1e999}}', "invalid_json", None),
    ("session is null", '{"type":"session.update","session":null}', "invalid_type", "session"),
    ("session is an array", '{"type":"session.update","session":[]}', "invalid_type", "session"),
    ("response is a string", '{"type":"response.create","response":"hi"}', "invalid_type", "response"),
    ("item is a string", '{"type":"conversation.item.create","item":"hi"}', "invalid_type", "item"),
    (
        "fraction",
        '{"type":"conversation.item.truncate","item_id":"i","content_index":0,"audio_end_ms":1.5}',
        "invalid_type",
        "audio_end_ms",
    ),
    (
        "boolean",
        '{"type":"conversation.item.truncate","item_id":"i","content_index":true,"audio_end_ms":1}',
        "invalid_type",
        "content_index",
    ),
    (
        "numeric text",
        '{"type":"conversation.item.truncate","item_id":"i","content_index":"0","audio_end_ms":1}',
        "invalid_type",
        "content_index",
    ),
    (
        "huge",
        f'{{"type":"conversation.item.truncate","item_id":"i","content_index":0,"audio_end_ms":{10**30}}}',
        "invalid_type",
        "audio_end_ms",
    ),
]


@pytest.mark.parametrize(("text", "code", "param"), [row[1:] for row in BAD_FRAMES], ids=[row[0] for row in BAD_FRAMES])
def test_bad_frame_earns_one_error(text: str | bytes, code: str, param: str | None) -> None:
    error = refusal(text)
    assert (error.code, error.param, error.type) == (code, param, "invalid_request_error")
    assert error.message.endswith((".", '."'))


def test_error_carries_the_event_id_wherever_the_json_had_one() -> None:
    assert refusal('{"event_id":"e1"}').event_id == "e1"
    assert refusal('{"event_id":"e1","type":"x"}').event_id == "e1"
    assert refusal(frame("input_audio_buffer.append", event_id="e1", audio="?")).event_id == "e1"
    assert refusal(frame("session.update", event_id="e1", session={"a": [[[[]]]]}), limits=DecodeLimits(depth=3)).event_id == "e1"


def test_error_does_not_repeat_a_huge_key_or_value() -> None:
    for text in (frame("x" * 1_000_000), frame("response.cancel", **{"x" * 1_000_000: 1})):
        error = refusal(text)
        assert len(error.message) < 1000
        assert len(error.param or "") < 200


def test_depth_limit_is_exact() -> None:
    limits = DecodeLimits(depth=3)
    decode(frame("session.update", session={"a": []}), limits=limits)
    assert refusal(frame("session.update", session={"a": [{}]}), limits=limits).code == "event_too_deep"


def test_frame_limit_is_exact() -> None:
    text = frame("input_audio_buffer.commit")
    decode(text, limits=DecodeLimits(frame_chars=len(text)))
    assert refusal(text, limits=DecodeLimits(frame_chars=len(text) - 1)).code == "event_too_large"


BAD_BASE64 = {
    "empty": "",
    "foreign characters": "AA!!AA==",
    "newline": "AAAA\nAAAA",
    "trailing newline": "AAAA\n",
    "space": "AAAA AAAA",
    "no padding": "AAA",
    "too much padding": "AAAA=",
    "only padding": "====",
    "padding inside": "AA==AAAA",
    "data URL": "data:audio/pcm;base64,AAAA",
    "url-safe alphabet": "-_-_",
    "not ASCII": "ÄÄÄÄ",
}


@pytest.mark.parametrize("audio", BAD_BASE64.values(), ids=BAD_BASE64)
def test_bad_base64_is_refused(audio: str) -> None:
    error = refusal(frame("input_audio_buffer.append", audio=audio, event_id="e"))
    assert (error.code, error.param, error.event_id) == ("invalid_value", "audio", "e")
    item = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": audio}]}
    error = refusal(frame("conversation.item.create", item=item))
    assert (error.code, error.param) == ("invalid_value", "item.content.0.audio")


@pytest.mark.parametrize("audio", [None, 5, ["AAAA"], {"a": 1}])
def test_audio_that_is_no_string_is_refused(audio: object) -> None:
    error = refusal(frame("input_audio_buffer.append", audio=audio, event_id="e"))
    assert (error.code, error.param, error.event_id) == ("invalid_type", "audio", "e")


@pytest.mark.parametrize("size", [1, 2, 3, 4, 959, 960, 961])
def test_append_gives_the_bytes(size: int) -> None:
    audio = bytes(index * 7 % 256 for index in range(size))
    text = frame("input_audio_buffer.append", audio=pybase64.b64encode_as_string(audio))
    assert decode(text) == InputAudioBufferAppend(audio=audio)


@pytest.mark.parametrize("size", [99, 100, 101])
def test_append_limit_counts_decoded_bytes(size: int) -> None:
    text = frame("input_audio_buffer.append", audio=pybase64.b64encode_as_string(bytes(size)))
    limits = DecodeLimits(audio_bytes=100)
    if size <= 100:
        assert decode(text, limits=limits) == InputAudioBufferAppend(audio=bytes(size))
    else:
        assert refusal(text, limits=limits).param == "audio"


def test_append_of_15_mib_is_legal_and_one_byte_more_is_not() -> None:
    def append(size: int) -> str:
        return frame("input_audio_buffer.append", audio=pybase64.b64encode_as_string(bytes(size)))

    event = decode(append(MAX_AUDIO_BYTES))
    assert isinstance(event, InputAudioBufferAppend)
    assert len(event.audio) == MAX_AUDIO_BYTES == 15 * 2**20
    assert refusal(append(MAX_AUDIO_BYTES + 1)).param == "audio"


ITEMS = {
    "system": (
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "be"}]},
        Message(role="system", content=(InputText(text="be"),)),
    ),
    "user text": (USER, Message(role="user", content=(InputText(text="hi"),))),
    "user audio": (
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAAA", "transcript": "x"}]},
        Message(role="user", content=(InputAudio(audio=b"\0\0\0", transcript="x"),)),
    ),
    "user transcript alone": (
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": None, "transcript": "x"}]},
        Message(role="user", content=(InputAudio(transcript="x"),)),
    ),
    "user image": (
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": data_uri(png()), "detail": "low"}],
        },
        Message(role="user", content=(InputImage(image=png(), media_type="image/png", detail="low"),)),
    ),
    "assistant text": (
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        Message(role="assistant", content=(OutputText(text="ok"),)),
    ),
    "assistant transcript": (
        {"type": "message", "role": "assistant", "content": [{"type": "output_audio", "transcript": "ok", "audio": None}]},
        Message(role="assistant", content=(OutputAudio(transcript="ok"),)),
    ),
    "nothing said": ({"type": "message", "role": "user", "content": []}, Message(role="user", content=())),
    "call": (
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        FunctionCall(call_id="c", name="f", arguments="{}"),
    ),
    "call without id": ({"type": "function_call", "name": "f", "arguments": ""}, FunctionCall(name="f", arguments="")),
    "output": (
        {"type": "function_call_output", "call_id": "c", "output": "1"},
        FunctionCallOutput(call_id="c", output="1"),
    ),
}


@pytest.mark.parametrize(("wire", "item"), ITEMS.values(), ids=ITEMS)
def test_item_decodes(wire: dict[str, object], item: object) -> None:
    assert decode(frame("conversation.item.create", item=wire)) == ConversationItemCreate(item=item)
    with_nulls = {**wire, "id": None, "object": None, "status": None}
    assert decode(frame("conversation.item.create", item=with_nulls)) == ConversationItemCreate(item=item)


def test_parts_take_the_nulls_of_the_official_models() -> None:
    part = realtime_conversation_item_user_message.Content(type="input_text", text="x")
    item = realtime.RealtimeConversationItemUserMessage(type="message", role="user", content=[part])
    event = decode(frame("conversation.item.create", item=item.model_dump()))
    assert event == ConversationItemCreate(item=Message(role="user", content=(InputText(text="x"),)))


@pytest.mark.parametrize("status", ["completed", "incomplete", "in_progress"])
def test_item_keeps_its_id_and_loses_its_status(status: str) -> None:
    event = decode(frame("conversation.item.create", item={**USER, "id": "x" * 64, "status": status, "object": "realtime.item"}))
    assert isinstance(event, ConversationItemCreate)
    assert (event.item.id, event.item.status) == ("x" * 64, "completed")


def user_part(**part: object) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": [part]}


def assistant_part(**part: object) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": [part]}


BAD_ITEMS = [
    ("no type", {"role": "user", "content": []}, "missing_required_parameter", "item.type"),
    ("beta part", user_part(type="text", text="x"), "invalid_value", "item.content.0.type"),
    ("mcp_call", {"type": "mcp_call", "id": "x"}, "invalid_value", "item.type"),
    ("mcp_list_tools", {"type": "mcp_list_tools"}, "invalid_value", "item.type"),
    ("mcp_approval_request", {"type": "mcp_approval_request"}, "invalid_value", "item.type"),
    ("mcp_approval_response", {"type": "mcp_approval_response"}, "invalid_value", "item.type"),
    ("item_reference", {"type": "item_reference", "id": "x"}, "invalid_value", "item.type"),
    ("no role", {"type": "message", "content": []}, "missing_required_parameter", "item.role"),
    ("unknown role", {"type": "message", "role": "tool", "content": []}, "invalid_value", "item.role"),
    ("no content", {"type": "message", "role": "user"}, "missing_required_parameter", "item.content"),
    ("content is text", {"type": "message", "role": "user", "content": "hi"}, "invalid_type", "item.content"),
    ("part is text", {"type": "message", "role": "user", "content": ["hi"]}, "invalid_type", "item.content.0"),
    ("part without type", user_part(text="x"), "missing_required_parameter", "item.content.0.type"),
    ("user's output_text", user_part(type="output_text", text="x"), "invalid_value", "item.content.0.type"),
    ("text without text", user_part(type="input_text"), "missing_required_parameter", "item.content.0.text"),
    ("text is a number", user_part(type="input_text", text=5), "invalid_type", "item.content.0.text"),
    ("text with audio", user_part(type="input_text", text="x", audio="AAAA"), "unknown_parameter", "item.content.0.audio"),
    ("unknown key", user_part(type="input_text", text="x", tone=1), "unknown_parameter", "item.content.0.tone"),
    ("audio without audio", user_part(type="input_audio"), "missing_required_parameter", "item.content.0.audio"),
    ("audio is a number", user_part(type="input_audio", audio=5), "invalid_type", "item.content.0.audio"),
    ("image without url", user_part(type="input_image"), "missing_required_parameter", "item.content.0.image_url"),
    ("image by link", user_part(type="input_image", image_url="https://x/y.png"), "invalid_value", "item.content.0.image_url"),
    (
        "image detail",
        user_part(type="input_image", image_url=data_uri(png()), detail="x"),
        "invalid_value",
        "item.content.0.detail",
    ),
    ("assistant's input_text", assistant_part(type="input_text", text="x"), "invalid_value", "item.content.0.type"),
    ("assistant's audio", assistant_part(type="output_audio", audio="AAAA", transcript="x"), "invalid_value", "item.content.0.audio"),
    ("no transcript", assistant_part(type="output_audio"), "missing_required_parameter", "item.content.0.transcript"),
    ("long id", {**USER, "id": "x" * 65}, "invalid_value", "item.id"),
    ("empty id", {**USER, "id": ""}, "invalid_value", "item.id"),
    ("root", {**USER, "id": "root"}, "invalid_value", "item.id"),
    ("wrong object", {**USER, "object": "item"}, "invalid_value", "item.object"),
    ("wrong status", {**USER, "status": "done"}, "invalid_value", "item.status"),
    ("call without name", {"type": "function_call", "arguments": "{}"}, "missing_required_parameter", "item.name"),
    ("arguments as object", {"type": "function_call", "name": "f", "arguments": {}}, "invalid_type", "item.arguments"),
    ("output without call", {"type": "function_call_output", "output": "1"}, "missing_required_parameter", "item.call_id"),
    ("output as object", {"type": "function_call_output", "call_id": "c", "output": {}}, "invalid_type", "item.output"),
    ("output missing", {"type": "function_call_output", "call_id": "c"}, "missing_required_parameter", "item.output"),
    ("long call id", {"type": "function_call_output", "call_id": "c" * 65, "output": "1"}, "invalid_value", "item.call_id"),
]


@pytest.mark.parametrize(("item", "code", "param"), [row[1:] for row in BAD_ITEMS], ids=[row[0] for row in BAD_ITEMS])
def test_bad_item_is_refused(item: object, code: str, param: str) -> None:
    error = refusal(frame("conversation.item.create", item=copy.deepcopy(item), event_id="e"))
    assert (error.code, error.param, error.event_id) == (code, param, "e")
