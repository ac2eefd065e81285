"""What all sessions of a deployment may take together, refilled without end: a bucket of requests and one of tokens."""

from __future__ import annotations

import math
from typing import Literal

from omni_realtime.protocol.server_events import RateLimit

_MINUTE_S = 60
_ROUNDING = 1e-6
"""What a clock's readings may add up to wrongly: who waits as long as was told is let in."""


class _Bucket:
    """Holds a minute's worth at most and gains it evenly; what is spent beyond it is a debt."""

    def __init__(self, name: Literal["requests", "tokens"], limit: int) -> None:
        self.name = name
        self.limit = limit
        self._level = float(limit)
        self._at = -math.inf

    def wait(self, now: float) -> float:
        """Seconds until there is at least one."""
        self._refill(now)
        missing = 1 - self._level
        return missing * _MINUTE_S / self.limit if missing > _ROUNDING else 0.0

    def spend(self, amount: int, now: float) -> None:
        """Take so many, also more than there are."""
        self._refill(now)
        self._level -= amount

    def told(self, now: float) -> RateLimit:
        """How it stands, in the API's words."""
        self._refill(now)
        reset = (self.limit - self._level) * _MINUTE_S / self.limit
        return RateLimit(name=self.name, limit=self.limit, remaining=max(0, math.floor(self._level)), reset_seconds=round(reset, 3))

    def _refill(self, now: float) -> None:
        gained = max(0.0, now - self._at) * self.limit / _MINUTE_S
        self._level = min(float(self.limit), self._level + gained)
        self._at = max(self._at, now)


class RateLimiter:
    """The limits of one deployment; one object for all of its sessions, without a clock of its own.

    Times are monotonic seconds. A response takes one request when it starts, and its tokens when it ends and says what it used: it starts
    while there is at least one token, and what it uses beyond the rest is paid off before the next one starts.
    """

    def __init__(self, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None) -> None:
        self._requests = None if requests_per_minute is None else _Bucket("requests", requests_per_minute)
        self._tokens = None if tokens_per_minute is None else _Bucket("tokens", tokens_per_minute)

    def refusal(self, now: float) -> str | None:
        """Say why no response may start, and when to try again; ``None`` if one may."""
        bucket = max(self._buckets, key=lambda each: each.wait(now), default=None)
        if bucket is None or not (seconds := bucket.wait(now)):
            return None
        rounded = math.ceil(seconds * 10) / 10
        return f"Rate limit reached for {bucket.name} per minute: limit {bucket.limit}. Please try again in {rounded:g} s."

    def start(self, now: float) -> None:
        """Take the request of a response that starts."""
        if self._requests is not None:
            self._requests.spend(1, now)

    def spend(self, tokens: int, now: float) -> None:
        """Take the tokens that a response has used."""
        if self._tokens is not None:
            self._tokens.spend(tokens, now)

    def told(self, now: float) -> tuple[RateLimit, ...]:
        """The limits as they stand."""
        return tuple(bucket.told(now) for bucket in self._buckets)

    @property
    def _buckets(self) -> tuple[_Bucket, ...]:
        return tuple(bucket for bucket in (self._requests, self._tokens) if bucket is not None)
