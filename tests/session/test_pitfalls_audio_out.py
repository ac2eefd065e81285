"""What goes wrong with the model's audio."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_realtime.audio import FORMATS, resample
from omni_realtime.chat import ChatDelta, ToolCallDelta
from omni_realtime.testing import call_reply, chunked, spoken_reply, tone

EMPTY = np.empty(0, np.float32)


def sent(client: Any) -> bytes:
    return b"".join(base64.b64decode(event["delta"]) for event in client.of("response.output_audio.delta"))


@settings(deadline=None, max_examples=40)
@given(
    rate=st.sampled_from([24000, 22050, 16000, 8000, 48000]),
    name=st.sampled_from(["audio/pcm", "audio/pcmu", "audio/pcma"]),
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=6).filter(lambda sizes: sum(sizes) > 500),
)
def test_the_streamed_output_equals_the_whole(connect: Any, rate: int, name: str, sizes: list[int]) -> None:
    whole = tone(1.3, rate=rate, hertz=437.0)
    client = connect([*(ChatDelta(audio=chunk, rate=rate) for chunk in chunked(whole, sizes)), ChatDelta(finish_reason="stop")])
    client.create(audio={"output": {"format": {"type": name}}})
    audio_format = FORMATS[name]
    assert sent(client) == audio_format.encode(resample(whole, rate, audio_format.rate))


def test_an_answer_in_g711_has_8000_bytes_a_second(connect: Any) -> None:
    client = connect(spoken_reply("one two", tone(2.0)), session={"audio": {"output": {"format": {"type": "audio/pcmu"}}}})
    client.create()
    assert len(sent(client)) == 16000
    item_id = client.items[0]
    assert client.truncate(item_id, 2001)[0]["error"]["message"] == "Audio content of 2000ms is already shorter than 2001ms"
    assert client.truncate(item_id, 2000)[0]["type"] == "conversation.item.truncated"
    assert len(base64.b64decode(client.retrieve(item_id)[0]["item"]["content"][0]["audio"])) == 16000


def test_a_long_chunk_is_cut_into_deltas_of_at_most_400_ms(connect: Any) -> None:
    client = connect([ChatDelta(audio=tone(3.0), rate=24000), ChatDelta(finish_reason="stop")])
    client.create()
    sizes = [len(base64.b64decode(event["delta"])) for event in client.of("response.output_audio.delta")]
    assert sizes == [19200] * 7 + [9600]


def test_the_last_audio_after_the_text_has_ended_and_done_for_every_part(connect: Any, types: Any) -> None:
    steps = [ChatDelta(text="All of it."), *(ChatDelta(audio=tone(0.1), rate=24000) for _ in range(3)), ChatDelta(finish_reason="stop")]
    client = connect(steps)
    heard = types(client.create())
    assert heard.count("response.output_audio.done") == heard.count("response.output_audio_transcript.done") == 1
    last_delta = max(index for index, event in enumerate(client.events) if event["type"] == "response.output_audio.delta")
    first_done = min(index for index, event in enumerate(client.events) if event["type"].endswith("_audio.done"))
    assert last_delta < first_done


def test_transcript_done_comes_once_a_part_not_once_a_sentence(connect: Any) -> None:
    client = connect([
        *(ChatDelta(text=text, audio=tone(0.1), rate=24000) for text in ("One. ", "Two. ", "Three.")),
        ChatDelta(finish_reason="stop"),
    ])
    client.create()
    assert [event["transcript"] for event in client.of("response.output_audio_transcript.done")] == ["One. Two. Three."]


def test_empty_audio_and_audio_of_nan_make_no_noise(connect: Any) -> None:
    steps = [
        ChatDelta(audio=EMPTY, rate=24000),
        ChatDelta(audio=np.full(240, np.nan, np.float32), rate=24000),
        ChatDelta(audio=np.full(240, np.inf, np.float32), rate=24000, finish_reason="stop"),
    ]
    client = connect(steps)
    assert client.create()[-1]["response"]["status"] == "completed"
    assert np.frombuffer(sent(client), "<i2").tolist() == [0] * 240 + [32767] * 240


def test_the_last_delta_may_carry_everything(connect: Any) -> None:
    client = connect([ChatDelta(text="Hi", audio=tone(0.2), rate=24000, finish_reason="stop")])
    assert client.create()[-1]["response"]["status"] == "completed"
    assert len(sent(client)) == 9600


def test_a_change_of_the_output_format_is_for_the_next_response(connect: Any) -> None:
    client = connect(spoken_reply("one", tone(0.4)), autoplay=False)
    client.create()
    client.play(1)
    client.update(audio={"output": {"format": {"type": "audio/pcmu"}}})
    assert client.play()[-1]["response"]["audio"]["output"]["format"]["type"] == "audio/pcm"
    assert len(sent(client)) == 19200
    client.create()
    client.play()
    assert len(sent(client)) == 19200 + 3200


@pytest.mark.parametrize("pieces", [['{"city": "Москва", "ж": "', '日本"}'], ['{"city": "\\u041c"}'], ["[]"]])
def test_tool_arguments_in_other_scripts_parse_to_the_same_value(connect: Any, pieces: Sequence[str]) -> None:
    client = connect(call_reply("look", *pieces), session={"tools": [{"type": "function", "name": "look"}]})
    client.create()
    whole = "".join(pieces)
    assert json.loads(client.last("response.function_call_arguments.done")["arguments"]) == json.loads(whole)
    assert "".join(event["delta"] for event in client.of("response.function_call_arguments.delta")) == whole


def test_a_call_without_arguments_has_an_empty_object(connect: Any) -> None:
    client = connect(call_reply("look"), session={"tools": [{"type": "function", "name": "look"}]})
    client.create()
    assert client.last("response.function_call_arguments.delta")["delta"] == "{}"
    assert client.last("response.function_call_arguments.done")["arguments"] == "{}"


BROKEN = {
    "audio for a text response": ("text", [ChatDelta(audio=tone(0.1), rate=24000)], "text only"),
    "no rate": ("audio", [ChatDelta(audio=tone(0.1))], "0 Hz"),
    "another rate": ("audio", [ChatDelta(audio=tone(0.1), rate=24000), ChatDelta(audio=tone(0.1), rate=16000)], "16000 Hz after 24000 Hz"),
    "float64": ("audio", [ChatDelta(audio=tone(0.1).astype(np.float64), rate=24000)], "float64"),
    "stereo": ("audio", [ChatDelta(audio=tone(0.1).reshape(2, -1), rate=24000)], "shape (2, 1200)"),
    "a call without a name": ("audio", [ChatDelta(tool_call=ToolCallDelta(arguments="{}"))], "tool call 0 has no name"),
    "a call cut by text": (
        "text",
        [
            ChatDelta(tool_call=ToolCallDelta(name="look", arguments="{}")),
            ChatDelta(text="Hm."),
            ChatDelta(tool_call=ToolCallDelta(arguments="}")),
        ],
        "tool call 0",
    ),
    "arguments that are not JSON": (
        "text",
        [ChatDelta(tool_call=ToolCallDelta(name="look", arguments='{"a":')), ChatDelta(finish_reason="tool_calls")],
        "not JSON",
    ),
    "arguments that are not JSON before text": (
        "text",
        [ChatDelta(tool_call=ToolCallDelta(name="look", arguments="<tool>")), ChatDelta(text="Hm.")],
        "not JSON",
    ),
    "an unknown finish reason": ("text", [ChatDelta(text="Hi", finish_reason="bored")], "'bored' is no finish reason"),  # type: ignore[arg-type]
    "no finish reason": ("text", [ChatDelta(text="Hi")], "without a finish reason"),
    "nothing at all": ("audio", [], "without a finish reason"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_engine_that_breaks_its_contract_fails_the_response(connect: Any, case: str) -> None:
    modality, steps, why = BROKEN[case]
    client = connect(steps, spoken_reply("Hi", tone(0.1)), session={"tools": [{"type": "function", "name": "look"}]})
    ended = client.create(output_modalities=[modality])[-1]["response"]
    assert ended["status"] == "failed"
    assert ended["status_details"]["error"]["code"] == "engine_contract"
    assert why in ended["status_details"]["error"]["message"]
    assert client.of("response.function_call_arguments.done") == [] or case == "a call cut by text"
    assert client.cancelled == ([] if "finish reason" in why and "is no" not in why else [ended["id"]])
    assert client.create()[-1]["response"]["status"] == "completed"


def test_the_engine_says_error(connect: Any) -> None:
    client = connect([ChatDelta(text="Hm", finish_reason="error")])
    ended = client.create()[-1]["response"]
    assert (ended["status"], ended["status_details"]["error"]["code"]) == ("failed", "server_error")


def test_the_engine_aborts_by_itself(connect: Any) -> None:
    client = connect([ChatDelta(text="Hm"), ChatDelta(finish_reason="abort")])
    ended = client.create()[-1]["response"]
    assert (ended["status"], ended["status_details"]) == ("cancelled", {"type": "cancelled"})


def test_a_call_that_is_cut_off_is_never_announced_as_done(connect: Any, types: Any) -> None:
    client = connect(call_reply("look", '{"at":', '"it"}'), session={"tools": [{"type": "function", "name": "look"}]}, autoplay=False)
    client.create()
    client.play(2)
    heard = client.cancel()
    assert types(heard) == ["response.output_item.done", "conversation.item.done", "response.done"]
    assert (heard[0]["item"]["status"], heard[0]["item"]["arguments"]) == ("incomplete", '{"at":')
    (error,) = client.output(heard[0]["item"]["call_id"], "a cat")
    assert error["error"]["param"] == "item.call_id"
    client.create()
    assert client.turns[-1].messages == (), "a call that never came to an end is nothing to tell the model"


@pytest.mark.parametrize("call_id", [None, "", "call_0", "c" * 33])
def test_call_ids_are_short_and_unique_whatever_the_engine_says(connect: Any, call_id: str | None) -> None:
    steps = [ChatDelta(tool_call=ToolCallDelta(call_id=call_id, name="look", arguments="{}")), ChatDelta(finish_reason="tool_calls")]
    client = connect(steps, session={"tools": [{"type": "function", "name": "look"}]})
    client.item({"type": "function_call", "call_id": "call_0123456789ab8", "name": "look", "arguments": "{}"})
    for _ in range(3):
        client.create()
        assert client.output(client.last("response.output_item.done")["item"]["call_id"], "a cat")[0]["type"] != "error"
    ids = [event["item"]["call_id"] for event in client.of("response.output_item.done")]
    assert len(set(ids)) == 3
    assert all(0 < len(made) <= 32 for made in ids)
    assert (call_id in ids) == (call_id == "call_0")
