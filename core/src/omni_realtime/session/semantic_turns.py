"""Semantic VAD as pure logic: a turn ends at a pause that sounds like its end, or after a long silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omni_realtime.protocol import SemanticVad, ServerVad

SCORED_MS: Final = 200
"""How long a pause is when it is scored; turn models are trained on such."""
DECIDED_MS: Final = 300
"""How long a pause is when its score counts. Who speaks on before has not paused, and the scorer has this time for its answer."""

MAX_WAIT_MS: Final = {"low": 8000, "medium": 4000, "auto": 4000, "high": 2000}
"""By eagerness, how long a silence ends the turn in any case."""
COMPLETE: Final = {"low": 0.8, "medium": 0.5, "auto": 0.5, "high": 0.3}
"""By eagerness, the probability from which a turn is complete."""


def speech_rules(vad: SemanticVad) -> ServerVad:
    """Return how speech is found and ends at the latest: as by the API's default server VAD, but for the silence."""
    return ServerVad(
        silence_duration_ms=MAX_WAIT_MS[vad.eagerness], create_response=vad.create_response, interrupt_response=vad.interrupt_response
    )


@dataclass(slots=True)
class Pause:
    """A pause amid a speech, and its score once that is known."""

    number: int
    probability: float | None = None

    def ends_turn(self, silence_ms: float, vad: SemanticVad) -> bool:
        """Say whether the pause, as long as it is now, ends the turn."""
        return silence_ms >= DECIDED_MS and self.probability is not None and self.probability >= COMPLETE[vad.eagerness]

    def undecided(self, silence_ms: float) -> bool:
        """Say whether nothing can be said of what follows before the score is known."""
        return silence_ms >= DECIDED_MS and self.probability is None
