"""The orders A to M of the events on a WebSocket, as the clients of the API depend on them; N is in test_beta_session.py."""
# ruff: noqa: N802 - the orders bear these letters

from __future__ import annotations

from typing import Any

import pytest

from omni_realtime.chat import ChatDelta, ToolCallDelta, Usage
from omni_realtime.engine.port import EngineError
from omni_realtime.testing import call_reply, spoken_reply, text_reply, tone

USAGE = Usage(input_text_tokens=5, input_audio_tokens=7, cached_audio_tokens=3, output_text_tokens=2, output_audio_tokens=11)
HELLO = spoken_reply("Hello there", tone(0.5), usage=USAGE)
SPEECH_ADDED = ["response.output_item.added", "conversation.item.added", "response.content_part.added"]
SPEECH_DELTAS = ["response.output_audio_transcript.delta", "response.output_audio.delta"]
SPEECH_CLOSED = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
]
SPOKEN = ["response.created", *SPEECH_ADDED, *SPEECH_DELTAS, *SPEECH_CLOSED, "response.done"]
COMMITTED = ["input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"]
CALLED = [
    "response.output_item.added",
    "conversation.item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "conversation.item.done",
]
LOOK = {"type": "function", "name": "look"}


def test_order_A_connect(connect: Any, types: Any) -> None:
    client = connect(HELLO)
    assert types(client.events) == ["session.created"]
    created = client.events[0]["session"]
    assert (created["object"], created["type"], created["model"]) == ("realtime.session", "realtime", "scripted")
    assert created["instructions"] == "Be kind."
    turn_detection = created["audio"]["input"]["turn_detection"]
    assert turn_detection["type"] == "server_vad"
    assert (turn_detection["create_response"], turn_detection["interrupt_response"]) == (True, True)
    updated = client.update(instructions="Be brief.", model="scripted")
    assert types(updated) == ["session.updated"]
    assert updated[0]["session"] == created | {"instructions": "Be brief."}


