"""Session and response parameters that change what a response is made of, and those that are echoed alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from omni_realtime.chat import ChatDelta, ToolCallDelta, Usage
from omni_realtime.protocol import PromptTemplate
from omni_realtime.testing import text_reply, tone

PROMPTS = (PromptTemplate(id="pmpt_desk", instructions="You work for {{company}}."),)
DESK = {"id": "pmpt_desk", "variables": {"company": "ACME"}}
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def piece(index: int, name: str | None = None, arguments: str = "") -> ChatDelta:
    return ChatDelta(tool_call=ToolCallDelta(index=index, name=name, arguments=arguments))


TWO_CALLS = [
    ChatDelta(text="Let me see."),
    piece(0, "look", '{"n": '),
    piece(0, arguments="1}"),
    piece(1, "look", '{"n": '),
    piece(1, arguments="2}"),
    piece(2, "look"),
]
USAGE = Usage(output_text_tokens=9)


def calls(response: dict[str, Any]) -> list[str]:
    return [item["arguments"] for item in response["output"] if item["type"] == "function_call"]


@pytest.mark.parametrize(
    ("session", "response", "made"),
    [
        ({}, {}, ['{"n": 1}', '{"n": 2}', "{}"]),
        ({"parallel_tool_calls": True}, {}, ['{"n": 1}', '{"n": 2}', "{}"]),
        ({"parallel_tool_calls": None}, {}, ['{"n": 1}', '{"n": 2}', "{}"]),
        ({"parallel_tool_calls": False}, {}, ['{"n": 1}']),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": True}, ['{"n": 1}', '{"n": 2}', "{}"]),
        ({}, {"parallel_tool_calls": False}, ['{"n": 1}']),
    ],
)
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_parallel_tool_calls_false_leaves_the_first_call_alone(
    connect: Any, session: dict[str, Any], response: dict[str, Any], made: list[str], finish: Any
) -> None:
    client = connect([*TWO_CALLS, ChatDelta(finish_reason=finish, usage=USAGE)], text=True)
    client.update(tools=[LOOK], **session)
    done = client.create(**response)[-1]["response"]
    assert (done["status"], done["usage"]["output_tokens"], calls(done)) == ("completed", 9, made)
    assert client.last("response.done")["response"]["output"][0]["content"] == [{"type": "output_text", "text": "Let me see."}]


def test_a_surplus_call_that_is_cut_off_does_not_spoil_the_first(connect: Any) -> None:
    client = connect([*TWO_CALLS[:4], ChatDelta(finish_reason="length")], text=True)
    client.update(tools=[LOOK], parallel_tool_calls=False)
    done = client.create()[-1]["response"]
    assert (done["status"], calls(done), done["output"][-1]["status"]) == ("incomplete", ['{"n": 1}'], "completed")


def test_text_behind_a_surplus_call_is_told(connect: Any) -> None:
    steps: Sequence[ChatDelta] = [*TWO_CALLS, ChatDelta(text="Done."), ChatDelta(finish_reason="stop")]
    client = connect(steps, text=True)
    client.update(tools=[LOOK], parallel_tool_calls=False)
    done = client.create()[-1]["response"]
    assert [item["type"] for item in done["output"]] == ["message", "function_call", "message"]


@pytest.mark.parametrize(
    "field",
    [
        {"reasoning": {"effort": "high"}},
        {"parallel_tool_calls": False},
        {"tracing": "auto"},
        {"tracing": {"workflow_name": "w", "group_id": "g", "metadata": {"a": 1}}},
        {"prompt": DESK},
    ],
)
def test_what_is_set_is_echoed_and_null_turns_it_off(connect: Any, field: dict[str, Any]) -> None:
    client = connect(text_reply("Hi"), text=True, capabilities={"prompts": PROMPTS})
    (updated,) = client.update(**field)
    assert updated["session"].items() >= field.items()
    (updated,) = client.update(**dict.fromkeys(field))
    assert updated["session"].get(next(iter(field))) is None
    assert updated["session"]["instructions"] == "Be kind."


def test_the_model_is_told_the_prompts_instructions(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True, capabilities={"prompts": PROMPTS})
    client.create(prompt=DESK)
    client.create()
    client.update(prompt=DESK)
    client.create()
    client.create(instructions="Rhyme.")
    assert [turn.instructions for turn in client.turns] == ["You work for ACME.", "Be kind.", "You work for ACME.", "Rhyme."]


def test_a_prompt_that_cannot_be_used_changes_nothing(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True, capabilities={"prompts": PROMPTS})
    (error,) = client.update(prompt={"id": "pmpt_desk"}, instructions="Rhyme.")
    assert (error["error"]["code"], error["error"]["param"]) == ("missing_required_parameter", "session.prompt.variables.company")
    (error,) = client.create(prompt={"id": "pmpt_shop"})
    assert error["error"]["param"] == "response.prompt.id"
    client.create()
    assert client.turns[0].instructions == "Be kind."


def test_reasoning_of_a_response_is_taken(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    assert client.create(reasoning={"effort": "low"})[-1]["response"]["status"] == "completed"


HALF = "\ud83d"


@pytest.mark.parametrize("text", [True, False])
def test_half_a_surrogate_pair_of_an_engine_is_replaced_in_events_items_and_prompts(connect: Any, text: bool) -> None:
    speech = {} if text else {"audio": tone(0.4), "rate": 24000, "spoken": f"a{HALF}"}
    client = connect([ChatDelta(text=f"a{HALF} \ud83d\ude00", **speech), ChatDelta(finish_reason="stop")], text=text)
    done = client.create()[-1]["response"]
    (part,) = done["output"][0]["content"]
    assert part["text" if text else "transcript"] == "a\ufffd \U0001f600"
    client.create()
    assert client.turns[-1].messages[0].content[0].text == "a\ufffd \U0001f600"


def test_half_a_surrogate_pair_in_a_call_is_replaced(connect: Any) -> None:
    client = connect([piece(0, "look", f'{{"a": "{HALF}"}}'), ChatDelta(finish_reason="tool_calls")], text=True)
    client.update(tools=[LOOK])
    assert calls(client.create()[-1]["response"]) == ['{"a": "\ufffd"}']


def test_half_a_surrogate_pair_in_a_transcript_is_replaced(connect: Any) -> None:
    client = connect(
        text_reply("Hi"), text=True, transcript=f"Say {HALF}", session={"audio": {"input": {"transcription": {"model": "ears"}}}}
    )
    client.speak(0.5, 1.0)
    assert client.last("conversation.item.input_audio_transcription.completed")["transcript"] == "Say \ufffd"
    assert client.retrieve(client.items[0])[0]["item"]["content"][0]["transcript"] == "Say \ufffd"
