"""What goes wrong with items and their truncation."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from omni_realtime.chat import AudioPart, ChatDelta, TextPart, ToolCall
from omni_realtime.engine.port import EngineError
from omni_realtime.testing import call_reply, spoken_reply, text_reply, tone

WORDS = "one two three four five six seven eight nine ten"
COUNT = spoken_reply(WORDS, tone(2.0), sizes=(4800,))
"""Ten words, one in each 200 ms."""
LOOK = {"type": "function", "name": "look"}


def texts(turn: Any) -> list[tuple[str, str]]:
    return [(message.role, part.text) for message in turn.messages for part in message.content if isinstance(part, TextPart)]


def error_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    (event,) = events
    assert event["type"] == "error", event
    error: dict[str, Any] = event["error"]
    return error


@pytest.mark.parametrize(("end_ms", "heard"), [(1999, WORDS.removesuffix(" ten")), (2000, WORDS), (400, "one two"), (399, "one"), (0, "")])
def test_truncate_at_length_or_less(connect: Any, end_ms: int, heard: str) -> None:
    client = connect(COUNT)
    item_id = client.create()[-1]["response"]["output"][0]["id"]
    (truncated,) = client.truncate(item_id, end_ms)
    assert {key: truncated[key] for key in ("item_id", "content_index", "audio_end_ms")} == {
        "item_id": item_id,
        "content_index": 0,
        "audio_end_ms": end_ms,
    }
    (retrieved,) = client.retrieve(item_id)
    part = retrieved["item"]["content"][0]
    assert part["transcript"] == heard
    assert len(base64.b64decode(part["audio"])) == 48 * end_ms


@pytest.mark.parametrize("end_ms", [2001, 10**12])
def test_truncate_beyond_the_length_is_an_error(connect: Any, end_ms: int) -> None:
    client = connect(COUNT)
    item_id = client.create()[-1]["response"]["output"][0]["id"]
    error = error_of(client.truncate(item_id, end_ms))
    assert (error["code"], error["message"]) == (None, f"Audio content of 2000ms is already shorter than {end_ms}ms")
    assert client.retrieve(item_id)[0]["item"]["content"][0]["transcript"] == WORDS


def test_truncate_at_a_length_that_is_no_whole_number_of_milliseconds(connect: Any) -> None:
    """Clients round what they received up."""
    client = connect(spoken_reply("one two", tone(1.0)[:23995]))
    item_id = client.create()[-1]["response"]["output"][0]["id"]
    assert client.truncate(item_id, 1000)[0]["type"] == "conversation.item.truncated"
    assert client.retrieve(item_id)[0]["item"]["content"][0]["transcript"] == "one two"


@pytest.mark.parametrize(
    ("end_ms", "content_index", "param"), [(-1, 0, "audio_end_ms"), (100, 1, "content_index"), (100, -1, "content_index")]
)
def test_truncate_with_negative_time_or_another_part(connect: Any, end_ms: int, content_index: int, param: str) -> None:
    client = connect(COUNT)
    item_id = client.create()[-1]["response"]["output"][0]["id"]
    assert error_of(client.truncate(item_id, end_ms, content_index=content_index))["param"] == param


def test_truncate_of_what_is_no_speech_or_not_there(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    written = client.create()[-1]["response"]["output"][0]["id"]
    client.say("Hi.", item_id="mine")
    spoken = [{"type": "output_audio", "transcript": "Hello."}]
    client.item({"type": "message", "role": "assistant", "id": "brought", "content": spoken})
    for item_id in (written, "mine", "brought"):
        assert error_of(client.truncate(item_id, 0))["message"] == "Only model output audio messages can be truncated"
    assert error_of(client.truncate("ghost", 0))["code"] == "item_truncate_invalid_item_id"


def test_truncate_twice_cuts_further_and_never_back(connect: Any) -> None:
    client = connect(COUNT)
    item_id = client.create()[-1]["response"]["output"][0]["id"]
    client.truncate(item_id, 1000)
    assert client.truncate(item_id, 1000)[0]["type"] == "conversation.item.truncated"
    assert error_of(client.truncate(item_id, 1001))["message"] == "Audio content of 1000ms is already shorter than 1001ms"
    client.truncate(item_id, 600)
    assert client.retrieve(item_id)[0]["item"]["content"][0]["transcript"] == "one two three"
    client.create()
    assert texts(client.turns[-1]) == [("assistant", "one two three")]


def test_truncate_during_generation_then_cancel(connect: Any) -> None:
    """``session.interrupt()`` of openai-agents."""
    client = connect(COUNT, autoplay=False)
    client.create()
    client.play(5)
    item_id = client.items[0]
    assert error_of(client.truncate(item_id, 1001))["message"] == "Audio content of 1000ms is already shorter than 1001ms"
    assert client.truncate(item_id, 450)[0]["type"] == "conversation.item.truncated"
    client.play(2)
    assert error_of(client.truncate(item_id, 451))["message"] == "Audio content of 450ms is already shorter than 451ms"
    assert client.truncate(item_id, 450)[0]["type"] == "conversation.item.truncated"
    ended = client.cancel()[-1]["response"]
    assert ended["output"][0]["content"] == [{"type": "output_audio", "transcript": "one two"}]
    assert client.last("response.output_audio_transcript.done")["transcript"] == "one two three four five six seven"
    client.create()
    assert texts(client.turns[-1]) == [("assistant", "one two")]


def test_truncate_during_generation_that_goes_on(connect: Any) -> None:
    client = connect(COUNT, autoplay=False)
    client.create()
    client.play(5)
    client.truncate(client.items[0], 200)
    assert client.play()[-1]["response"]["status"] == "completed"
    assert len(b"".join(base64.b64decode(event["delta"]) for event in client.of("response.output_audio.delta"))) == 96000
    client.create()
    assert texts(client.turns[-1]) == [("assistant", "one")]


def test_truncate_before_the_first_audio(connect: Any) -> None:
    client = connect([ChatDelta(text="one"), *COUNT], autoplay=False)
    client.create()
    client.play(1)
    assert client.truncate(client.items[0], 0)[0]["type"] == "conversation.item.truncated"
    client.cancel()
    client.create()
    assert client.turns[-1].messages == ()


def test_after_a_cancel_the_history_holds_what_was_sent_until_a_truncate_cuts_it(connect: Any) -> None:
    client = connect(COUNT, autoplay=False)
    client.create()
    client.play(5)
    client.cancel()
    client.create()
    assert texts(client.turns[-1]) == [("assistant", "one two three four five")]
    client.cancel()
    client.truncate(client.items[0], 600)
    client.create()
    assert texts(client.turns[-1]) == [("assistant", "one two three")]


def test_truncate_without_spoken_marks_is_by_proportion(connect: Any) -> None:
    steps = [ChatDelta(text=WORDS), ChatDelta(audio=tone(1.0), rate=24000), ChatDelta(finish_reason="stop")]
    client = connect(steps)
    item_id = client.create()[-1]["response"]["output"][0]["id"]
    client.truncate(item_id, 500)
    assert client.retrieve(item_id)[0]["item"]["content"][0]["transcript"] == "one two three four five"


def test_previous_item_id_root_after_absent_unknown(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    for item_id, fields in (("b", {}), ("d", {}), ("a", {"previous_item_id": "root"}), ("c", {"previous_item_id": "b"}), ("e", {})):
        client.say(item_id, item_id=item_id, **fields)
    error = error_of(client.say("f", item_id="f", previous_item_id="ghost", event_id="mine"))
    assert (error["param"], error["event_id"]) == ("previous_item_id", "mine")
    added = [(event["item"]["id"], event["previous_item_id"]) for event in client.of("conversation.item.added")]
    assert added == [("b", None), ("d", "b"), ("a", None), ("c", "b"), ("e", "d")]
    client.create()
    assert [text for _, text in texts(client.turns[0])] == client.items[:5] == ["a", "b", "c", "d", "e"]


def test_an_item_that_is_added_amid_an_answer_stands_where_it_was_put(connect: Any) -> None:
    client = connect(COUNT, autoplay=False)
    client.say("q", item_id="q")
    client.create()
    client.play(1)
    answer = client.items[1]
    client.say("between", item_id="between", previous_item_id="q")
    client.say("last", item_id="last")
    client.play()
    assert client.last("conversation.item.done")["previous_item_id"] == "between"
    assert client.items == ["q", "between", answer, "last"]


def test_a_duplicate_id_is_refused(connect: Any) -> None:
    client = connect(COUNT)
    client.say("one", item_id="x")
    error = error_of(client.say("two", item_id="x", event_id="chat_ctx_create_1"))
    assert (error["code"], error["event_id"]) == ("item_create_duplicate_item_id", "chat_ctx_create_1")
    assert error["message"] == "Error adding item: an item with id 'x' already exists."
    client.delete("x")
    assert client.say("two", item_id="x")[0]["type"] == "conversation.item.added"


@pytest.mark.parametrize("verb", ["delete", "retrieve"])
def test_retrieve_or_delete_of_an_unknown_id_is_an_error(connect: Any, verb: str) -> None:
    client = connect(COUNT)
    event = {"type": f"conversation.item.{verb}", "item_id": "ghost", "event_id": "rci_ghost"}
    error = error_of(client.send(event))
    assert (error["code"], error["event_id"]) == (f"item_{verb}_invalid_item_id", "rci_ghost")
    assert error["message"].endswith("the item with id 'ghost' does not exist.")


def test_a_deleted_item_is_gone_from_the_prompt(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    client.say("one", item_id="one")
    client.say("two", item_id="two")
    assert client.delete("one")[0]["type"] == "conversation.item.deleted"
    assert error_of(client.delete("one"))["code"] == "item_delete_invalid_item_id"
    client.create()
    assert texts(client.turns[0]) == [("user", "two")]


def test_an_answer_that_is_deleted_while_it_streams(connect: Any, types: Any) -> None:
    """livekit deletes an answer of which nothing was played."""
    client = connect(COUNT, autoplay=False)
    client.create()
    client.play(1)
    answer = client.items[0]
    client.delete(answer)
    client.say("mine", item_id=answer)
    told = types(client.cancel())
    assert "response.output_item.done" in told
    assert "conversation.item.done" not in told, "the item of that id is another now"
    assert client.last("response.done")["response"]["output"][0]["id"] == answer
    client.create()
    assert texts(client.turns[-1]) == [("user", "mine")]


def test_function_call_output_unknown_twice_or_not_a_string_is_refused(connect: Any) -> None:
    client = connect(call_reply("look", "{}"), session={"tools": [LOOK]})
    client.create()
    call_id = client.last("response.output_item.done")["item"]["call_id"]
    assert error_of(client.output("ghost", "a cat"))["param"] == "item.call_id"
    assert error_of(client.item({"type": "function_call_output", "call_id": call_id, "output": {"a": 1}}))["param"] == "item.output"
    assert len(client.items) == 1
    client.output(call_id, "a cat")
    assert error_of(client.output(call_id, "a dog"))["param"] == "item.call_id"
    client.create()
    assert [message.content for message in client.turns[-1].messages if message.role == "tool"] == [(TextPart(text="a cat"),)]


def test_a_call_with_the_id_of_another_is_refused(connect: Any) -> None:
    client = connect(COUNT)
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    assert client.item(call)[0]["item"]["call_id"] == "c"
    assert error_of(client.item(call))["param"] == "item.call_id"
    assert client.item({"type": "function_call", "name": "look", "arguments": "{}"})[0]["item"]["call_id"]


def test_outputs_stand_behind_their_calls_in_the_prompt(connect: Any) -> None:
    """A user may speak while a tool works; chat templates demand the answer right behind the call."""
    client = connect(text_reply("Hi"), text=True)
    client.item({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]})
    for call_id in ("first", "second", "third"):
        client.item({"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"})
    client.output("second", "2")
    client.say("Are you there?")
    client.output("first", "1")
    client.item({"type": "function_call", "call_id": "later", "name": "look", "arguments": "{}"})
    client.output("later", "3")
    client.create()
    messages = client.turns[0].messages
    assert [(message.role, message.tool_call_id or len(message.tool_calls)) for message in messages] == [
        ("assistant", 3),
        ("tool", "first"),
        ("tool", "second"),
        ("user", 0),
        ("assistant", 1),
        ("tool", "later"),
    ]
    assert messages[0].content == (TextPart(text="Let me look."),)
    assert messages[0].tool_calls[0] == ToolCall(call_id="first", name="look", arguments="{}")


def test_an_output_whose_call_was_deleted_is_not_told(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    client.item({"type": "function_call", "id": "call", "call_id": "c", "name": "look", "arguments": "{}"})
    client.output("c", "a cat")
    client.delete("call")
    client.create()
    assert client.turns[0].messages == ()


def test_user_audio_that_a_client_brings(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    audio = base64.b64encode((tone(0.5) * 32767).astype("<i2").tobytes()).decode()
    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_audio", "audio": audio, "transcript": "a tone"},
        {"type": "input_audio", "transcript": "only words"},
    ]
    (added, _) = client.item({"type": "message", "role": "user", "id": "mine", "content": content})
    assert [part.get("audio") for part in added["item"]["content"]] == [None] * 3
    client.create()
    (message,) = client.turns[0].messages
    text, tone_part, words = message.content
    assert (text, words) == (TextPart(text="What is this?"), TextPart(text="only words"))
    assert isinstance(tone_part, AudioPart)
    assert (len(tone_part.samples), tone_part.rate, tone_part.transcript) == (8000, 16000, "a tone")
    (retrieved,) = client.retrieve("mine")
    assert len(base64.b64decode(retrieved["item"]["content"][1]["audio"])) == 24000
    odd = {"type": "input_audio", "audio": base64.b64encode(b"abc").decode()}
    assert error_of(client.item({"type": "message", "role": "user", "content": [odd]}))["param"] == "item.content.0.audio"


def test_a_system_message_and_a_call_are_retrieved_as_they_are(connect: Any) -> None:
    client = connect(COUNT)
    system = {"type": "message", "role": "system", "id": "s", "content": [{"type": "input_text", "text": "Hm."}]}
    call = {"type": "function_call", "id": "c", "call_id": "c", "name": "look", "arguments": "{}"}
    for item in (system, call):
        client.item(item)
        assert client.retrieve(item["id"])[0]["item"].items() >= item.items()


def test_retrieved_audio_stays_below_a_frame_of_1_mib(connect: Any) -> None:
    client = connect(spoken_reply("long", tone(20.0)), manual=True)
    client.create()
    client.append(bytes(48000 * 14))
    client.commit()
    client.append(bytes(48000 * 16))
    client.commit()
    audio = [client.retrieve(item_id)[0]["item"]["content"][0].get("audio") for item_id in client.items]
    assert [part and len(part) for part in audio] == [None, 48000 * 14 * 4 // 3, None]


def test_a_transcription_of_a_deleted_item_is_ignored(connect: Any) -> None:
    client = connect(text_reply("Hi"), session={"audio": {"input": {"transcription": {"model": "ears"}, "turn_detection": None}}})
    client._transcribe = lambda effect: []
    client.append(bytes(9600))
    item_id = client.commit()[0]["item_id"]
    client.delete(item_id)
    assert client.session.transcribed(item_id, "late", client.now) == []
    assert client.session.transcription_failed(item_id, "x", "y", client.now) == []


def test_a_transcription_that_fails_is_told_and_the_audio_stays(connect: Any) -> None:
    def fail(request: Any) -> str:
        raise EngineError("Too quiet.", code="too_quiet")

    session = {"audio": {"input": {"transcription": {"model": "ears"}, "turn_detection": None}}}
    client = connect(text_reply("Hi"), session=session, text=True, transcript=fail)
    client.append(bytes(9600))
    client.commit()
    failed = client.last("conversation.item.input_audio_transcription.failed")
    assert (failed["item_id"], failed["content_index"], failed["error"]["code"]) == (client.items[0], 0, "too_quiet")
    client.create()
    assert isinstance(client.turns[0].messages[0].content[0], AudioPart)


def test_a_late_transcription_is_in_the_next_prompt(connect: Any) -> None:
    client = connect(
        text_reply("Hi"), session={"audio": {"input": {"transcription": {"model": "ears"}, "turn_detection": None}}}, text=True
    )
    client.append((tone(0.2) * 32767).astype("<i2").tobytes())
    client.commit()
    client.create()
    (part,) = client.turns[0].messages[0].content
    assert isinstance(part, AudioPart)
    assert part.transcript == "Hello."
    assert np.abs(part.samples).max() > 0.2


def test_the_conversation_is_bounded_in_items_and_text(connect: Any) -> None:
    client = connect(COUNT, limits={"conversation_items": 3, "conversation_text_bytes": 100})
    for _ in range(3):
        client.say("x")
    assert error_of(client.say("x"))["code"] == "conversation_full"
    client.delete(client.items[0])
    client.say("y" * 200)
    client.delete(client.items[0])
    assert error_of(client.say("x"))["code"] == "conversation_full"
    client.delete(client.items[-1])
    assert client.say("x")[0]["type"] == "conversation.item.added"


def test_beyond_the_bound_the_oldest_items_keep_their_text_alone(connect: Any) -> None:
    session = {"audio": {"input": {"transcription": {"model": "ears"}, "turn_detection": None}}}
    client = connect(spoken_reply("spoken", tone(0.5)), session=session, limits={"conversation_audio_bytes": 70_000})
    client.append(bytes(24000))
    client.commit()
    client.create()
    client.append(bytes(24000))
    client.commit()
    parts = [client.retrieve(item_id)[0]["item"]["content"][0] for item_id in client.items]
    assert ["audio" in part for part in parts] == [False, True, True]
    client.create()
    assert texts(client.turns[-1]) == [("user", "Hello."), ("assistant", "spoken")]
    assert client.truncate(client.items[1], 500)[0]["type"] == "conversation.item.truncated"


def test_the_newest_audio_is_kept_however_long(connect: Any) -> None:
    client = connect(text_reply("Hi"), manual=True, limits={"conversation_audio_bytes": 100})
    for _ in range(2):
        client.append(bytes(9600))
        client.commit()
    assert ["audio" in client.retrieve(item_id)[0]["item"]["content"][0] for item_id in client.items] == [False, True]


def test_an_answer_that_has_lost_its_audio_can_still_be_cut(connect: Any) -> None:
    client = connect(COUNT, limits={"conversation_audio_bytes": 30_000}, autoplay=False, manual=True)
    client.create()
    client.play(4)
    answer = client.items[0]
    client.append(bytes(9600))
    client.commit()
    client.play()
    client.append(bytes(9600))
    client.commit()
    assert "audio" not in client.retrieve(answer)[0]["item"]["content"][0]
    assert error_of(client.truncate(answer, 2001))["message"].startswith("Audio content of 2000ms")
    client.truncate(answer, 1000)
    assert client.retrieve(answer)[0]["item"]["content"][0] == {"type": "output_audio", "transcript": "one two three four five"}