def test_order_B_server_vad_turn(connect: Any, types: Any) -> None:
    client = connect(HELLO, session={"audio": {"input": {"transcription": {"model": "ears"}}}}, transcript="Hi.")
    client.say("before", item_id="before")
    told = client.speak(0.0, 0.5, 1.0, 1.0)
    transcribed = "conversation.item.input_audio_transcription.completed"
    written = transcribed.replace("completed", "delta")
    assert [kind for kind in types(told) if kind in {written, transcribed}] == [written, transcribed]
    without = [kind for kind in types(told) if kind not in {written, transcribed}]
    assert without == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", *COMMITTED, *SPOKEN]
    assert len(client.of(transcribed)) == 1

    started, stopped, committed, added, done = told[:5]
    user = started["item_id"]
    assert {stopped["item_id"], committed["item_id"], added["item"]["id"], done["item"]["id"]} == {user}
    assert (committed["previous_item_id"], added["previous_item_id"], done["previous_item_id"]) == ("before",) * 3
    assert added["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    assert (added["item"]["role"], added["item"]["status"]) == ("user", "completed")
    assert client.last(transcribed)["item_id"] == user
    assert client.last(transcribed)["content_index"] == 0
    seconds = (stopped["audio_end_ms"] - started["audio_start_ms"]) / 1000
    assert client.last(transcribed)["usage"] == {"type": "duration", "seconds": pytest.approx(seconds, abs=0.001)}

    answer = client.last("conversation.item.done")["item"]
    response = client.last("response.created")["response"]
    assert (response["status"], response["output"], response["usage"], response["metadata"]) == ("in_progress", [], None, None)
    opened = client.last("response.output_item.added")["item"]
    assert (opened["id"], opened["status"], opened["content"]) == (answer["id"], "in_progress", [])
    assert client.of("conversation.item.added")[-1]["previous_item_id"] == user
    assert client.last("response.content_part.added")["part"] == {"type": "audio", "transcript": ""}
    assert client.last("response.output_audio_transcript.done")["transcript"] == "Hello there"
    assert client.last("response.content_part.done")["part"] == {"type": "audio", "transcript": "Hello there"}
    assert (answer["status"], answer["content"]) == ("completed", [{"type": "output_audio", "transcript": "Hello there"}])
    ended = client.last("response.done")["response"]
    assert (ended["id"], ended["status"], ended["status_details"], ended["output"]) == (response["id"], "completed", None, [answer])
    assert (ended["usage"]["total_tokens"], ended["usage"]["input_tokens"], ended["usage"]["output_tokens"]) == (25, 12, 13)


@pytest.mark.parametrize("turn_detection", [None, {"type": "server_vad", "create_response": False}])
def test_order_C_manual_commit(connect: Any, types: Any, turn_detection: object) -> None:
    client = connect(HELLO)
    client.update_input(turn_detection=turn_detection)
    assert types(client.speak(0.0, 0.5)) == []
    told = client.commit()
    assert types(told) == COMMITTED
    assert (told[0]["previous_item_id"], told[1]["previous_item_id"]) == (None, None)
    assert types(client.create()) == SPOKEN
    assert client.of("conversation.item.added")[-1]["previous_item_id"] == told[0]["item_id"]


def test_order_D_text_input(connect: Any, types: Any) -> None:
    client = connect(HELLO)
    told = client.say("Hi.", item_id="mine")
    assert types(told) == ["conversation.item.added", "conversation.item.done"]
    assert [event["item"]["id"] for event in told] == ["mine", "mine"]
    assert types(client.create()) == SPOKEN


def test_order_E_text_only_output(connect: Any, types: Any) -> None:
    client = connect(text_reply("Hello ", "there"))
    told = client.create(output_modalities=["text"])
    assert types(told) == [
        "response.created",
        *SPEECH_ADDED,
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    assert client.last("response.content_part.added")["part"] == {"type": "text", "text": ""}
    assert [event["delta"] for event in client.of("response.output_text.delta")] == ["Hello ", "there"]
    assert client.last("response.output_text.done")["text"] == "Hello there"
    assert client.last("response.content_part.done")["part"] == {"type": "text", "text": "Hello there"}
    assert client.last("response.output_item.done")["item"]["content"] == [{"type": "output_text", "text": "Hello there"}]


def test_order_F_function_call(connect: Any, types: Any) -> None:
    client = connect(call_reply("look", '{"at": ', '"it"}'), HELLO, session={"tools": [LOOK]})
    told = client.create()
    assert types(told) == ["response.created", *CALLED, "response.done"]
    added = client.last("response.output_item.added")["item"]
    assert (added["type"], added["name"], added["arguments"], added["status"]) == ("function_call", "look", "", "in_progress")
    of_call = [*client.of("response.function_call_arguments.delta"), client.last("response.function_call_arguments.done")]
    keys = {(event["response_id"], event["item_id"], event["output_index"], event["call_id"]) for event in of_call}
    assert keys == {(told[0]["response"]["id"], added["id"], 0, added["call_id"])}
    assert (of_call[-1]["name"], of_call[-1]["arguments"]) == ("look", '{"at": "it"}')
    finished = client.last("response.output_item.done")["item"]
    assert finished == added | {"arguments": '{"at": "it"}', "status": "completed"}
    assert client.last("response.done")["response"]["output"] == [finished]
    assert types(client.output(added["call_id"], "a cat")) == ["conversation.item.added", "conversation.item.done"]
    assert len(client.of("response.created")) == 1, "the server never goes on by itself"
    assert types(client.create()) == SPOKEN


def test_order_F_a_message_before_two_calls(connect: Any, types: Any) -> None:
    steps = [
        ChatDelta(text="Let me look."),
        ChatDelta(tool_call=ToolCallDelta(index=0, name="look", arguments='{"n": 1}')),
        ChatDelta(tool_call=ToolCallDelta(index=1, name="look", arguments='{"n": 2}')),
        ChatDelta(finish_reason="tool_calls"),
    ]
    client = connect(steps, autoplay=False)
    client.create()
    told = client.play(3)
    message = [*SPEECH_ADDED, "response.output_audio_transcript.delta", *SPEECH_CLOSED]
    assert types(told) == [*message, *CALLED, *CALLED[:3]]
    first = client.last("response.function_call_arguments.done")["call_id"]
    early = client.output(first, "a cat")
    assert types(early) == ["conversation.item.added", "conversation.item.done"], "an output may come before response.done"
    assert types(client.play()) == [*CALLED[3:], "response.done"]
    assert [item["type"] for item in client.last("response.done")["response"]["output"]] == ["message", "function_call", "function_call"]
    assert [event["output_index"] for event in client.of("response.output_item.added")] == [0, 1, 2]


def test_order_G_barge_in(connect: Any, types: Any) -> None:
    client = connect(HELLO, HELLO, autoplay=False)
    client.create()
    client.play(2)
    told = client.speak(0.5)
    assert types(told) == ["input_audio_buffer.speech_started", *SPEECH_CLOSED, "response.done"]
    ended = told[-1]["response"]
    assert (ended["status"], ended["status_details"]) == ("cancelled", {"type": "cancelled", "reason": "turn_detected"})
    sent = "".join(event["delta"] for event in client.of("response.output_audio_transcript.delta"))
    assert ended["output"][0]["content"] == [{"type": "output_audio", "transcript": sent}]
    assert client.last("response.output_item.done")["item"]["status"] == "incomplete"
    assert client.last("conversation.item.done")["item"]["status"] == "incomplete"
    assert client.cancelled == [ended["id"]]
    assert types(client.truncate(ended["output"][0]["id"], 100)) == ["conversation.item.truncated"]
    told = client.speak(0.0, 1.0)
    assert types(told) == ["input_audio_buffer.speech_stopped", *COMMITTED, "response.created"]
    assert told[1]["previous_item_id"] == ended["output"][0]["id"]


def test_order_G_without_interruption_the_response_goes_on(connect: Any, types: Any) -> None:
    client = connect(HELLO, autoplay=False)
    client.update_input(turn_detection={"interrupt_response": False})
    client.create()
    client.play(2)
    told = client.speak(0.5, 1.0)
    assert types(told) == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", *COMMITTED]
    assert client.play()[-1]["response"]["status"] == "completed"
    assert len(client.of("response.created")) == 1, "no second response beside the first"


def test_order_G_a_response_that_begins_while_the_user_speaks_gives_way_to_the_turn(connect: Any, types: Any) -> None:
    """A tool's output may come amid the user's speech; the turn must not stay without an answer."""
    client = connect(HELLO, autoplay=False)
    client.speak(0.5)
    client.create()
    client.play(1)
    told = client.speak(0.0, 1.0)
    assert types(told) == ["input_audio_buffer.speech_stopped", *COMMITTED, *SPEECH_CLOSED, "response.done", "response.created"]
    assert told[-2]["response"]["status_details"]["reason"] == "turn_detected"
    assert client.play()[-1]["response"]["status"] == "completed"


@pytest.mark.parametrize("played", [0, 2])
def test_order_H_cancel(connect: Any, types: Any, played: int) -> None:
    client = connect(HELLO, autoplay=False)
    response_id = client.create()[0]["response"]["id"]
    client.play(played)
    told = client.cancel(response_id=response_id)
    assert types(told) == [*(SPEECH_CLOSED if played else []), "response.done"]
    ended = told[-1]["response"]
    assert (ended["status"], ended["status_details"]) == ("cancelled", {"type": "cancelled", "reason": "client_cancelled"})
    assert len(ended["output"]) == bool(played)
    assert ended["usage"]["total_tokens"] == 0
    assert client.take(client.session.delta(response_id, ChatDelta(text="late"), client.now)) == []


@pytest.mark.parametrize("deltas", [0, 2])
def test_order_I_failure(connect: Any, types: Any, deltas: int) -> None:
    client = connect([*HELLO[:deltas], EngineError("Out of memory.", code="overloaded")], HELLO)
    told = client.create()
    streamed = [*SPEECH_ADDED, *SPEECH_DELTAS, *SPEECH_CLOSED] if deltas else []
    assert types(told) == ["response.created", *streamed, "response.done"]
    ended = told[-1]["response"]
    assert ended["status"] == "failed"
    error = {"type": "server_error", "code": "overloaded", "message": "Out of memory."}
    assert ended["status_details"] == {"type": "failed", "error": error}
    assert all(item["status"] == "incomplete" for item in ended["output"])
    assert client.of("error") == []
    assert types(client.create()) == SPOKEN


@pytest.mark.parametrize(("finish_reason", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
@pytest.mark.parametrize("text", [False, True])
def test_order_J_max_output_tokens(connect: Any, types: Any, finish_reason: Any, reason: str, text: bool) -> None:
    client = connect([ChatDelta(text="Hello"), ChatDelta(finish_reason=finish_reason)], text=text)
    ended = client.create(max_output_tokens=5)[-1]["response"]
    assert client.turns[0].max_output_tokens == 5
    assert (ended["status"], ended["status_details"]) == ("incomplete", {"type": "incomplete", "reason": reason})
    assert ended["output"][0]["status"] == "incomplete"
    assert client.last("conversation.item.done")["item"]["status"] == "incomplete"


def test_order_K_idle_timeout(connect: Any, types: Any) -> None:
    client = connect(HELLO)
    client.update_input(turn_detection={"idle_timeout_ms": 5000})
    client.create()
    client.speak(0.0, 2.0)
    assert client.advance(5.49) == []
    told = client.advance(0.02)
    assert types(told) == ["input_audio_buffer.timeout_triggered", *COMMITTED, *SPOKEN]
    timeout = told[0]
    assert (timeout["audio_start_ms"], timeout["audio_end_ms"]) == (0, 2000)
    assert timeout["item_id"] == told[1]["item_id"] == told[2]["item"]["id"]


def test_order_L_out_of_band(connect: Any, types: Any) -> None:
    client = connect(HELLO)
    told = client.create(conversation="none")
    assert types(told) == [kind for kind in SPOKEN if not kind.startswith("conversation.")]
    assert told[0]["response"]["conversation_id"] is None
    assert told[-1]["response"]["conversation_id"] is None
    assert client.items == []


def test_order_M_buffer_clear(connect: Any, types: Any) -> None:
    client = connect(HELLO)
    announced = client.speak(0.5)[-1]["item_id"]
    assert types(client.clear()) == ["input_audio_buffer.cleared"]
    assert types(client.speak(0.0, 1.0)) == []
    told = client.speak(0.5, 1.0)
    assert told[0]["type"] == "input_audio_buffer.speech_started"
    assert announced not in {event.get("item_id") for event in told}
    assert announced not in client.items
