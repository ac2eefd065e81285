"""A session of the official ``openai`` client, whose every event is checked."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from omni_realtime.chat import Samples
from omni_realtime.testing.order import OrderChecker
from omni_realtime.testing.wire import check_server_event

WAIT_S = 120.0
"""How long a busy machine may be silent."""
RATE = 24000
CHUNK = 2 * RATE // 25

Event = dict[str, Any]


@dataclass
class Answer:
    """One response, as its client got it."""

    id: str = ""
    item_id: str = ""
    status: str = ""
    text: str = ""
    """Of the text or of the transcript."""
    audio: bytes = b""
    """In the session's output format."""
    kinds: list[str] = field(default_factory=list)
    """``text`` or ``audio`` of each delta, in order."""
    done: Event = field(default_factory=dict)
    """The object of ``response.done``."""

    @property
    def usage(self) -> Event:
        """What the response cost."""
        usage: Event = self.done["usage"]
        return usage


class RealtimeClient:
    """A session.

    Attributes:
        connection: of the official client.
        events: all that came so far.
    """

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.events: list[Event] = []
        self._order = OrderChecker()

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, url: str, model: str) -> AsyncIterator[RealtimeClient]:
        """Open a session."""
        async with AsyncOpenAI(base_url=url, api_key="none") as openai, openai.realtime.connect(model=model) as connection:
            client = cls(connection)
            await client.until("session.created")
            yield client

    async def receive(self) -> Event:
        """Wait for the next event, and check its schema and its place."""
        frame = await asyncio.wait_for(self.connection.recv_bytes(), WAIT_S)
        event = check_server_event(frame.decode())
        self._order.check(event)
        self.connection.parse_event(frame)
        self.events.append(event)
        return event

    async def until(self, kind: str) -> Event:
        """Wait for an event of this type; an error on the way fails the test."""
        while (event := await self.receive())["type"] != kind:
            assert event["type"] != "error", event
        return event

    async def update(self, session: Event) -> Event:
        """Update the session."""
        await self.connection.session.update(session={"type": "realtime", **session})
        return (await self.until("session.updated"))["session"]

    async def say(self, text: str) -> None:
        """Add a written message of the user."""
        await self.connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        )
        await self.until("conversation.item.done")

    async def speak(self, audio: bytes) -> None:
        """Add a spoken message of the user, in the session's input format."""
        for start in range(0, len(audio), CHUNK):
            await self.connection.input_audio_buffer.append(audio=base64.b64encode(audio[start : start + CHUNK]).decode())
        await self.connection.input_audio_buffer.commit()
        await self.until("conversation.item.done")

    async def ask(self, response: Event | None = None) -> None:
        """Ask for a response."""
        await self.connection.response.create(response=response or {})

    async def answer(self, *, during: Callable[[Event], Awaitable[bool]] | None = None) -> Answer:
        """Collect a response until it is done, or until ``during``, told of each event, says that this is enough."""
        answer = Answer()
        while not answer.done:
            event = await self.receive()
            assert event["type"] != "error", event
            _take(answer, event)
            if during and await during(event):
                break
        return answer

    async def respond(self, modality: str = "audio", **response: Any) -> Answer:
        """Ask for a response in this modality, and collect it."""
        await self.ask({"output_modalities": [modality], **response})
        return await self.answer()

    async def vanish(self) -> None:
        """Drop the connection as a broken network does: nothing more is said."""
        self.connection._connection.transport.abort()


def tone(seconds: float, hertz: float, rate: int = RATE) -> Samples:
    """A tone with a slow beat, at a fifth of full scale."""
    times = np.arange(int(seconds * rate)) / rate
    return (0.2 * np.sin(2 * np.pi * hertz * times) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * times))).astype(np.float32)


def _take(answer: Answer, event: Event) -> None:
    kind = event["type"]
    if kind == "response.created":
        answer.id = event["response"]["id"]
    elif kind == "response.output_item.added":
        answer.item_id = event["item"]["id"]
    elif kind in {"response.output_audio_transcript.delta", "response.output_text.delta"}:
        answer.text += event["delta"]
        answer.kinds.append("text")
    elif kind == "response.output_audio.delta":
        answer.audio += base64.b64decode(event["delta"])
        answer.kinds.append("audio")
    elif kind == "response.done":
        answer.done, answer.status = event["response"], event["response"]["status"]
