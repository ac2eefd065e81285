"""What waits to be sent to one client."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

STALL_S = 10.0
"""How long a generation waits for a client to read."""


@dataclass(frozen=True, slots=True)
class CloseFrame:
    """The end of a connection."""

    code: int
    reason: str


class OutputBuffer:
    """A queue of encoded events between a session and its socket, bounded in events and in bytes.

    The rule for a client that does not read: generations pause while the buffer is more than half full. If it stays so for
    ``STALL_S``, or if other events fill it, the connection ends the session: the running responses end, their terminal events and one
    ``error`` join the queue, and the close follows. Everything stays in order and nothing is dropped, so a client that reads on gets all of
    it; one that never does is dropped by the keepalive pings. Memory is bounded by the limits, the events of the one step that passed
    them, and those last events: nothing is accepted after :meth:`close`.
    """

    def __init__(self, *, max_events: int, max_bytes: int) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[str] = deque()
        self._bytes = 0
        self._close: CloseFrame | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def put(self, event: str) -> None:
        """Queue ``event``; after :meth:`close` there is nobody to hear it, and it is let go."""
        if self._close is None:
            self._events.append(event)
            self._count(len(event))
            self._changed.set()

    def close(self, code: int, reason: str) -> None:
        """End the connection once everything before has been sent; the first call counts."""
        if self._close is None:
            self._close = CloseFrame(code, reason)
            self._changed.set()

    @property
    def full(self) -> bool:
        """Whether a bound is passed."""
        return self._is_beyond(1)

    @property
    def closing(self) -> bool:
        """Whether no more events are accepted."""
        return self._close is not None

    async def room(self) -> None:
        """Wait until the buffer is at most half full.

        Raises:
            TimeoutError: if the client takes nothing for so long that it counts as gone.
        """
        if not self._room.is_set():
            async with asyncio.timeout(STALL_S):
                await self._room.wait()

    async def get(self) -> str | CloseFrame:
        """Return the next event, or the end."""
        while not self._events and self._close is None:
            self._changed.clear()
            await self._changed.wait()
        if self._events:
            event = self._events.popleft()
            self._count(-len(event))
            return event
        assert self._close is not None  # noqa: S101 - the loop above says so
        return self._close

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._is_beyond(0.5):
            self._room.clear()
        else:
            self._room.set()

    def _is_beyond(self, share: float) -> bool:
        return len(self._events) > share * self._max_events or self._bytes > share * self._max_bytes
