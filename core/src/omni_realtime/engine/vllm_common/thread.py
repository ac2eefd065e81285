"""An event loop in a thread of its own: rendering and the engine's bookkeeping never hold up the loop of the sessions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar

from omni_realtime.engine.port import EngineDeadError

T = TypeVar("T")

_END: Final = object()


class EngineThread:
    """Runs coroutines and generators on its own loop, for callers on any other."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    async def stop(self) -> None:
        """End what still runs, and the loop."""
        if self._thread.is_alive():
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
        here = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        ended: asyncio.Future[BaseException | None] = here.create_future()
        tasks: list[asyncio.Task[None]] = []

        async def pump() -> None:
            async with aclosing(produce()) as items:
                async for item in items:
                    here.call_soon_threadsafe(queue.put_nowait, item)

        def begin() -> None:
            tasks.append(self._loop.create_task(pump()))
            tasks[0].add_done_callback(tell)

        def tell(task: asyncio.Task[None]) -> None:
            failure = EngineDeadError("The engine has been closed.") if task.cancelled() else task.exception()
            if not here.is_closed():
                here.call_soon_threadsafe(end, failure)

        def end(failure: BaseException | None) -> None:
            queue.put_nowait(_END)
            if not ended.done():
                ended.set_result(failure)

        self._loop.call_soon_threadsafe(begin)
        try:
            while (item := await queue.get()) is not _END:
                yield item
            if failure := ended.result():
                raise failure
        finally:
            if not ended.done():
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                await ended


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
