"""``AgentSession`` on ``openai.realtime.RealtimeModel``, as it comes, with a microphone and a loudspeaker of ours instead of a room."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession, APIConnectionError, ErrorEvent, function_tool, utils
from livekit.agents.voice import io
from livekit.plugins import openai

from driving import (
    KEY,
    LOCAL,
    LOCAL_URL,
    RATE,
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
)
from error_checks import ErrorChecks
from plain_checks import interrupted, said
from talk import ConnectionClosed, Talk, written

WARM_UP_S = 3.5
"""An AgentSession hears nobody for the first three seconds that its agent speaks: it waits for an echo canceller."""


class Microphone(io.AudioInput):
    def __init__(self) -> None:
        super().__init__(label="microphone")
        self.frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()

    async def __anext__(self) -> rtc.AudioFrame:
        return await self.frames.get()


class Loudspeaker(io.AudioOutput):
    """Plays in real time, to nobody.

    Attributes:
        seconds: the audio so far.
    """

    def __init__(self) -> None:
        super().__init__(label="loudspeaker", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=RATE)
        self.seconds = 0.0
        self._segment = self._began = 0.0
        self._ending: asyncio.TimerHandle | None = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self._segment:
            self._began = time.monotonic()
            self.on_playback_started(created_at=time.time())
        self._segment += frame.duration
        self.seconds += frame.duration

    def flush(self) -> None:
        super().flush()
        if self._segment:
            left = self._began + self._segment - time.monotonic()
            self._ending = asyncio.get_running_loop().call_later(max(left, 0), self._finish, False)

    def clear_buffer(self) -> None:
        if self._segment:
            self._finish(True)

    def _finish(self, interrupted: bool) -> None:
        if self._ending:
            self._ending.cancel()
        played, self._segment = min(time.monotonic() - self._began, self._segment), 0.0
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


class TappedModel(openai.realtime.RealtimeModel):
    """Gives every server event to ``talk`` before the package handles it."""

    talk: LiveKitTalk

    def session(self, **options: Any) -> openai.realtime.RealtimeSession:
        session = super().session(**options)
        session.on("openai_server_event_received", self.talk.add)
        return session


class LiveKitTalk(Talk):
    """A talk through an AgentSession; it cancels at every interruption, also what the server has cancelled."""

    tolerated = frozenset({"response_cancel_not_active"})

    def __init__(self, session: AgentSession, agent: Agent) -> None:
        super().__init__(self._send, self._speak)
        self.session = session
        self.agent = agent
        self.microphone, self.loudspeaker = Microphone(), Loudspeaker()
        self.errors: list[ErrorEvent] = []
        session.on("error", self._failed)

    @property
    def surfaced(self) -> list[str | None]:
        bodies = [getattr(event.error.error, "body", None) for event in self.errors]
        return [body.code for body in bodies if body]

    def can_send(self, events: list[Event]) -> bool:
        """It sends no frames that are no events, and follows one response at a time."""
        return all("type" in event and event.get("response", {}).get("conversation") != "none" for event in events)

    async def rest(self) -> list[Event]:
        """Take events until an error; the package connects again by itself, as long as it is let in."""
        return await self.until("error")

    async def say(self, text: str) -> str:
        self.session.generate_reply(user_input=text)
        return written((await self.until("response.done"))[-1])

    def _failed(self, event: ErrorEvent) -> None:
        self.errors.append(event)
        if not event.error.recoverable:
            self.end()

    async def _send(self, event: Event) -> None:
        self.agent.realtime_llm_session.send_event(event)

    async def _speak(self, pcm: bytes) -> None:
        for chunk in chunks(pcm):
            self.microphone.frames.put_nowait(rtc.AudioFrame(chunk, RATE, 1, len(chunk) // 2))


@function_tool
async def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return "sunny"


@asynccontextmanager
async def connect(url: str, model: str, key: str, *tools: Any) -> AsyncIterator[LiveKitTalk]:
    async with utils.http_context.open():
        realtime = TappedModel(model=model, base_url=f"{url}/v1", api_key=key)
        session = AgentSession(llm=realtime)
        agent = Agent(instructions="Keep answers short.", tools=list(tools))
        realtime.talk = talk = LiveKitTalk(session, agent)
        session.input.audio, session.output.audio = talk.microphone, talk.loudspeaker
        await session.start(agent)
        try:
            await talk.until("session.created", "session.updated")
            yield talk
        except ConnectionClosed:
            raise ConnectionError(talk.errors[-1].error.error.__cause__) from None
        finally:
            with contextlib.suppress(APIConnectionError):  # a session that was refused ends with its refusal
                await session.aclose()


async def conversation() -> Event:
    turns = []
    async with connect(LOCAL_URL, LOCAL, "none") as talk:
        for name in ("capital", "interrupt"):
            await talk.speak(recording(name) + SILENCE)
            events = await talk.until("response.done", "conversation.item.input_audio_transcription.completed")
            heard = next(event["transcript"] for event in events if event["type"].endswith("transcription.completed"))
            await talk.loudspeaker.wait_for_playout()
            await asyncio.sleep(WARM_UP_S)
            turns.append({"heard": heard, "said": said(events), "seconds": talk.loudspeaker.seconds})
            talk.loudspeaker.seconds = 0
    return {"turns": turns}


async def tool_call() -> Event:
    called = []
    async with connect(SCRIPTED_URL, SCRIPTED, KEY, get_weather) as talk:
        talk.session.on("function_tools_executed", called.append)
        await talk.speak(tone(WEATHER) + SILENCE)
        await talk.until("response.done")
        answer = await talk.until("response.done")
    call = called[0].function_calls[0]
    return {"name": call.name, "arguments": call.arguments, "said": said(answer)}


async def barge_in() -> Event:
    async with connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
        await talk.speak(tone(STORY) + SILENCE)
        await talk.until("response.output_audio.delta")
        await asyncio.sleep(WARM_UP_S)
        await talk.speak(tone(REPEAT))
        return await interrupted(talk)


if __name__ == "__main__":
    errors = ErrorChecks(connect)
    checks = (conversation, tool_call, barge_in, errors.errors, errors.session_ends, errors.refused_upgrades)
    asyncio.run(run_checks("livekit-plugins-openai", *checks))
