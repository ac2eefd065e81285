"""G.711 both ways in frames of 20 ms, as telephone gateways send them: every millisecond is 8 bytes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from omni_realtime.audio import FORMATS, resample
from omni_realtime.chat import ChatDelta
from omni_realtime.testing import spoken_reply, tone

FRAME = 160
LAWS = pytest.mark.parametrize("law", ["audio/pcmu", "audio/pcma"])
ANSWER = tone(1.5)


def telephone(connect: Any, law: str, *scripts: Any, **session: Any) -> Any:
    audio_format = {"format": {"type": law}}
    audio = {"input": {**audio_format, "transcription": {"model": "ears"}}, "output": audio_format}
    return connect(*(scripts or (spoken_reply("one two three", ANSWER),)), session={"audio": audio}, **session)


def call(law: str, *seconds: float) -> bytes:
    """Silence and speech by turns, so many seconds each."""
    parts = [tone(length, rate=8000, level=0.3 if index % 2 else 0.0) for index, length in enumerate(seconds)]
    return FORMATS[law].encode(np.concatenate(parts))


def sent(client: Any) -> bytes:
    return b"".join(base64.b64decode(event["delta"]) for event in client.of("response.output_audio.delta"))


@LAWS
def test_a_turn_on_the_telephone(connect: Any, law: str) -> None:
    heard: list[Any] = []
    client = telephone(connect, law, transcript=lambda request: heard.append(request) or "Two words.")
    client.append(call(law, 1.0, 0.8, 1.0), size=FRAME)
    started, stopped = client.last("input_audio_buffer.speech_started"), client.last("input_audio_buffer.speech_stopped")
    assert started["audio_start_ms"] == pytest.approx(1000 - 300, abs=32)
    assert 2300 <= stopped["audio_end_ms"] <= 2300 + 12 + 32, "500 ms of silence in whole frames of 32 ms"
    assert client.last("conversation.item.input_audio_transcription.completed")["transcript"] == "Two words."
    (request,) = heard
    assert (request.rate, len(request.samples)) == (16000, (stopped["audio_end_ms"] - started["audio_start_ms"]) * 16)
    assert request.samples[-16 * 500 :].max() < 0.01
    assert abs(request.samples).max() == pytest.approx(0.3, abs=0.01)
    assert client.last("response.done")["response"]["audio"]["output"]["format"] == {"type": law}
    assert sent(client) == FORMATS[law].encode(resample(ANSWER, 24000, 8000))
    assert len(sent(client)) == 1500 * 8


@LAWS
def test_turns_are_found_when_the_same_speech_in_pcm_finds_them(connect: Any, law: str) -> None:
    seconds = (0.7, 0.9, 1.1)
    client = telephone(connect, law)
    client.append(call(law, *seconds), size=FRAME)
    wide = connect(spoken_reply("one", ANSWER))
    wide.speak(0.0, *seconds, size=960)
    for kind, field in (("speech_started", "audio_start_ms"), ("speech_stopped", "audio_end_ms")):
        narrow, expected = (each.last(f"input_audio_buffer.{kind}")[field] for each in (client, wide))
        assert narrow == pytest.approx(expected, abs=32)


@LAWS
def test_speech_is_told_soon_after_it_begins(connect: Any, law: str) -> None:
    client = telephone(connect, law)
    audio, began = call(law, 1.0, 1.0), 1000
    for start in range(0, len(audio), FRAME):
        if any(event["type"] == "input_audio_buffer.speech_started" for event in client.append(audio[start : start + FRAME])):
            assert (start + FRAME) / 8 - began <= 32 + 20 + 40, "a detector's frame, a telephone's frame, and what the resampler holds back"
            return
    pytest.fail("no speech was told")


@LAWS
@pytest.mark.parametrize("end_ms", [0, 1, 20, 333, 1499, 1500])
def test_a_truncation_keeps_8_bytes_a_millisecond(connect: Any, law: str, end_ms: int) -> None:
    client = telephone(connect, law)
    client.create()
    item_id = client.items[0]
    client.truncate(item_id, end_ms)
    assert client.last("conversation.item.truncated")["audio_end_ms"] == end_ms
    assert base64.b64decode(client.retrieve(item_id)[0]["item"]["content"][0]["audio"]) == sent(client)[: end_ms * 8]


@LAWS
def test_a_truncation_by_a_clock_that_runs_fast_is_an_error_and_the_call_goes_on(connect: Any, law: str) -> None:
    client = telephone(connect, law)
    client.create()
    (error,) = client.truncate(client.items[0], 1501)
    assert error["error"]["message"] == "Audio content of 1500ms is already shorter than 1501ms"
    assert client.truncate(client.items[0], 1500)[0]["type"] == "conversation.item.truncated"


@LAWS
def test_a_barge_in_on_the_telephone(connect: Any, law: str) -> None:
    client = telephone(connect, law, spoken_reply("one two three", tone(3.0)), autoplay=False)
    client.create()
    client.play(8)
    played = len(sent(client)) // 8
    told = client.append(call(law, 0.2, 0.4), size=FRAME)
    assert told[0]["type"] == "input_audio_buffer.speech_started"
    assert told[-1]["response"]["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    assert client.truncate(client.items[0], played)[0]["type"] == "conversation.item.truncated"
    assert client.truncate(client.items[0], 137)[0]["audio_end_ms"] == 137


@LAWS
@pytest.mark.parametrize("size", [1, 159, 160, 161, 800])
def test_a_manual_turn_has_every_byte(connect: Any, law: str, size: int) -> None:
    client = telephone(connect, law)
    client.update_input(turn_detection=None)
    client.append(call(law, 0.0, 0.5), size=size)
    client.commit()
    item_id = client.items[0]
    assert len(base64.b64decode(client.retrieve(item_id)[0]["item"]["content"][0]["audio"])) == 4000
    assert client.last("conversation.item.input_audio_transcription.completed")["usage"] == {"type": "duration", "seconds": 0.5}


@LAWS
def test_the_shortest_commit_is_800_bytes(connect: Any, law: str) -> None:
    client = telephone(connect, law)
    client.append(call(law, 0.1)[:799])
    assert "buffer only has 99.88ms of audio" in client.commit()[0]["error"]["message"]
    client.append(call(law, 0.1)[:1])
    assert client.commit()[0]["type"] == "input_audio_buffer.committed"


@LAWS
@pytest.mark.parametrize("rate", [8000, 16000, 22050, 24000, 48000])
def test_an_engine_of_any_rate_gives_8000_bytes_a_second(connect: Any, law: str, rate: int) -> None:
    chunks = [ChatDelta(text="x", audio=tone(0.1, rate=rate), rate=rate) for _ in range(7)]
    client = telephone(connect, law, [*chunks, ChatDelta(finish_reason="stop")])
    client.create()
    assert len(sent(client)) == 700 * 8
