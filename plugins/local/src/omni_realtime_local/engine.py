"""The engine: what the user said → a reply, token by token → sentences → speech."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from omni_realtime.chat import AudioPart, ChatDelta, ChatPrompt, GenerateRequest
from omni_realtime.engine.port import TranscriptionRequest
from omni_realtime_local.asr import shared_transcriber
from omni_realtime_local.llama import Message
from omni_realtime_local.llm import LanguageModel
from omni_realtime_local.render import render
from omni_realtime_local.reply import reply
from omni_realtime_local.settings import LocalSettings
from omni_realtime_local.speech import write, write_and_speak
from omni_realtime_local.tts import PiperSpeaker

Put = Callable[[ChatDelta | Exception], None]


class _Part(Protocol):
    async def start(self) -> None: ...

    async def close(self) -> None: ...


class LocalEngine:
    """Whisper, SmolLM2 and Piper in a row."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
        self._transcriber = shared_transcriber(settings.whisper)
        self._model = LanguageModel(settings.smollm2)
        self._speaker = PiperSpeaker(settings.piper)
        self._parts: tuple[_Part, ...] = (self._transcriber, self._model, self._speaker)
        self._responses: dict[str, asyncio.Task[None]] = {}
        self._started = False

    @property
    def context_window(self) -> int:
        """Tokens that a prompt and its reply share."""
        return self._settings.smollm2.context

    async def start(self) -> None:
        """Verify, load and warm the three models at once.

        Raises:
            WeightsError: if a model's file is missing or not what it should be.
            MissingRuntimeError: if a package is missing.
        """
        results = await asyncio.gather(*(part.start() for part in self._parts), return_exceptions=True)
        failures = [result for result in results if result is not None]
        if failures:
            await asyncio.gather(*(part.close() for part, result in zip(self._parts, results, strict=True) if result is None))
            raise failures[0]
        self._started = True

    async def close(self) -> None:
        """End every response and free the models."""
        if not self._started:
            return
        self._started = False
        for task in self._responses.values():
            task.cancel()
        await asyncio.gather(*self._responses.values(), return_exceptions=True)
        await asyncio.gather(*(part.close() for part in self._parts))

    async def check_health(self) -> None:
        """Return while responses can be made.

        Raises:
            EngineDeadError: once the speech worker cannot be revived.
        """
        self._speaker.check_health()

    async def count_tokens(self, prompt: ChatPrompt) -> int:
        """The length of the rendered prompt; audio counts as the words in it."""
        return await self._model.count(await self._render(prompt))

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the answer; see :meth:`omni_realtime.engine.port.Engine.generate`.

        What the caller has not taken yet waits in memory; the longest reply bounds it.
        """
        deltas: asyncio.Queue[ChatDelta | Exception] = asyncio.Queue()
        task = asyncio.create_task(self._respond(request, deltas.put_nowait))
        self._responses[request.request_id] = task
        try:
            while True:
                delta = await deltas.get()
                if isinstance(delta, Exception):
                    raise delta
                yield delta
                if delta.finish_reason is not None:
                    return
        finally:
            self._responses.pop(request.request_id, None)
            task.cancel()
            await asyncio.wait([task])

    async def abort(self, request_id: str) -> None:
        """Stop a response: it ends with the finish reason ``abort``."""
        task = self._responses.get(request_id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _respond(self, request: GenerateRequest, put: Put) -> None:
        try:
            put(await self._write(request, put))
        except asyncio.CancelledError:
            put(ChatDelta(finish_reason="abort"))
        except Exception as error:  # noqa: BLE001  (raised by generate: its caller logs it without what it may quote)
            put(error)

    async def _write(self, request: GenerateRequest, put: Put) -> ChatDelta:
        messages = await self._render(request.prompt)
        written = reply(self._model, request.prompt, messages, self._longest(request))
        if "audio" in request.modalities:
            return await write_and_speak(written, self._speaker, put)
        return await write(written, put)

    async def _render(self, prompt: ChatPrompt) -> list[Message]:
        return await render(prompt, self._hear)

    async def _hear(self, part: AudioPart) -> str:
        heard = await self._transcriber.transcribe(TranscriptionRequest(samples=part.samples, rate=part.rate, key=part.key))
        return heard.text

    def _longest(self, request: GenerateRequest) -> int:
        limit = self._settings.smollm2.max_output_tokens
        return limit if request.max_output_tokens is None else min(limit, request.max_output_tokens)
