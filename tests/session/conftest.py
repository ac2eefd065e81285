"""A client with a word for each event, so that a test reads as a conversation."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from omni_realtime.chat import Samples
from omni_realtime.protocol import Capabilities
from omni_realtime.session import RateLimiter, SessionLimits, SessionSettings
from omni_realtime.testing import MemoryClient, Script, tone

CAPABILITIES = Capabilities(
    output_modalities=("audio", "text"),
    audio_input=True,
    turn_detection=("server_vad",),
    transcription_models=("ears",),
    voices=("anna", "bert"),
    tools=True,
    default_instructions="Be kind.",
)
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


class Client(MemoryClient):
    """Speaks the events of the API."""

    def update(self, **session: Any) -> list[dict[str, Any]]:
        return self.send({"type": "session.update", "session": {"type": "realtime", **session}})

    def update_input(self, **audio_input: Any) -> list[dict[str, Any]]:
        return self.update(audio={"input": audio_input})

    def append(self, audio: bytes, *, size: int | None = None) -> list[dict[str, Any]]:
        """Append bytes, in events of ``size`` bytes."""
        heard = len(self.events)
        for start in range(0, len(audio), size or len(audio)):
            chunk = audio[start : start + (size or len(audio))]
            self.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(chunk).decode()})
        return self.events[heard:]

    def speak(self, *seconds: float, size: int | None = None) -> list[dict[str, Any]]:
        """Append PCM16: speech and silence by turns, so many seconds each."""
        return self.append(speech(*seconds), size=size)

    def commit(self) -> list[dict[str, Any]]:
        return self.send({"type": "input_audio_buffer.commit"})

    def clear(self) -> list[dict[str, Any]]:
        return self.send({"type": "input_audio_buffer.clear"})

    def item(self, item: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
        return self.send({"type": "conversation.item.create", "item": item, **fields})

    def say(self, text: str, *, item_id: str | None = None, **fields: Any) -> list[dict[str, Any]]:
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        return self.item(message | ({"id": item_id} if item_id else {}), **fields)

    def output(self, call_id: str, output: str) -> list[dict[str, Any]]:
        return self.item({"type": "function_call_output", "call_id": call_id, "output": output})

    def delete(self, item_id: str) -> list[dict[str, Any]]:
        return self.send({"type": "conversation.item.delete", "item_id": item_id})

    def retrieve(self, item_id: str) -> list[dict[str, Any]]:
        return self.send({"type": "conversation.item.retrieve", "item_id": item_id})

    def truncate(self, item_id: str, end_ms: int, *, content_index: int = 0) -> list[dict[str, Any]]:
        return self.send({
            "type": "conversation.item.truncate",
            "item_id": item_id,
            "content_index": content_index,
            "audio_end_ms": end_ms,
        })

    def create(self, **params: Any) -> list[dict[str, Any]]:
        return self.send({"type": "response.create", "response": params} if params else {"type": "response.create"})

    def cancel(self, **fields: Any) -> list[dict[str, Any]]:
        return self.send({"type": "response.cancel", **fields})

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All events of a type so far."""
        return [event for event in self.events if event["type"] == kind]

    def last(self, kind: str) -> dict[str, Any]:
        """The last event of a type."""
        return self.of(kind)[-1]

    @property
    def items(self) -> list[str]:
        """The ids of the conversation, in order, as the server tells of it."""
        return self._order.items


def speech(*seconds: float) -> bytes:
    """PCM16 of a tone and silence by turns, so many seconds each."""
    return pcm(np.concatenate([tone(length, level=0.0 if index % 2 else 0.3) for index, length in enumerate(seconds)]))


def pcm(samples: Samples) -> bytes:
    return (samples * 32767).astype("<i2").tobytes()


@pytest.fixture(scope="session")
def connect() -> Callable[..., Client]:
    """Connects to a session: scripts for its generations, ``limits`` and other settings by name."""

    def connect(
        *scripts: Script,
        limits: dict[str, Any] | None = None,
        session: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
        input_rate: int = 16000,
        detector: tuple[int, int] | None = (16000, 512),
        scorer: tuple[int, int] | None = None,
        manual: bool = False,
        text: bool = False,
        window: int | None = None,
        on_active_response: Literal["refuse", "replace"] = "refuse",
        rate_limiter: RateLimiter | None = None,
        **client: Any,
    ) -> Client:
        defaults: dict[str, Any] = dict(session or {})
        if manual:
            defaults |= {"audio": {"input": {"turn_detection": None}}}
        if text:
            defaults |= {"output_modalities": ["text"]}
        settings = SessionSettings(
            model="scripted",
            capabilities=replace(CAPABILITIES, **(capabilities or {})),
            defaults=defaults,
            input_rate=input_rate,
            detector_rate=detector and detector[0],
            detector_frame=detector and detector[1],
            scorer_rate=scorer and scorer[0],
            scorer_window=scorer and scorer[1],
            context_window=window,
            on_active_response=on_active_response,
            rate_limiter=rate_limiter,
            limits=SessionLimits(**(limits or {})),
        )
        return Client(settings, *scripts, **client)

    return connect


@pytest.fixture(scope="session")
def types() -> Callable[[Sequence[dict[str, Any]]], list[str]]:
    """The types of events, those of deltas that follow each other told once."""

    def types(events: Sequence[dict[str, Any]]) -> list[str]:
        told: list[str] = []
        for event in events:
            if not (event["type"].endswith(".delta") and event["type"] in told[-2:]):
                told.append(event["type"])
        return told

    return types
