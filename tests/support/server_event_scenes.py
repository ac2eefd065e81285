"""A conversation that makes the server say all that it can say over a WebSocket."""

from __future__ import annotations

import base64
from dataclasses import replace
from functools import cache

import numpy as np

from contract import SETTINGS, TOOL
from omni_realtime.engine.port import EngineError
from omni_realtime.session.rate_limits import RateLimiter
from omni_realtime.testing import MemoryClient, call_reply, spoken_reply, text_reply, tone


@cache
def sent_types() -> frozenset[str]:
    """The types of the events that were sent."""
    return frozenset(event["type"] for event in _conversation())


def _conversation() -> list[dict[str, object]]:
    broken = EngineError("This audio cannot be read.", code="invalid_audio")
    transcripts = iter(["Hello.", broken])

    def transcribe(_: object) -> str:
        if isinstance(transcript := next(transcripts), EngineError):
            raise transcript
        return transcript

    scripts = [spoken_reply("Hello there.", tone(1.0)), call_reply("look", "{}"), text_reply("A lamp."), spoken_reply("Hm?", tone(0.5))]
    settings = replace(SETTINGS, rate_limiter=RateLimiter(requests_per_minute=60))
    client = MemoryClient(settings, *scripts, transcript=transcribe)
    _update(client, audio={"input": {"transcription": {"model": "ears"}}}, tools=[TOOL])
    _speak(client)
    (answer,) = {event["item_id"] for event in client.events if event["type"] == "response.output_audio.delta"}
    client.send({"type": "conversation.item.truncate", "item_id": answer, "content_index": 0, "audio_end_ms": 500})
    client.send({"type": "conversation.item.retrieve", "item_id": answer})
    client.send({"type": "conversation.item.delete", "item_id": answer})
    client.send({"type": "conversation.item.delete", "item_id": answer})
    _speak(client)
    client.send({"type": "response.create", "response": {"output_modalities": ["text"]}})
    _update(client, audio={"input": {"transcription": None, "turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}})
    client.send({"type": "input_audio_buffer.clear"})
    client.send({"type": "response.create"})
    client.advance(10)
    return client.events


def _update(client: MemoryClient, **session: object) -> None:
    client.send({"type": "session.update", "session": {"type": "realtime", **session}})


def _speak(client: MemoryClient) -> None:
    samples = np.concatenate([tone(1.0), tone(1.0, level=0.0)])
    audio = base64.b64encode((samples * 32767).astype("<i2").tobytes()).decode()
    client.send({"type": "input_audio_buffer.append", "audio": audio})
