"""The order checker finds what is out of order: each way to spoil a good record is noticed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from omni_realtime.chat import ChatDelta, ToolCallDelta
from omni_realtime.testing import spoken_reply, text_reply, tone
from omni_realtime.testing.order import OrderChecker

Events = list[dict[str, Any]]


def check(events: Events) -> OrderChecker:
    order = OrderChecker()
    for event in events:
        order.check(event)
    return order


@pytest.fixture(scope="session")
def record(connect: Any) -> Events:
    """A spoken turn by the detector; a message and a call; text out of band; a failed transcription."""
    call = ChatDelta(tool_call=ToolCallDelta(name="look", arguments="{}"))
    client = connect(
        spoken_reply("Hello there", tone(0.2)),
        [ChatDelta(text="Hm."), call, ChatDelta(finish_reason="tool_calls")],
        text_reply("Hi"),
        session={"audio": {"input": {"transcription": {"model": "ears"}}}},
    )
    client.update()
    client.speak(0.5, 1.0)
    client.create()
    client.create(conversation="none", output_modalities=["text"])
    client.retrieve(client.items[1])
    client.truncate(client.items[1], 100)
    client.delete(client.items[0])
    events: Events = client.events
    return events


def index(events: Events, kind: str, count: int = 0) -> int:
    return [at for at, event in enumerate(events) if event["type"] == kind][count]


def drop(kind: str, count: int = 0) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        del events[index(events, kind, count)]

    return spoil


def twice(kind: str, count: int = 0) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        at = index(events, kind, count)
        events.insert(at + 1, deepcopy(events[at]) | {"event_id": "event_new"})

    return spoil


def swap(kind: str, other: str, count: int = 0) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        one, two = index(events, kind, count), index(events, other, count)
        events[one], events[two] = events[two], events[one]

    return spoil


def change(kind: str, path: str, value: object, count: int = 0) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        *steps, last = path.split(".")
        inner: Any = events[index(events, kind, count)]
        for step in steps:
            inner = inner[int(step) if step.isdigit() else step]
        assert inner[last] != value
        inner[last] = value

    return spoil


SPOILT = {
    "no session.created": drop("session.created"),
    "session.created twice": twice("session.created"),
    "an event id twice": lambda events: events[3].update(event_id=events[2]["event_id"]),
    "no response.created": drop("response.created"),
    "response.created twice": twice("response.created"),
    "response.done twice": twice("response.done"),
    "no response.done before the next": drop("response.done"),
    "a usage at the start": change("response.created", "response.usage", {}),
    "no usage at the end": change("response.done", "response.usage", None),
    "in progress at the end": change("response.done", "response.status", "in_progress"),
    "no details of a failure": change("response.done", "response.status", "failed"),
    "an output that was not announced": change("response.done", "response.output", []),
    "an incomplete item of a completed response": change("response.done", "response.output.0.status", "incomplete"),
    "a response that changes its conversation": change("response.done", "response.conversation_id", None),
    "no output_item.added": drop("response.output_item.added"),
    "no output_item.done": drop("response.output_item.done"),
    "output_item.done before its part": swap("response.content_part.done", "response.output_item.done"),
    "an item that begins complete": change("response.output_item.added", "item.status", "completed"),
    "a wrong output_index": change("response.output_text.delta", "output_index", 1),
    "a delta of another item": change("response.output_text.delta", "item_id", "item_ghost"),
    "a delta of a part that is not open": change("response.output_text.delta", "content_index", 1),
    "no item.added of an answer": drop("conversation.item.added", 1),
    "item.added before output_item.added": swap("response.output_item.added", "conversation.item.added", 1),
    "no content_part.added": drop("response.content_part.added"),
    "content_part.added twice": twice("response.content_part.added"),
    "a part of another type": change("response.content_part.added", "part.type", "text"),
    "a part that begins with text": change("response.content_part.added", "part.transcript", "Hi"),
    "no content_part.done": drop("response.content_part.done"),
    "audio.done twice": twice("response.output_audio.done"),
    "audio after its done": swap("response.output_audio.delta", "response.output_audio.done"),
    "no audio.done": drop("response.output_audio.done"),
    "transcript.done before its deltas": swap("response.output_audio_transcript.delta", "response.output_audio_transcript.done"),
    "no transcript.done": drop("response.output_audio_transcript.done"),
    "a transcript that lost a delta": drop("response.output_audio_transcript.delta"),
    "another transcript at the end": change("response.content_part.done", "part.transcript", "Hi"),
    "another text in the item": change("response.output_item.done", "item.content", [{"type": "output_audio", "transcript": "Hi"}]),
    "half a sample": change("response.output_audio.delta", "delta", base64.b64encode(b"abc").decode()),
    "empty audio": change("response.output_audio.delta", "delta", ""),
    "arguments.done twice": twice("response.function_call_arguments.done"),
    "no arguments.done": drop("response.function_call_arguments.done"),
    "arguments that lost a delta": drop("response.function_call_arguments.delta"),
    "another call_id": change("response.function_call_arguments.done", "call_id", "call_ghost"),
    "another name": change("response.function_call_arguments.done", "name", "fly"),
    "other arguments in the item": change("response.output_item.done", "item.arguments", "[]", 2),
    "item.added before committed": swap("input_audio_buffer.committed", "conversation.item.added"),
    "no committed": drop("input_audio_buffer.committed"),
    "something between committed and item.added": swap("conversation.item.added", "conversation.item.done"),
    "committed elsewhere": change("input_audio_buffer.committed", "previous_item_id", "item_ghost"),
    "another item than was committed": change("conversation.item.added", "item.id", "item_ghost"),
    "another speech than was started": change("input_audio_buffer.speech_stopped", "item_id", "item_ghost"),
    "speech_started twice": twice("input_audio_buffer.speech_started"),
    "an item behind none": change("conversation.item.added", "previous_item_id", "item_ghost"),
    "an answer in the wrong place": change("conversation.item.added", "previous_item_id", None, 1),
    "item.done of another place": change("conversation.item.done", "previous_item_id", None, 1),
    "item.done twice": twice("conversation.item.done"),
    "item.added twice": twice("conversation.item.added"),
    "a transcription twice": twice("conversation.item.input_audio_transcription.completed"),
    "a transcription that lost its delta": drop("conversation.item.input_audio_transcription.delta"),
    "a transcription's delta after its end": swap(
        "conversation.item.input_audio_transcription.delta", "conversation.item.input_audio_transcription.completed"
    ),
    "deleted twice": twice("conversation.item.deleted"),
    "truncated what is not there": change("conversation.item.truncated", "item_id", "item_ghost"),
    "retrieved what is not there": change("conversation.item.retrieved", "item.id", "item_ghost"),
}


def test_a_good_record_passes(record: Events) -> None:
    order = check(record)
    assert order.running == ()
    assert len(order.items) == 3


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_record_is_noticed(record: Events, case: str) -> None:
    events = deepcopy(record)
    SPOILT[case](events)
    with pytest.raises(AssertionError):
        assert check(events).running == (), "a response without its end"
