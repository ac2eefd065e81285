"""What goes wrong with responses, and with the session that they are made under."""

from __future__ import annotations

from typing import Any

import pytest

from omni_realtime.chat import ChatDelta, NamedTool, TextPart
from omni_realtime.engine.port import EngineError
from omni_realtime.testing import spoken_reply, text_reply, tone

HELLO = spoken_reply("Hello there", tone(0.2))
LOOK = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}
FLY = {"type": "function", "name": "fly"}


def code(events: list[dict[str, Any]]) -> object:
    (event,) = events
    assert event["type"] == "error"
    return event["error"]["code"]


def test_two_creates_in_quick_succession(connect: Any) -> None:
    client = connect(HELLO, autoplay=False)
    first = client.create()[0]["response"]["id"]
    (error,) = client.send({"type": "response.create", "event_id": "agents_py_response_create_2"})
    assert error["error"]["code"] == "conversation_already_has_active_response"
    assert error["error"]["event_id"] == "agents_py_response_create_2"
    assert error["error"]["message"].startswith(f"Conversation already has an active response in progress: {first}.")
    assert client.play()[-1]["response"]["status"] == "completed"
    assert len(client.turns) == 1


def test_a_new_response_starts_after_the_old_ones_done(connect: Any) -> None:
    client = connect(HELLO)
    for _ in range(5):
        client.create()
    kinds = [event["type"] for event in client.events if event["type"] in {"response.created", "response.done"}]
    assert kinds == ["response.created", "response.done"] * 5


def test_cancel_with_nothing_active_or_another_id_is_not_fatal(connect: Any) -> None:
    client = connect(HELLO, autoplay=False)
    assert code(client.cancel()) == "response_cancel_not_active"
    client.create()
    for response_id in ("resp_ghost", ""):
        (error,) = client.cancel(response_id=response_id, event_id="mine")
        assert (error["error"]["code"], error["error"]["event_id"]) == ("response_cancel_not_active", "mine")
        assert error["error"]["message"].startswith("Cancellation failed")
        assert error["error"]["param"] == "response_id"
    assert client.play()[-1]["response"]["status"] == "completed"
    assert code(client.cancel()) == "response_cancel_not_active"


@pytest.mark.parametrize("deltas", [0, 1, 2])
def test_the_model_raises_before_or_after_the_first_delta(connect: Any, deltas: int) -> None:
    client = connect([*HELLO[:deltas], EngineError("Broken.")], HELLO)
    ended = client.create()[-1]["response"]
    assert (ended["status"], ended["status_details"]["error"]["message"]) == ("failed", "Broken.")
    assert client.create()[-1]["response"]["status"] == "completed"


def test_usage_with_its_details_is_on_every_done(connect: Any) -> None:
    client = connect(HELLO, [EngineError("Broken.")], autoplay=False)
    client.create()
    client.cancel()
    client.create()
    client.play()
    client.create(conversation="none")
    client.play()
    assert len(client.of("response.done")) == 3
    for event in client.of("response.done"):
        usage = event["response"]["usage"]
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert {"text_tokens", "audio_tokens", "cached_tokens"} <= usage["input_token_details"].keys()
        assert usage["output_token_details"] == {"text_tokens": 0, "audio_tokens": 0}


def test_out_of_band_answers_stay_out_of_the_history_and_metadata_comes_back(connect: Any) -> None:
    client = connect(HELLO)
    client.say("Hi.")
    metadata = {"topic": "weather", "client_event_id": "response_create_1"}
    heard = client.create(conversation="none", metadata=metadata)
    assert [event["response"]["metadata"] for event in heard if "response" in event] == [metadata, metadata]
    client.create()
    assert client.turns[0].messages == client.turns[1].messages, "the one before left nothing behind"
    assert [len(turn.messages) for turn in client.turns] == [1, 1]
    assert client.last("response.done")["response"]["metadata"] is None


def test_several_out_of_band_responses_run_beside_the_conversations(connect: Any) -> None:
    client = connect(text_reply("one ", "two"), text=True, autoplay=False, limits={"out_of_band_responses": 3})
    ids = [client.create(conversation=kind)[0]["response"]["id"] for kind in ("none", "auto", "none", "none")]
    assert client.session.active_responses == tuple(ids)
    assert code(client.create(conversation="none")) == "too_many_responses"
    assert code(client.create()) == "conversation_already_has_active_response"
    for response_id in ids * 2:
        client.play(1, response_id=response_id)
    assert client.cancel(response_id=ids[2])[-1]["response"]["status_details"]["reason"] == "client_cancelled"
    for response_id in reversed([ids[0], ids[1], ids[3]]):
        assert client.play(response_id=response_id)[-1]["response"]["status"] == "completed"
    texts = {event["response_id"]: event["text"] for event in client.of("response.output_text.done")}
    assert texts == dict.fromkeys(ids, "one two")
    assert len(client.items) == 1


