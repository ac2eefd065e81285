"""Conversations in the beta dialect: the same sessions, and every frame valid in both dialects."""
# ruff: noqa: N802 - the order bears this letter

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import orjson
import pytest

from beta_wire import check_beta_event
from omni_realtime.chat import ChatDelta, ToolCallDelta
from omni_realtime.protocol import BetaDialect, Capabilities, DecodeLimits, ProtocolError
from omni_realtime.session import Effect, Send, SessionLimits, SessionSettings
from omni_realtime.testing import MemoryClient, call_reply, spoken_reply, text_reply, tone

CAPABILITIES = Capabilities(
    output_modalities=("audio", "text"),
    audio_input=True,
    turn_detection=("server_vad",),
    transcription_models=("ears",),
    voices=("anna", "bert"),
    tools=True,
)
LOOK = {"type": "function", "name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
EARLY_CALL = [
    ChatDelta(tool_call=ToolCallDelta(name="look")),
    ChatDelta(tool_call=ToolCallDelta(arguments='{"at": "sky"}')),
    ChatDelta(text="Let me see."),
    ChatDelta(finish_reason="stop"),
]
"""A call whose item is done before its response is, for a message follows."""


class BetaClient(MemoryClient):
    """Speaks the beta dialect; ``heard`` is what it hears in it."""

    def __init__(self, settings: SessionSettings, *scripts: Any, **options: Any) -> None:
        self.heard: list[dict[str, Any]] = []
        self.dialect = BetaDialect(conversation_id="conv_0123456789ab")
        super().__init__(settings, *scripts, **options)

    def send(self, event: Mapping[str, Any] | str | bytes) -> list[dict[str, Any]]:
        frame = orjson.dumps(event).decode() if isinstance(event, Mapping) else event
        heard = len(self.heard)
        try:
            decoded = self.dialect.decode(frame, limits=DecodeLimits())
        except ProtocolError as error:
            self.take(self.session.refuse(error, self.now))
        else:
            self.take([] if decoded is None else self.session.receive(decoded, self.now))
        return self.heard[heard:]

    def say(self, text: str) -> list[dict[str, Any]]:
        content = [{"type": "input_text", "text": text}]
        return self.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": content}})

    def answer(self, call_id: str) -> list[dict[str, Any]]:
        item = {"type": "function_call_output", "call_id": call_id, "output": "1"}
        return self.send({"type": "conversation.item.create", "item": item})

    def create(self, event_id: str | None = None, **response: Any) -> list[dict[str, Any]]:
        return self.send({"type": "response.create", "event_id": event_id, "response": response})

    def update(self, **session: Any) -> list[dict[str, Any]]:
        return self.send({"type": "session.update", "session": session})

    def speak(self, *seconds: float) -> list[dict[str, Any]]:
        """Append PCM16: speech and silence by turns, so many seconds each."""
        samples = np.concatenate([tone(length, level=0.0 if index % 2 else 0.3) for index, length in enumerate(seconds)])
        pcm = (samples * 32767).astype("<i2").tobytes()
        return self.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.heard if event["type"] == kind]

    def _carry_out(self, effect: Effect) -> list[Effect]:
        following = super()._carry_out(effect)
        if isinstance(effect, Send):
            self.heard += map(check_beta_event, self.dialect.encode(effect.event))
            for released in self.dialect.released():
                following += self.session.receive(released, self.now)
        return following


def types(events: list[dict[str, Any]]) -> list[str]:
    """The types of events, those of deltas that follow each other told once."""
    told: list[str] = []
    for event in events:
        if not (event["type"].endswith(".delta") and event["type"] in told[-2:]):
            told.append(event["type"])
    return told


@pytest.fixture
def connect() -> Callable[..., BetaClient]:
    def connect(*scripts: Any, limits: dict[str, Any] | None = None, session: dict[str, Any] | None = None, **options: Any) -> BetaClient:
        settings = SessionSettings(
            model="scripted",
            capabilities=CAPABILITIES,
            defaults=session or {},
            input_rate=16000,
            detector_rate=16000,
            detector_frame=512,
            limits=SessionLimits(**(limits or {})),
        )
        return BetaClient(settings, *scripts, **options)

    return connect


def test_order_N_beta_dialect_a_text_turn(connect: Callable[..., BetaClient]) -> None:
    client = connect(text_reply("Par", "is."))
    assert types(client.heard) == ["session.created", "conversation.created"]
    assert client.heard[0]["session"]["turn_detection"]["type"] == "server_vad"
    [updated] = client.update(modalities=["text"], turn_detection=None)
    assert (updated["session"]["modalities"], updated["session"]["turn_detection"]) == (["text"], None)
    [created] = client.say("What is the capital of France?")
    assert (created["type"], created["previous_item_id"]) == ("conversation.item.created", None)
    assert types(client.create()) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
        "response.text.delta",
        "response.text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    [done] = client.of("response.done")
    assert done["response"]["output"][0]["content"] == [{"type": "text", "text": "Paris."}]
    assert done["response"]["conversation_id"] == client.heard[1]["conversation"]["id"]
    assert client.of("conversation.item.created")[1]["previous_item_id"] == created["item"]["id"]


