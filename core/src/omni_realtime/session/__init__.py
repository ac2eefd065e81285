"""One session as a sans-IO state machine: events, deltas, detector answers and clock readings in, effects out."""

from __future__ import annotations

from omni_realtime.session.effects import CancelGeneration, Close, Count, Effect, Generate, Score, ScoreTurn, Send, Transcribe
from omni_realtime.session.rate_limits import RateLimiter
from omni_realtime.session.session import Session
from omni_realtime.session.settings import SessionLimits, SessionSettings

__all__ = [
    "CancelGeneration",
    "Close",
    "Count",
    "Effect",
    "Generate",
    "RateLimiter",
    "Score",
    "ScoreTurn",
    "Send",
    "Session",
    "SessionLimits",
    "SessionSettings",
    "Transcribe",
]