def test_the_bound_of_out_of_band_responses_counts_them_alone(connect: Any) -> None:
    client = connect(HELLO, autoplay=False, limits={"out_of_band_responses": 2})
    for _ in range(2):
        assert client.create(conversation="none")[0]["type"] == "response.created"
    assert code(client.create(conversation="none")) == "too_many_responses"
    assert client.create()[0]["type"] == "response.created"


def test_a_cancel_without_id_leaves_out_of_band_responses(connect: Any) -> None:
    client = connect(HELLO, autoplay=False)
    client.create(conversation="none")
    assert code(client.cancel()) == "response_cancel_not_active"
    client.create()
    client.speak(0.5)
    assert [event["response"]["status_details"]["reason"] for event in client.of("response.done")] == ["turn_detected"]
    assert len(client.waiting) == 1, "speech interrupts the conversation alone"


def test_instructions_of_one_response_replace_the_sessions_for_it_alone(connect: Any) -> None:
    client = connect(HELLO)
    client.update(instructions="Speak French.")
    for params in ({}, {"instructions": "Speak German."}, {"instructions": ""}, {"instructions": None}, {}):
        client.create(**params)
    assert [turn.instructions for turn in client.turns] == ["Speak French.", "Speak German.", "", "Speak French.", "Speak French."]


def test_an_empty_string_clears_the_instructions_and_null_brings_the_default(connect: Any) -> None:
    client = connect(HELLO)
    for instructions in ("", None):
        client.update(instructions=instructions)
        client.create()
    assert [turn.instructions for turn in client.turns] == ["", "Be kind."]


def test_tool_choice_is_honoured_or_refused_and_does_not_leak(connect: Any) -> None:
    client = connect(HELLO, session={"tools": [LOOK, FLY]})
    for choice in ("none", "required", {"type": "function", "name": "fly"}, "auto"):
        client.create(tool_choice=choice)
        client.create()
    (error,) = client.create(tool_choice={"type": "function", "name": "swim"})
    assert error["error"]["param"] == "response.tool_choice"
    assert "look" in error["error"]["message"]
    choices = ["none", "auto", "required", "auto", NamedTool(name="fly"), "auto", "auto", "auto"]
    assert [turn.tool_choice for turn in client.turns] == choices
    client.create(tools=[LOOK], tool_choice="required")
    client.create()
    assert [tuple(tool.name for tool in turn.tools) for turn in client.turns[-2:]] == [("look",), ("look", "fly")]


def test_tools_of_an_empty_list_clear_and_absent_ones_stay(connect: Any) -> None:
    client = connect(HELLO)
    patches: list[dict[str, Any]] = [{"tools": [LOOK]}, {"instructions": "Hm."}, {"tools": []}]
    for session in patches:
        client.update(**session)
        client.create()
    assert [tuple(tool.name for tool in turn.tools) for turn in client.turns] == [("look",), ("look",), ()]


def test_parameters_of_one_response_do_not_leak(connect: Any) -> None:
    client = connect(HELLO, text_reply("Hi"), HELLO)
    client.create(output_modalities=["audio"], max_output_tokens=7, audio={"output": {"voice": "bert", "format": {"type": "audio/pcma"}}})
    client.create(output_modalities=["text"])
    client.create()
    assert [turn.modalities for turn in client.turns] == [("audio",), ("text",), ("audio",)]
    assert [turn.voice for turn in client.turns] == ["bert", "anna", "anna"]
    assert [turn.max_output_tokens for turn in client.turns] == [7, None, None]
    formats = [event["response"]["audio"]["output"]["format"]["type"] for event in client.of("response.done")]
    assert formats == ["audio/pcma", "audio/pcm", "audio/pcm"]


def test_input_is_the_whole_context_and_leaves_no_trace(connect: Any) -> None:
    client = connect(HELLO)
    client.say("In the conversation.", item_id="mine")
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Beside it."}]}
    client.create(conversation="none", input=[message, {"type": "item_reference", "id": "mine"}])
    client.create(conversation="none", input=[])
    client.create(input=[message])
    texts = [[part.text for message in turn.messages for part in message.content] for turn in client.turns]
    assert texts == [["Beside it.", "In the conversation."], [], ["Beside it."]]
    assert len(client.items) == 2