def test_order_N_beta_dialect_a_spoken_turn(connect: Callable[..., BetaClient]) -> None:
    client = connect(spoken_reply("It is a tone.", tone(0.5)))
    client.update(input_audio_transcription={"model": "whisper-1"}, output_audio_format="g711_ulaw")
    heard = [event for event in client.speak(0.5, 1.0) if "transcription" not in event["type"]]
    assert client.of("conversation.item.input_audio_transcription.completed")[0]["transcript"] == "Hello."
    assert types(heard) == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.created",
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
        "response.audio_transcript.delta",
        "response.audio.delta",
        "response.audio.done",
        "response.audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    assert client.of("conversation.item.created")[0]["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    assert sum(len(base64.b64decode(event["delta"])) for event in client.of("response.audio.delta")) == 4000
    [item] = client.of("response.done")[0]["response"]["output"]
    assert item["content"] == [{"type": "audio", "transcript": "It is a tone."}]


def test_barge_in_with_truncation(connect: Callable[..., BetaClient]) -> None:
    client = connect(spoken_reply("One two three four.", tone(2.0)), text_reply("Yes?"), autoplay=False)
    client.say("Count.")
    client.create()
    client.play(8)
    client.speak(0.5)
    [done] = client.of("response.done")
    assert done["response"]["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    [item] = done["response"]["output"]
    truncate = {"type": "conversation.item.truncate", "item_id": item["id"], "content_index": 0, "audio_end_ms": 150}
    assert client.send(truncate)[0]["type"] == "conversation.item.truncated"
    [retrieved] = client.send({"type": "conversation.item.retrieve", "item_id": item["id"]})
    [part] = retrieved["item"]["content"]
    assert part["type"] == "audio"
    assert len(base64.b64decode(part["audio"])) == 150 * 48
    client.speak(0.1, 1.0)
    client.play()
    assert client.of("response.done")[1]["response"]["status"] == "completed"


def test_a_tool_call_there_and_back(connect: Callable[..., BetaClient]) -> None:
    client = connect(call_reply("look", '{"at":', ' "sky"}'), text_reply("Blue."))
    client.update(tools=[LOOK], modalities=["text"])
    client.say("Which colour has the sky?")
    assert types(client.create()) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.done",
    ]
    assert client.of("conversation.item.created")[1]["item"]["arguments"] == ""
    [call] = client.of("response.done")[0]["response"]["output"]
    [output] = client.answer(call["call_id"])
    assert (output["type"], output["item"]["output"]) == ("conversation.item.created", "1")
    client.create()
    assert client.of("response.done")[1]["response"]["output"][0]["content"] == [{"type": "text", "text": "Blue."}]


def called(client: BetaClient) -> str:
    """Have a tool called in a response that goes on, answer it and return the response's id."""
    client.update(tools=[LOOK], modalities=["text"])
    client.say("Which colour has the sky?")
    client.create()
    client.play(3)
    [done] = client.of("response.output_item.done")
    assert done["item"]["type"] == "function_call"
    assert not client.of("response.done")
    assert types(client.answer(done["item"]["call_id"])) == ["conversation.item.created"]
    response_id: str = done["response_id"]
    return response_id


def test_a_create_right_after_a_function_call_waits_for_its_response_to_end(connect: Callable[..., BetaClient]) -> None:
    client = connect(EARLY_CALL, text_reply("Blue."), autoplay=False)
    first = called(client)
    assert client.create() == []
    client.play()
    last = types(client.heard)[-2:]
    assert last == ["response.done", "response.created"]
    client.play()
    done = client.of("response.done")
    assert [event["response"]["status"] for event in done] == ["completed", "completed"]
    assert done[0]["response"]["id"] == first
    assert [message.role for message in client.turns[1].messages] == ["user", "assistant", "tool", "assistant"]
    assert not client.of("error")


def test_a_second_create_is_refused_as_usual(connect: Callable[..., BetaClient]) -> None:
    client = connect(EARLY_CALL, text_reply("Blue."), autoplay=False)
    called(client)
    assert client.create("one") == []
    [error] = client.create("two")
    assert (error["error"]["code"], error["error"]["event_id"]) == ("conversation_already_has_active_response", "two")
    client.play()
    client.play()
    assert len(client.of("response.done")) == 2


def test_a_create_without_a_function_call_is_refused_as_usual(connect: Callable[..., BetaClient]) -> None:
    client = connect(text_reply("Well,", " yes."), autoplay=False)
    client.create()
    client.play(1)
    [error] = client.create("mine")
    assert (error["error"]["code"], error["error"]["event_id"]) == ("conversation_already_has_active_response", "mine")
    client.play()
    assert types(client.heard)[-1] == "response.done"


def test_an_out_of_band_create_does_not_wait(connect: Callable[..., BetaClient]) -> None:
    client = connect(EARLY_CALL, text_reply("Aside."), autoplay=False)
    called(client)
    [created] = client.create(conversation="none")
    assert (created["type"], created["response"]["conversation_id"]) == ("response.created", None)


