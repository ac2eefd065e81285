"""Unique ids without a random source: the host's random token, and a count."""

from __future__ import annotations

from collections.abc import Container


class Ids:
    """Makes the ids of one session; an item's id stays below the 32 characters that some clients allow."""

    def __init__(self, token: str, taken: Container[str] = ()) -> None:
        """Start counting; ``token`` is unique per session, 12 hex digits or so, and ids in ``taken`` are a client's own."""
        self._token = token
        self._taken = taken
        self._count = 0

    def new(self, kind: str) -> str:
        """Return an id that begins with ``kind``."""
        while True:
            self._count += 1
            new = f"{kind}_{self._token}{self._count:x}"
            if new not in self._taken:
                return new
