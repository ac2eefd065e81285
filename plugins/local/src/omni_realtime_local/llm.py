"""The language model on the event loop: a bounded number of streams, each stoppable at any token."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from omni_realtime.engine.port import EngineError
from omni_realtime_local.llama import LlamaServer, Message, texts
from omni_realtime_local.settings import SmolLm2Settings
from omni_realtime_local.weights import SMOLLM2, verified

PACKAGED = "SmolLM2-135M-Instruct.Q4_1.gguf"
REPEAT_PENALTY = 1.05
"""Keeps greedy decoding from echoing the turn before; 1.1 already spoils facts."""

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A step of a stream: text, or at its end why it ended and what it cost."""

    text: str = ""
    finish: Literal["stop", "length"] | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class LanguageModel:
    """SmolLM2 through llama.cpp."""

    def __init__(self, settings: SmolLm2Settings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.max_concurrent)
        self._server: LlamaServer | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._running: set[threading.Event] = set()

    async def start(self) -> None:
        """Verify, load and warm the model."""
        self._threads = ThreadPoolExecutor(self._settings.max_concurrent + 1, "llama")
        try:
            self._server = await asyncio.get_running_loop().run_in_executor(self._threads, self._load)
            async for _ in self.stream([{"role": "user", "content": "Hello."}], max_tokens=2):
                pass
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop what runs and free the model."""
        server, threads, self._server, self._threads = self._server, self._threads, None, None
        for stopped in self._running:
            stopped.set()
        if threads is not None:
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)
        if server is not None:
            await asyncio.to_thread(server.close)

    async def count(self, messages: list[Message]) -> int:
        """The length of a prompt in tokens."""
        server, threads = self._loaded()
        return await asyncio.get_running_loop().run_in_executor(threads, server.count, messages)

    def schema_grammar(self, schema: dict[str, Any]) -> str:
        """A grammar of JSON after a schema."""
        return self._loaded()[0].schema_grammar(schema)

    async def stream(self, messages: list[Message], *, max_tokens: int, grammar: str = "") -> AsyncGenerator[Piece, None]:
        """Stream a reply; greedy. Closing frees the slot within a token, or a batch of the prompt.

        Args:
            messages: the chat.
            max_tokens: the longest reply.
            grammar: what the output is bound to, in llama.cpp's form.

        Raises:
            EngineError: if the model refuses or fails; ``context_length_exceeded`` if the prompt is too long.
        """
        penalty = 1.0 if grammar else REPEAT_PENALTY
        body = {"messages": messages, "max_tokens": max_tokens, "temperature": 0.0, "repeat_penalty": penalty, "grammar": grammar}
        stopped = threading.Event()
        events = await self._begin(body, stopped)
        finish: Literal["stop", "length"] = "stop"
        try:
            while (event := await events.get()) is not None:
                if isinstance(event, EngineError):
                    raise event
                for text in texts(event):
                    yield Piece(text=text)
                finish = _finish(event) or finish
                if "usage" in event:
                    yield _end(event["usage"], finish)
        finally:
            stopped.set()

    async def _begin(self, body: Event, stopped: threading.Event) -> asyncio.Queue[Event | EngineError | None]:
        """Wait for a slot and start a thread that fills the queue; the slot is free again when the thread ends."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Event | EngineError | None] = asyncio.Queue()

        def put(event: Event | EngineError | None) -> bool:
            loop.call_soon_threadsafe(events.put_nowait, event)
            return stopped.is_set()

        def run(server: LlamaServer) -> None:
            try:
                server.stream(body, put)
                put(None)
            except EngineError as error:
                put(error)

        def ended(_: object) -> None:
            self._running.discard(stopped)
            self._slots.release()

        try:
            server, threads = self._loaded()
            self._running.add(stopped)
            loop.run_in_executor(threads, run, server).add_done_callback(ended)
        except BaseException:
            self._slots.release()
            raise
        return events

    def _loaded(self) -> tuple[LlamaServer, ThreadPoolExecutor]:
        if self._server is None or self._threads is None:
            raise EngineError("The language model is not running.")
        return self._server, self._threads

    def _load(self) -> LlamaServer:
        return LlamaServer(verified(self._settings.model_file, SMOLLM2, PACKAGED), self._settings)


def _finish(event: Event) -> Literal["stop", "length"] | None:
    for choice in event.get("choices", ()):
        if choice.get("finish_reason") == "length":
            return "length"
    return None


def _end(usage: Mapping[str, Any], finish: Literal["stop", "length"]) -> Piece:
    return Piece(
        finish=finish,
        prompt_tokens=usage["prompt_tokens"],
        cached_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
        output_tokens=usage["completion_tokens"],
    )
