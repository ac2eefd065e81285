"""An event loop in a thread of its own: rendering and the engine's bookkeeping never hold up the loop of the sessions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, Generic, TypeVar

from omni_realtime.engine.port import EngineDeadError

T = TypeVar("T")

_END: Final = object()


class EngineThread:
    """Runs coroutines and generators on its own loop, for callers on any other."""

    def __init__(self, name: str) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def running(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Make the loop and start it: an engine that is never started leaves nothing open."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()

    async def stop(self) -> None:
        """End what still runs, and the loop."""
        await self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine over there; cancelling this cancels that."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    async def stream(self, produce: Callable[[], AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """Iterate a generator over there, in order; closing this closes that, and waits until it is closed.

        Raises:
            EngineDeadError: if the loop is stopped meanwhile.
        """
        relay = _Relay(self._loop, produce)
        relay.begin()
        try:
            while (item := await relay.items.get()) is not _END:
                yield item
            relay.check()
        finally:
            await relay.close()


class _Relay(Generic[T]):
    """Carries the items of a generator on another loop to a queue on this one."""

    def __init__(self, there: asyncio.AbstractEventLoop, produce: Callable[[], AsyncGenerator[T, None]]) -> None:
        self._here = asyncio.get_running_loop()
        self._there = there
        self._produce = produce
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[BaseException | None] = self._here.create_future()
        self.items: asyncio.Queue[Any] = asyncio.Queue()

    def begin(self) -> None:
        self._there.call_soon_threadsafe(self._begin_there)

    def check(self) -> None:
        """Raise what the generator raised, once it has ended."""
        if failure := self._ended.result():
            raise failure

    async def close(self) -> None:
        """End the generator and wait until it has ended."""
        if not self._ended.done():
            self._there.call_soon_threadsafe(self._cancel_there)
            await self._ended

    def _begin_there(self) -> None:
        self._task = self._there.create_task(self._pump())
        self._task.add_done_callback(self._tell)

    def _cancel_there(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _pump(self) -> None:
        async with aclosing(self._produce()) as items:
            async for item in items:
                self._here.call_soon_threadsafe(self.items.put_nowait, item)

    def _tell(self, task: asyncio.Task[None]) -> None:
        failure = EngineDeadError("The engine has been closed.") if task.cancelled() else task.exception()
        if not self._here.is_closed():
            self._here.call_soon_threadsafe(self._end, failure)

    def _end(self, failure: BaseException | None) -> None:
        self.items.put_nowait(_END)
        if not self._ended.done():
            self._ended.set_result(failure)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
