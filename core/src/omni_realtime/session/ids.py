"""Unique ids without a random source: the host's random token, and a count."""

from __future__ import annotations


class Ids:
    """Makes the ids of one session; an item's id stays below the 32 characters that some clients allow."""

    def __init__(self, token: str) -> None:
        """Start counting; ``token`` is unique per session, 12 hex digits or so."""
        self._token = token
        self._count = 0

    def new(self, kind: str) -> str:
        """Return an id that begins with ``kind``."""
        self._count += 1
        return f"{kind}_{self._token}{self._count:x}"
