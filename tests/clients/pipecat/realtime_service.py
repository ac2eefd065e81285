"""``OpenAIRealtimeLLMService`` in a pipeline, as its own example has it, with frames of ours instead of a transport."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    BotStoppedSpeakingFrame,
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
    LLMMessagesAppendFrame,
    LLMRunFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

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
    provocations,
    recording,
    run_checks,
    tone,
    ws,
)
from error_checks import ErrorChecks
from plain_checks import interrupted, said
from talk import ConnectionClosed, Talk, provoke, recover, written

FRAME_BYTES = 960
"""20 ms, as its transports have them."""
PAUSE_S = 0.2
"""Its frames cross each other where a turn begins, ends and calls a tool within a millisecond, as no speaker and no tool does."""
GET_WEATHER = FunctionSchema("get_weather", "Get the weather in a city.", {"city": {"type": "string"}}, ["city"])


class TappedService(OpenAIRealtimeLLMService):
    """Gives every server event to ``talk`` before the package handles it."""

    talk: PipecatTalk

    async def _connect(self) -> None:
        await super()._connect()
        if self._websocket:
            self._websocket = _TappedSocket(self._websocket, self.talk)


class _TappedSocket:
    def __init__(self, socket: Any, talk: PipecatTalk) -> None:
        self._socket = socket
        self._talk = talk
        self.send, self.close = socket.send, socket.close

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            async for frame in self._socket:
                self._talk.add(json.loads(frame))
                yield frame
        finally:
            self._talk.end()


class Ear(FrameProcessor):
    """Counts the audio that would be played.

    Attributes:
        answers: the bytes of each answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answers: asyncio.Queue[int] = asyncio.Queue()
        self._bytes = 0

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self._bytes += len(frame.audio)
        elif isinstance(frame, TTSStoppedFrame):
            self.answers.put_nowait(self._bytes)
            self._bytes = 0
        await self.push_frame(frame, direction)


class PipecatTalk(Talk):
    """A talk through a pipeline.

    Attributes:
        errors: every error that the pipeline told its user of.
        calls: what the tool was called with.
    """

    def __init__(self, url: str, model: str, key: str, tools: Sequence[FunctionSchema]) -> None:
        super().__init__(self._send, self._speak)
        audio = events.AudioConfiguration(input=events.AudioInput(transcription=events.InputAudioTranscription()))
        settings = OpenAIRealtimeLLMService.Settings(model=model, session_properties=events.SessionProperties(audio=audio))
        self.service = TappedService(api_key=key, base_url=ws(url), settings=settings)
        self.service.talk = self
        self.service.register_function("get_weather", self._get_weather)
        context = LLMContext([{"role": "user", "content": "Hello."}], ToolsSchema(list(tools)))
        user, assistant = LLMContextAggregatorPair(context)
        self.ear = Ear()
        self.worker = PipelineWorker(Pipeline([user, self.service, self.ear, assistant]), enable_rtvi=False)
        self.worker.add_event_handler("on_pipeline_error", self._failed)
        self.errors: list[str] = []
        self.calls: list[FunctionCallParams] = []

    @property
    def ended(self) -> bool:
        """Whether the package follows the server no longer."""
        return self.service._receive_task is None or self.service._receive_task.done()

    async def say(self, text: str) -> str:
        await self.service.queue_frame(LLMMessagesAppendFrame([{"role": "user", "content": text}], run_llm=True))
        return written((await self.until("response.done"))[-1])

    async def ask(self, pcm: bytes) -> None:
        """Speak, and give the pipeline the time to hear it."""
        await self.speak(pcm)
        await asyncio.sleep(PAUSE_S)
        await self.speak(SILENCE)

    async def played(self) -> int:
        """Say, as a transport does, that the answer has been heard to its end; return its bytes."""
        heard = await self.ear.answers.get()
        await self.worker.queue_frame(BotStoppedSpeakingFrame())
        return heard

    async def rest(self) -> list[Event]:
        """Take events until an error: the package reads no more."""
        return await self.until("error")

    async def _failed(self, _worker: PipelineWorker, frame: ErrorFrame) -> None:
        self.errors.append(frame.error)
        if not self.events:
            self.end()

    async def _get_weather(self, params: FunctionCallParams) -> None:
        self.calls.append(params)
        await asyncio.sleep(PAUSE_S)
        await params.result_callback("sunny")

    async def _send(self, event: Event) -> None:
        if "type" in event:
            await self.service._ws_send(event)
        else:
            await self.service._websocket.send(event["binary"].encode() if "binary" in event else event["raw"])

    async def _speak(self, pcm: bytes) -> None:
        for chunk in chunks(pcm, FRAME_BYTES):
            await self.worker.queue_frame(InputAudioRawFrame(audio=chunk, sample_rate=RATE, num_channels=1))


@asynccontextmanager
async def connect(url: str, model: str, key: str, *tools: FunctionSchema) -> AsyncIterator[PipecatTalk]:
    """Run a pipeline, and let the model speak first, as the package's example does."""
    talk = PipecatTalk(url, model, key, tools)
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(talk.worker)
    running = asyncio.create_task(runner.run())
    try:
        await talk.worker.queue_frame(LLMRunFrame())
        await talk.until("response.done")
        await talk.played()
        yield talk
    except ConnectionClosed:
        raise ConnectionError(talk.errors) from None
    finally:
        await talk.worker.cancel()
        await running


async def conversation() -> Event:
    turns = []
    async with connect(LOCAL_URL, LOCAL, "none") as talk:
        for name in ("capital", "interrupt"):
            await talk.ask(recording(name))
            seen = await talk.until("response.done", "conversation.item.input_audio_transcription.completed")
            heard = next(event["transcript"] for event in seen if event["type"].endswith("transcription.completed"))
            turns.append({"heard": heard, "said": said(seen), "seconds": await talk.played() / 48000})
    return {"turns": turns}


async def tool_call() -> Event:
    async with connect(SCRIPTED_URL, SCRIPTED, KEY, GET_WEATHER) as talk:
        await talk.ask(tone(WEATHER))
        await talk.until("response.done")
        answer = await talk.until("response.done")
    call = talk.calls[0]
    return {"name": call.function_name, "arguments": json.dumps(call.arguments), "said": said(answer)}


async def barge_in() -> Event:
    async with connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
        await talk.ask(tone(STORY))
        await talk.until("response.output_audio.delta")
        await asyncio.sleep(1)  # it is played for so long
        await talk.speak(tone(REPEAT))
        return await interrupted(talk)


async def errors() -> Event:
    """Each error in a session of its own, since most of them end it."""
    return {"provoked": {each["name"]: await _provoked(each) for each in provocations()}}


async def _provoked(provocation: dict[str, Any]) -> Event:
    async with connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
        await talk.send({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": None}}}})
        await talk.until("session.updated")
        answer = next(event["item"]["id"] for event in talk.events if event["type"] == "response.output_item.added")
        seen = await provoke(talk, provocation, answer)
        await asyncio.sleep(0.05)  # it handles the event after it was tapped
        seen |= {"ended": talk.ended, "told": len(talk.errors)}
        if not talk.ended:
            seen["turn"] = await recover(talk, provocation)
    return seen


if __name__ == "__main__":
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    checks = ErrorChecks(connect)
    asyncio.run(run_checks("pipecat-ai", conversation, tool_call, barge_in, errors, checks.session_ends, checks.refused_upgrades))
