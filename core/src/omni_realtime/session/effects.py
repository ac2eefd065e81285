"""What the session asks of the host, as values.

The host carries out the effects of one call in their order. Answers come back as further calls of the session, in any order and at any
time, also after the session has lost interest in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from omni_realtime.chat import Samples, Turn
from omni_realtime.protocol.server_events import ServerEvent


@dataclass(frozen=True, slots=True)
class Send:
    """Send this event to the client."""

    event: ServerEvent


@dataclass(frozen=True, slots=True)
class Generate:
    """Start a generation; answered by ``Session.delta``, then ``generation_ended`` or ``generation_failed``."""

    response_id: str
    turn: Turn


@dataclass(frozen=True, slots=True)
class Count:
    """Count the tokens of a prompt without a trace; answered by ``Session.counted`` or ``count_failed``."""

    count_id: str
    """The response that waits for it, where one has been announced."""
    turn: Turn


@dataclass(frozen=True, slots=True)
class CancelGeneration:
    """Stop a generation, or the count before it, and free its work; no answer is needed."""

    response_id: str


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Score frames for speech; answered by ``Session.speech_scored`` with one probability per frame, epochs and frames in order.

    A new ``epoch`` is a new stream: its first frame is scored from the detector's initial state, and what is still unscored of an older one
    may be dropped.
    """

    epoch: int
    frames: Samples
    """Shape ``(n * frame_samples,)`` at the detector's rate, n >= 1."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTurn:
    """Score whether a turn is complete; answered by ``Session.turn_scored``, and with 0 where the scorer fails or is late.

    The session follows the detector no further until the answer has come. Of an older pause it needs none any more.
    """

    pause: int
    """Numbers the pauses that are scored."""
    samples: Samples
    """The turn up to now with its pause, at the scorer's rate, and at most what the scorer can judge by."""


@dataclass(frozen=True, slots=True, eq=False)
class Transcribe:
    """Write down a user item's audio; answered by ``Session.transcribed`` or ``transcription_failed``."""

    item_id: str
    key: str
    samples: Samples
    rate: int
    language: str | None
    prompt: str | None
    logprobs: bool


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection once everything before has been sent; ``code`` is a WebSocket close code."""

    code: int
    reason: str


Effect: TypeAlias = Send | Generate | Count | CancelGeneration | Score | ScoreTurn | Transcribe | Close
