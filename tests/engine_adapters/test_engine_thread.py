"""The engine's own loop: order, errors, and that closing on one side closes the other."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from omni_realtime.engine.port import EngineDeadError
from omni_realtime.engine.vllm_common.thread import EngineThread


class Source:
    """A generator that counts, and tells how it ended."""

    def __init__(self, items: int = 10**9, *, fails: bool = False, pause: float = 0.0) -> None:
        self.items, self.fails, self.pause = items, fails, pause
        self.threads: set[str] = set()
        self.closed = False

    async def __call__(self) -> AsyncGenerator[int, None]:
        try:
            for item in range(self.items):
                self.threads.add(threading.current_thread().name)
                yield item
                await asyncio.sleep(self.pause)
            if self.fails:
                raise LookupError("all gone")
        finally:
            await asyncio.sleep(0.01)
            self.closed = True


def on_thread(scenario: Callable[[EngineThread], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        thread = EngineThread("there")
        thread.start()
        try:
            await asyncio.wait_for(scenario(thread), 30)
        finally:
            await thread.stop()
        assert not thread.running

    asyncio.run(bounded())


def test_items_cross_in_order_from_the_other_thread() -> None:
    async def scenario(thread: EngineThread) -> None:
        source = Source(1000)
        assert [item async for item in thread.stream(source)] == list(range(1000))
        assert source.threads == {"there"}
        assert source.closed

    on_thread(scenario)


def test_an_error_comes_after_what_was_made_before_it() -> None:
    async def scenario(thread: EngineThread) -> None:
        got: list[int] = []

        async def consume() -> None:
            async for item in thread.stream(Source(3, fails=True)):
                got.append(item)  # noqa: PERF401 - what came before the error matters

        with pytest.raises(LookupError):
            await consume()
        assert got == [0, 1, 2]

    on_thread(scenario)


def test_closing_early_closes_the_other_side_first() -> None:
    async def scenario(thread: EngineThread) -> None:
        source = Source()
        async with aclosing(thread.stream(source)) as items:
            async for item in items:
                if item == 3:
                    break
        assert source.closed

    on_thread(scenario)


@pytest.mark.parametrize("delay", [0, 0.001, 0.02])
def test_cancelling_the_consumer_closes_the_other_side(delay: float) -> None:
    async def scenario(thread: EngineThread) -> None:
        source = Source(pause=0.001)

        async def consume() -> None:
            async with aclosing(thread.stream(source)) as items:
                async for _ in items:
                    pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.closed or not source.threads

    on_thread(scenario)


def test_a_stream_ends_when_the_thread_is_stopped() -> None:
    async def scenario() -> None:
        thread = EngineThread("there")
        thread.start()
        source = Source(pause=0.001)
        stopping: list[asyncio.Task[None]] = []

        async def consume() -> None:
            async for _ in thread.stream(source):
                if not stopping:
                    stopping.append(asyncio.create_task(thread.stop()))

        with pytest.raises(EngineDeadError, match="has been closed"):
            await consume()
        await stopping[0]
        assert source.closed

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_loop_that_blocks_over_there_does_not_hold_up_this_one() -> None:
    async def block() -> str:
        time.sleep(0.3)  # noqa: ASYNC251 - this is the point
        return "done"

    async def scenario(thread: EngineThread) -> None:
        task = asyncio.create_task(thread.run(block()))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        assert task.result() == "done"
        assert ticks > 10

    on_thread(scenario)


def test_cancelling_a_call_cancels_it_over_there() -> None:
    async def scenario(thread: EngineThread) -> None:
        ended = threading.Event()

        async def wait() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        task = asyncio.create_task(thread.run(wait()))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await asyncio.to_thread(ended.wait, 10)

    on_thread(scenario)
