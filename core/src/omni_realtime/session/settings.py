"""What a session is told about its deployment and its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omni_realtime.protocol import Capabilities
from omni_realtime.session.rate_limits import RateLimiter


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Bounds of one session; beyond them a client event is refused, or the oldest audio is let go."""

    input_buffer_bytes: int = 32 * 1024 * 1024
    """Audio that waits in the input buffer, in bytes of the input format."""
    conversation_audio_bytes: int = 256 * 1024 * 1024
    """Audio and images that the conversation keeps; beyond it the oldest items keep their text alone."""
    conversation_text_bytes: int = 16 * 1024 * 1024
    """Text that a client has in the conversation; beyond it new items of the client are refused."""
    conversation_items: int = 10_000
    """Items of the conversation; beyond it new items of the client are refused."""
    out_of_band_responses: int = 8
    """Responses with ``conversation: "none"`` that run at once."""
    duration_s: int = 3600
    """The session's life in seconds; it ends with ``session_expired``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """One deployment as its sessions see it; resolved once, shared by all of them."""

    model: str
    """The served name."""
    capabilities: Capabilities
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The deployment's partial session object."""
    input_rate: int = 16000
    """The rate in Hz at which the model takes audio."""
    detector_rate: int | None = None
    """The rate in Hz of the speech detector; ``None`` without one."""
    detector_frame: int | None = None
    """Samples of one frame of the speech detector."""
    scorer_rate: int | None = None
    """The rate in Hz of the turn scorer; ``None`` without one."""
    scorer_window: int | None = None
    """The most samples that the turn scorer can judge by."""
    context_window: int | None = None
    """Tokens that a prompt and its answer share; ``None`` if nothing is to be truncated."""
    on_active_response: Literal["refuse", "replace"] = "refuse"
    """What a ``response.create`` does while a response runs."""
    rate_limiter: RateLimiter | None = None
    """What all sessions of the deployment share; ``None`` for no limit."""
    limits: SessionLimits = field(default_factory=SessionLimits)