def test_input_that_refers_to_nothing_is_refused(connect: Any) -> None:
    client = connect(HELLO)
    (error,) = client.create(input=[{"type": "item_reference", "id": "ghost"}])
    assert error["error"]["param"] == "response.input.0.id"
    (error,) = client.create(input=[{"type": "function_call_output", "call_id": "ghost", "output": "?"}])
    assert error["error"]["param"] == "response.input.0.call_id"
    audio = {"type": "input_audio", "audio": "AAAA"}
    (error,) = client.create(input=[{"type": "message", "role": "user", "content": [audio]}])
    assert error["error"]["param"] == "response.input.0.content.0.audio"
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    assert client.create(input=[call, {"type": "function_call_output", "call_id": "c", "output": "?"}])[0]["type"] == "response.created"
    assert client.session.active_responses == ()


def test_every_accepted_update_is_acknowledged_once_with_everything_in_force(connect: Any) -> None:
    client = connect(HELLO)
    before = client.events[0]["session"]
    for patch in ({}, {"instructions": "Hm."}, {"audio": {"input": {"turn_detection": {"silence_duration_ms": 100}}}}):
        (updated,) = client.update(**patch)
        assert updated["session"].keys() == before.keys()
        assert updated["session"]["audio"]["input"]["turn_detection"]["type"] == "server_vad"
    assert updated["session"]["instructions"] == "Hm."


def test_a_refused_update_changes_nothing_also_not_its_good_fields(connect: Any) -> None:
    client = connect(HELLO)
    before = client.update()[0]["session"]
    for bad in ({"audio": {"output": {"voice": "zoe"}}}, {"no_such": 1}, {"modalities": ["text"]}, {"tool_choice": "required"}):
        (error,) = client.update(instructions="New.", output_modalities=["text"], **bad)
        assert error["type"] == "error"
        assert error["error"]["param"].startswith("session.")
    assert client.update()[0]["session"] == before


def test_voice_b_after_the_first_audio_is_refused_and_voice_a_again_is_fine(connect: Any) -> None:
    client = connect(HELLO, text_reply("Hi"))
    assert client.update(audio={"output": {"voice": "bert"}})[0]["session"]["audio"]["output"]["voice"] == "bert"
    client.create(conversation="none")
    client.update(audio={"output": {"voice": "anna"}})
    client.create(output_modalities=["text"])
    assert client.update(audio={"output": {"voice": "bert"}})[0]["type"] == "session.updated", "no audio is in the conversation"


def test_voice_is_locked_by_audio_that_is_still_streaming(connect: Any) -> None:
    client = connect(HELLO, autoplay=False)
    client.create()
    client.update(audio={"output": {"voice": "bert"}})
    client.play(1)
    (error,) = client.update(instructions="Hm.", audio={"output": {"voice": "anna"}})
    assert (error["error"]["code"], error["error"]["param"]) == ("cannot_update_voice", "session.audio.output.voice")
    assert client.update(audio={"output": {"voice": "bert"}})[0]["session"]["instructions"] == "Be kind."
    client.play()
    assert code(client.update(audio={"output": {"voice": "anna"}})) == "cannot_update_voice"


def test_audio_that_was_never_sent_locks_no_voice(connect: Any) -> None:
    client = connect([ChatDelta(audio=tone(0.1), rate=24000)], text=True)
    assert client.create()[-1]["response"]["status"] == "failed"
    assert client.update(audio={"output": {"voice": "bert"}})[0]["type"] == "session.updated"


def test_deltas_of_an_ended_or_unknown_response_are_ignored(connect: Any) -> None:
    client = connect(HELLO)
    done = client.create()[-1]["response"]["id"]
    for response_id in (done, "resp_ghost"):
        assert client.session.delta(response_id, ChatDelta(text="late", audio=tone(0.1), rate=24000), client.now) == []
        assert client.session.generation_ended(response_id, client.now) == []


def test_a_text_reply_is_in_the_next_prompt(connect: Any) -> None:
    client = connect(text_reply("Hello ", "there."), text=True)
    client.say("Hi.")
    client.create()
    client.create()
    roles = [(message.role, message.content) for message in client.turns[1].messages]
    assert roles == [("user", (TextPart(text="Hi."),)), ("assistant", (TextPart(text="Hello there."),))]
