"""The bounded buffer between a session and its socket."""

from __future__ import annotations

import asyncio

import pytest

from omni_realtime_host.output_buffer import CloseFrame, OutputBuffer


def test_events_come_out_in_order_and_then_the_close(run):
    async def test():
        buffer = OutputBuffer(max_events=10, max_bytes=100)
        for event in ("a", "b"):
            buffer.put(event)
        buffer.close(1001, "going away")
        buffer.put("late")
        buffer.close(1011, "too late")
        assert [await buffer.get() for _ in range(3)] == ["a", "b", CloseFrame(1001, "going away")]

    run(test())


@pytest.mark.parametrize(
    ("events", "full"),
    [(["a"] * 4, False), (["a"] * 5, True), (["a" * 100], False), (["a" * 101], True), (["a" * 50, "a" * 51], True)],
)
def test_it_is_full_beyond_either_bound(run, events, full):
    async def test():
        buffer = OutputBuffer(max_events=4, max_bytes=100)
        for event in events:
            buffer.put(event)
        assert buffer.full is full
        await buffer.get()
        assert not buffer.full

    run(test())


def test_it_waits_for_room_until_it_is_half_empty(run):
    async def test():
        buffer = OutputBuffer(max_events=4, max_bytes=100)
        for event in ("a", "b", "c"):
            buffer.put(event)
        waiting = asyncio.create_task(buffer.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        await buffer.get()
        await asyncio.wait_for(waiting, 1)

    run(test())


def test_a_client_that_takes_nothing_for_too_long_times_out(run, monkeypatch):
    monkeypatch.setattr("omni_realtime_host.output_buffer.STALL_S", 0.01)

    async def test():
        buffer = OutputBuffer(max_events=1, max_bytes=100)
        buffer.put("a")
        with pytest.raises(TimeoutError):
            await buffer.room()

    run(test())


def test_a_reader_that_waits_is_woken(run):
    async def test():
        buffer = OutputBuffer(max_events=4, max_bytes=100)
        waiting = asyncio.create_task(buffer.get())
        await asyncio.sleep(0)
        buffer.put("a")
        assert await asyncio.wait_for(waiting, 1) == "a"

    run(test())
