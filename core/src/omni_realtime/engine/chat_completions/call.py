"""One request while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class StoppedError(Exception):
    """The call was stopped."""


class Call:
    """Waits with deadlines, any of which ``stop`` brings forward to now."""

    def __init__(self) -> None:
        self.response: httpx.Response | None = None
        """The answer, while it is open."""
        self._stopped = False
        self._timer: asyncio.Timeout | None = None

    async def wait(self, work: Callable[[], Awaitable[T]], deadline: float | None) -> T:
        """Wait for work until a time of the loop's clock.

        Raises:
            TimeoutError: when that time has come.
            StoppedError: if the call is stopped, before or meanwhile.
        """
        if self._stopped:
            raise StoppedError
        try:
            async with asyncio.timeout_at(deadline) as self._timer:
                return await work()
        except TimeoutError:
            if self._stopped:
                raise StoppedError from None
            raise
        finally:
            self._timer = None

    async def stop(self) -> None:
        """End the wait at once; where nobody waits, free the connection, and the next wait ends at once."""
        self._stopped = True
        if self._timer is not None:
            self._timer.reschedule(asyncio.get_running_loop().time())
        elif self.response is not None:
            await self.response.aclose()