def test_a_function_call_out_of_band_lets_no_create_wait(connect: Callable[..., BetaClient]) -> None:
    client = connect(text_reply("Well,", " yes."), EARLY_CALL, autoplay=False)
    client.update(tools=[LOOK], modalities=["text"])
    client.create()
    [created] = client.create(conversation="none")
    client.play(3, response_id=created["response"]["id"])
    assert client.of("response.output_item.done")[0]["item"]["type"] == "function_call"
    [error] = client.create()
    assert error["error"]["code"] == "conversation_already_has_active_response"


def test_a_waiting_create_that_is_bad_earns_its_error_after_the_response(connect: Callable[..., BetaClient]) -> None:
    client = connect(EARLY_CALL, autoplay=False)
    called(client)
    assert client.create("mine", voice="nobody") == []
    client.play()
    assert types(client.heard)[-2:] == ["response.done", "error"]
    error = client.heard[-1]["error"]
    assert (error["event_id"], error["param"]) == ("mine", "response.voice")
    client.say("Hello?")
    client.create()
    client.play()
    assert client.of("response.done")[1]["response"]["status"] == "completed"


def test_a_cancel_stops_the_create_that_waits_too(connect: Callable[..., BetaClient]) -> None:
    client = connect(EARLY_CALL, text_reply("Blue."), autoplay=False)
    first = called(client)
    client.create()
    client.send({"type": "response.cancel"})
    done = client.of("response.done")
    assert [event["response"]["status_details"]["reason"] for event in done] == ["client_cancelled", "client_cancelled"]
    assert done[0]["response"]["id"] == first
    assert client.waiting == ()
    assert not client.of("error")


def test_a_cancel_by_id_leaves_the_create_that_waits(connect: Callable[..., BetaClient]) -> None:
    client = connect(EARLY_CALL, text_reply("Blue."), autoplay=False)
    first = called(client)
    client.create()
    client.send({"type": "response.cancel", "response_id": first})
    client.play()
    assert [event["response"]["status"] for event in client.of("response.done")] == ["cancelled", "completed"]


def test_a_create_that_waits_ends_with_the_session(connect: Callable[..., BetaClient]) -> None:
    client = connect(EARLY_CALL, autoplay=False)
    called(client)
    client.create()
    client.take(client.session.shutdown(client.now))
    assert client.closed is not None
    assert len(client.of("response.created")) == 1


def test_idle_timeout_is_heard_as_a_committed_turn(connect: Callable[..., BetaClient]) -> None:
    vad = {"audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 6000}}}}
    client = connect(text_reply("Hello?"), session=vad)
    client.update(modalities=["text"])
    client.speak(0.5, 7.0)
    heard = len(client.heard)
    client.advance(7.0)
    assert types(client.heard[heard:])[:3] == ["input_audio_buffer.committed", "conversation.item.created", "response.created"]


def test_session_expiry(connect: Callable[..., BetaClient]) -> None:
    client = connect(text_reply("Hello?"), limits={"duration_s": 60})
    client.advance(61.0)
    assert client.of("error")[0]["error"]["code"] == "session_expired"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ("{", "invalid_json"),
        (b"\x00", "invalid_frame"),
        ("[]", "invalid_type"),
        ({"type": "no.such.event"}, "invalid_value"),
        ({"type": "conversation.item.delete"}, "missing_required_parameter"),
        ({"type": "session.update", "session": {"audio": {}}}, "unknown_parameter"),
        ({"type": "session.update", "session": {"tools": [{"name": "a b"}]}}, "invalid_value"),
        ({"type": "session.update", "session": {"voice": "nobody"}}, "invalid_value"),
        ({"type": "response.create", "response": {"metadata": {"a": [[[]] * 9] * 9}}}, "invalid_type"),
        ("[" * 200 + "]" * 200, "invalid_type"),
        ('{"type":"session.update","session":{"modalities":' + "[" * 900 + "]" * 900 + "}}", "event_too_deep"),
        ('{"type":"response.create","response":{"metadata":' + '{"a":' * 99 + "1" + "}" * 101, "event_too_deep"),
        ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty"),
        ({"type": "response.cancel"}, "response_cancel_not_active"),
        ({"type": "conversation.item.delete", "item_id": "x"}, "item_delete_invalid_item_id"),
        ({"type": "conversation.item.retrieve", "item_id": "x"}, "item_retrieve_invalid_item_id"),
        (
            {"type": "conversation.item.truncate", "item_id": "x", "content_index": 0, "audio_end_ms": 0},
            "item_truncate_invalid_item_id",
        ),
    ],
    ids=str,
)
def test_a_bad_event_earns_one_error_and_the_session_lives(connect: Callable[..., BetaClient], event: Any, code: str) -> None:
    client = connect(text_reply("Fine."))
    client.update(modalities=["text"])
    [error] = client.send(event)
    assert (error["type"], error["error"]["code"]) == ("error", code)
    client.create()
    assert client.of("response.done")[0]["response"]["status"] == "completed"
