"""An engine that does what a test says: slow, broken, deaf or dead on purpose, and it keeps a record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from omni_realtime.chat import AudioPart, ChatDelta, ChatPrompt, ContentPart, GenerateRequest, TextPart
from omni_realtime.engine.port import EngineDeadError, EngineError
from omni_realtime.testing.scripts import Script


def count_words(prompt: ChatPrompt) -> int:
    """Count as tokens the words of the texts, one token for every tenth of a second of audio, and ten for an image."""
    return sum(_count_part(part) for message in prompt.messages for part in message.content)


def _count_part(part: ContentPart) -> int:
    match part:
        case TextPart():
            return len(part.text.split())
        case AudioPart():
            return 10 * len(part.samples) // part.rate
    return 10


@dataclass(slots=True)
class _Generation:
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by ``abort``, ``close`` and ``die``: whatever the generation waits for, it looks up."""
    swallowed: bool = False


class ScriptedEngine:
    """An :class:`~omni_realtime.engine.port.Engine` that plays scripts.

    Generation n plays script n, and the last script is played ever after. An ``EngineDeadError`` among the steps kills the engine.

    Args:
        scripts: the steps of each generation, or functions that make them of the request.
        context_window: in tokens.
        count: the token count of a prompt.
        start_seconds: how long ``start`` takes.
        ignore_abort: an aborted generation goes on as if nothing had been said.
        swallow_cancel: a generation swallows the first cancellation of its task, and goes on with its next step.

    Attributes:
        requests: every request, in order.
        aborts: the ids that ``abort`` was called with, in order.
        closed: the ids whose generators have ended, in order: their work is freed.
        started: ``start`` has returned.
        stopped: ``close`` has been called.
    """

    def __init__(
        self,
        *scripts: Script,
        context_window: int = 32768,
        count: Callable[[ChatPrompt], int] = count_words,
        start_seconds: float = 0.0,
        ignore_abort: bool = False,
        swallow_cancel: bool = False,
    ) -> None:
        self.context_window = context_window
        self.requests: list[GenerateRequest] = []
        self.aborts: list[str] = []
        self.closed: list[str] = []
        self.started = False
        self.stopped = False
        self._scripts = scripts
        self._count = count
        self._start_seconds = start_seconds
        self._ignore_abort = ignore_abort
        self._swallow_cancel = swallow_cancel
        self._running: dict[str, _Generation] = {}
        self._death: EngineDeadError | None = None

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the generations whose work is not freed yet."""
        return tuple(self._running)

    async def start(self) -> None:
        """Take ``start_seconds``."""
        await asyncio.sleep(self._start_seconds)
        self.started = True

    async def close(self) -> None:
        """End every generation."""
        self.stopped = True
        for generation in self._running.values():
            generation.ended.set()

    def die(self, error: EngineDeadError | None = None) -> None:
        """Die for good: running generations raise, and so does everything after."""
        self._death = error or EngineDeadError("The engine died.")
        for generation in self._running.values():
            generation.ended.set()

    async def check_health(self) -> None:
        """Raise once the engine is dead."""
        if self._death:
            raise self._death

    async def count_tokens(self, prompt: ChatPrompt) -> int:
        """Ask ``count``."""
        return self._count(prompt)

    async def abort(self, request_id: str) -> None:
        """Record the call; the generation ends with ``abort`` unless it was told to ignore it."""
        self.aborts.append(request_id)
        generation = self._running.get(request_id)
        if generation and not self._ignore_abort:
            generation.ended.set()

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        """Play the next script."""
        await self.check_health()
        if request.request_id in self._running:
            raise EngineError("A generation with this request id is running.")
        script = self._next_script()
        self.requests.append(request)
        generation = self._running[request.request_id] = _Generation()
        try:
            for step in script(request) if callable(script) else script:
                if isinstance(step, ChatDelta):
                    yield step
                else:
                    await self._obey(step, generation)
                await self.check_health()
                if generation.ended.is_set():
                    yield ChatDelta(finish_reason="abort")
                    return
        finally:
            del self._running[request.request_id]
            self.closed.append(request.request_id)

    def _next_script(self) -> Script:
        if not self._scripts:
            raise EngineError("This scripted engine has no script.")
        return self._scripts[min(len(self.requests), len(self._scripts) - 1)]

    async def _obey(self, step: float | asyncio.Event | Exception, generation: _Generation) -> None:
        if isinstance(step, EngineDeadError):
            self.die(step)
        elif isinstance(step, Exception):
            raise step
        else:
            waiting = step.wait() if isinstance(step, asyncio.Event) else asyncio.sleep(step)
            try:
                await _either(waiting, generation.ended.wait())
            except asyncio.CancelledError:
                if generation.swallowed or not self._swallow_cancel:
                    raise
                generation.swallowed = True


async def _either(*awaitables: Awaitable[Any]) -> None:
    """Wait for the first of these, and leave none of them running."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
