"""The checks of clients that hand events over as they are."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from driving import KEY, LOCAL, LOCAL_URL, REPEAT, SCRIPTED, SCRIPTED_URL, SILENCE, STORY, WEATHER, Event, recording, tone
from error_checks import ErrorChecks
from talk import Talk, code_of, written

TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
HEARD_MS = 1000
MUCH = 1_000_000
"""Sixty times so much is more than a server keeps for a client that does not read."""


@dataclass(frozen=True)
class PlainChecks(ErrorChecks):
    """A client that speaks in events, and hears so many bytes a second."""

    bytes_per_second: int

    def all(self) -> list[Callable[[], Awaitable[Event]]]:
        return [self.conversation, self.tool_call, self.barge_in, self.errors, self.unread, self.session_ends, self.refused_upgrades]

    async def conversation(self) -> Event:
        turns = []
        async with self.connect(LOCAL_URL, LOCAL, "none") as talk:
            for name in ("capital", "interrupt"):
                await talk.speak(recording(name) + SILENCE)
                events = await talk.until("response.done", "conversation.item.input_audio_transcription.completed")
                heard = next(event["transcript"] for event in events if event["type"].endswith("transcription.completed"))
                turns.append({"heard": heard, "said": said(events), "seconds": self._audio_bytes(events) / self.bytes_per_second})
        return {"turns": turns}

    async def tool_call(self) -> Event:
        async with self.connect(SCRIPTED_URL, SCRIPTED, KEY, tools=[TOOL]) as talk:
            await talk.speak(tone(WEATHER) + SILENCE)
            call = (await talk.until("response.done"))[-1]["response"]["output"][0]
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            await talk.send({"type": "conversation.item.create", "item": output})
            await talk.send({"type": "response.create"})
            answer = await talk.until("response.done")
        return {"name": call["name"], "arguments": call["arguments"], "said": said(answer)}

    async def barge_in(self) -> Event:
        async with self.connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
            await talk.speak(tone(STORY) + SILENCE)
            events = await talk.until("response.output_audio.delta")
            while self._audio_bytes(events) < HEARD_MS / 1000 * self.bytes_per_second:
                events += await talk.until("response.output_audio.delta")
            await talk.speak(tone(REPEAT))
            await talk.until("input_audio_buffer.speech_started")
            item = {"item_id": events[-1]["item_id"], "content_index": 0}
            await talk.send({"type": "conversation.item.truncate", **item, "audio_end_ms": HEARD_MS})
            return await interrupted(talk)

    async def unread(self) -> Event:
        """The error of a client that does not read; only one that leaves reading to its user can be that client."""
        async with self.connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
            talk.reading.clear()
            content = [{"type": "input_text", "text": "x" * MUCH}]
            item = {"type": "message", "role": "user", "id": "item_much", "content": content}
            await talk.send({"type": "conversation.item.create", "item": item})
            for _ in range(60):
                await talk.send({"type": "conversation.item.retrieve", "item_id": "item_much"})
            await asyncio.sleep(1)
            talk.reading.set()
            return {"code": code_of((await talk.rest())[-1])}

    def _audio_bytes(self, events: list[Event]) -> int:
        return sum(len(base64.b64decode(event["delta"])) for event in events if event["type"] == "response.output_audio.delta")


async def interrupted(talk: Talk) -> Event:
    """How the response ended that the user interrupts, where the client cut it, and what the next one says."""
    events = await talk.until("conversation.item.truncated", "response.done")
    truncated = next(event for event in events if event["type"] == "conversation.item.truncated")
    cut_off = next(event["response"] for event in events if event["type"] == "response.done")
    await talk.speak(SILENCE)
    answer = await talk.until("response.done")
    return {
        "status": cut_off["status"],
        "reason": cut_off["status_details"]["reason"],
        "audio_end_ms": truncated["audio_end_ms"],
        "said": written(answer[-1]),
    }


def said(events: list[Event]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_audio_transcript.delta")
