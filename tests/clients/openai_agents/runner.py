"""``RealtimeRunner``: a voice agent with a tool, and all settings but the model's name as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents import Tool, function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession, RealtimeSessionEvent

from driving import (
    KEY,
    LOCAL,
    LOCAL_URL,
    REPEAT,
    SCRIPTED,
    SCRIPTED_URL,
    SILENCE,
    STORY,
    WEATHER,
    Event,
    chunks,
    recording,
    run_checks,
    tone,
    ws,
)
from error_checks import ErrorChecks
from plain_checks import interrupted, said
from talk import Talk, written


@function_tool
def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return "sunny"


class AgentTalk(Talk):
    """A talk through a session of the package.

    Attributes:
        told: errors, audio, interruptions and tool calls, as the session told its user.
    """

    def __init__(self, session: RealtimeSession) -> None:
        super().__init__(self._send, self._speak)
        self.session = session
        self.told: list[RealtimeSessionEvent] = []
        self.closed_by: Exception | None = None

    @property
    def surfaced(self) -> list[str | None]:
        return [event.error.code for event in self.told if event.type == "error"]

    async def say(self, text: str) -> str:
        await self.session.send_message(text)
        return written((await self.until("response.done"))[-1])

    async def read(self) -> None:
        """Follow the session to its end."""
        try:
            async for event in self.session:
                if event.type in {"error", "audio", "audio_interrupted", "tool_end"}:
                    self.told.append(event)
                if event.type == "raw_model_event" and event.data.type == "raw_server_event":
                    self.add(event.data.data)
        except Exception as error:  # noqa: BLE001 - how the package tells of a close with a code such as 1011
            self.closed_by = error
        finally:
            self.end()

    async def _send(self, event: Event) -> None:
        """Send beneath the package: its own way sends no event that it knows to be wrong."""
        frame = event["binary"].encode() if "binary" in event else event.get("raw") or json.dumps(event)
        await self.session.model._websocket.send(frame)

    async def _speak(self, pcm: bytes) -> None:
        for chunk in chunks(pcm):
            await self.session.send_audio(chunk)


@asynccontextmanager
async def connect(url: str, model: str, key: str, *tools: Tool) -> AsyncIterator[AgentTalk]:
    agent = RealtimeAgent(name="assistant", instructions="Keep answers short.", tools=list(tools))
    runner = RealtimeRunner(agent, config={"model_settings": {"model_name": model}})
    async with await runner.run(model_config={"url": f"{ws(url)}?model={model}", "api_key": key}) as session:
        talk = AgentTalk(session)
        reader = asyncio.create_task(talk.read())
        await talk.until("session.created", "session.updated")
        yield talk
    await reader


async def conversation() -> Event:
    turns = []
    async with connect(LOCAL_URL, LOCAL, "none") as talk:
        for name in ("capital", "interrupt"):
            await talk.speak(recording(name) + SILENCE)
            events = await talk.until("response.done", "conversation.item.input_audio_transcription.completed")
            heard = next(event["transcript"] for event in events if event["type"].endswith("transcription.completed"))
            audio = [event.audio.data for event in talk.told if event.type == "audio"]
            turns.append({"heard": heard, "said": said(events), "seconds": sum(map(len, audio)) / 48000})
    return {"turns": turns}


async def tool_call() -> Event:
    async with connect(SCRIPTED_URL, SCRIPTED, KEY, get_weather) as talk:
        await talk.speak(tone(WEATHER) + SILENCE)
        await talk.until("response.done")
        answer = await talk.until("response.done")
        call = next(event for event in talk.told if event.type == "tool_end")
    return {"name": call.tool.name, "arguments": call.arguments, "said": said(answer)}


async def barge_in() -> Event:
    async with connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
        await talk.speak(tone(STORY) + SILENCE)
        await talk.until("response.output_audio.delta")
        await asyncio.sleep(1)  # it is played for so long
        await talk.speak(tone(REPEAT))
        seen = await interrupted(talk)
        assert any(event.type == "audio_interrupted" for event in talk.told)
    return seen


if __name__ == "__main__":
    errors = ErrorChecks(connect)
    checks = (conversation, tool_call, barge_in, errors.errors, errors.session_ends, errors.refused_upgrades)
    asyncio.run(run_checks("openai-agents", *checks))
