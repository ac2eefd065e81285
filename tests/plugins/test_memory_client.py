"""The client in memory drives a whole session: what it shows is what a socket would carry."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import pytest

from omni_realtime.chat import ChatDelta, TextPart
from omni_realtime.engine.port import EngineError, TranscriptionRequest
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.session import SessionSettings
from omni_realtime.testing import MemoryClient, spoken_reply, text_reply, tone

FULL = Capabilities(
    output_modalities=("audio", "text"), audio_input=True, turn_detection=("server_vad",), transcription_models=("ears",), tools=True
)
SETTINGS = SessionSettings(
    model="scripted",
    capabilities=FULL,
    detector_rate=16000,
    detector_frame=512,
    defaults={"audio": {"input": {"transcription": {"model": "ears"}}}},
)
TEXT = {"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}}


def say(text: str) -> dict[str, object]:
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"type": "conversation.item.create", "item": message}


def append(seconds: float, level: float) -> dict[str, object]:
    pcm = (tone(seconds, level=level) * 32767).astype("<i2").tobytes()
    return {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}


def types(events: list[dict[str, object]]) -> list[object]:
    return [event["type"] for event in events]


def test_a_written_turn() -> None:
    client = MemoryClient(SETTINGS, lambda request: text_reply("You said ", request.prompt.messages[-1].content[0].text))
    assert types(client.events) == ["session.created"]
    assert types(client.send(TEXT)) == ["session.updated"]
    client.send(say("hello"))
    heard = client.send({"type": "response.create"})
    assert types(heard)[0] == "response.created"
    assert heard[-1]["response"]["status"] == "completed"
    assert heard[-1]["response"]["output"][0]["content"][0]["text"] == "You said hello"
    assert client.turns[0].messages[0].content == (TextPart(text="hello"),)
    assert client.waiting == ()


def test_a_spoken_turn_by_the_detector() -> None:
    client = MemoryClient(
        SETTINGS, spoken_reply("Hi there", tone(0.2)), transcript=lambda request: f"{len(request.samples) / request.rate:.0f} s"
    )
    client.send(append(1.0, 0.3))
    heard = client.send(append(1.0, 0.0))
    assert {"input_audio_buffer.speech_stopped", "response.done"} <= set(types(heard))
    (transcribed,) = [event for event in heard if event["type"] == "conversation.item.input_audio_transcription.completed"]
    assert transcribed["transcript"].endswith(" s")
    audio = b"".join(base64.b64decode(event["delta"]) for event in heard if event["type"] == "response.output_audio.delta")
    assert np.allclose(np.frombuffer(audio, "<i2") / 32767, tone(0.2), atol=1e-3)


def test_a_transcription_that_fails() -> None:
    def fail(request: TranscriptionRequest) -> str:
        raise EngineError("Too quiet.", code="too_quiet")

    client = MemoryClient(SETTINGS, spoken_reply("Hi", tone(0.1)), transcript=fail)
    client.send(append(1.0, 0.3))
    heard = client.send({"type": "input_audio_buffer.commit"})
    (failed,) = [event for event in heard if event["type"].endswith("transcription.failed")]
    assert failed["error"]["code"] == "too_quiet"


def test_a_race_is_an_order_of_calls() -> None:
    client = MemoryClient(SETTINGS, text_reply("one ", "two"), autoplay=False)
    client.send(TEXT)
    client.send({"type": "response.create"})
    (response_id,) = client.waiting
    client.play(1)
    heard = client.send({"type": "response.cancel"})
    assert heard[-1]["response"]["status"] == "cancelled"
    assert (client.waiting, client.cancelled) == ((), [response_id])
    client.send({"type": "response.create"})
    assert client.play()[-1]["response"]["status"] == "completed"


def test_a_generation_that_fails_after_a_while() -> None:
    client = MemoryClient(SETTINGS, [ChatDelta(text="one"), 2.5, EngineError("Broken.")])
    before = client.now
    client.send(TEXT)
    heard = client.send({"type": "response.create"})
    assert heard[-1]["response"]["status"] == "failed"
    assert client.now == before + 2.5


def test_a_refused_frame_is_one_error() -> None:
    client = MemoryClient(SETTINGS, text_reply("never"))
    for frame in ("nonsense", b"\x00", {"type": "no.such.event"}):
        assert types(client.send(frame)) == ["error"]


def test_time_ends_the_session() -> None:
    client = MemoryClient(SETTINGS, text_reply("never"))
    assert client.advance(3599) == []
    assert types(client.advance(2)) == ["error"]
    assert client.closed is not None
    assert client.closed.code == 1000


def test_what_cannot_be_played_says_so() -> None:
    client = MemoryClient(SETTINGS, [asyncio.Event()])
    with pytest.raises(TypeError, match=r"play\(steps\)"):
        client.send({"type": "response.create"})
