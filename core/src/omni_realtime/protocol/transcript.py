"""What a transcriber says of the user's audio."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One token of a transcript, or one word with the white space before it, and how sure the transcriber is of it."""

    token: str
    logprob: float
    """The natural logarithm of its probability: finite, and at most 0."""

    def __post_init__(self) -> None:
        if not -math.inf < self.logprob <= 0:
            raise ValueError(f"a log probability is finite and at most 0, not {self.logprob}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was said; the empty text if nothing was."""

    text: str
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The tokens of the text, joined the text itself; ``None`` where they were not asked for or are not known."""
