"""Turn scoring off the event loop: one worker thread per deployment, apart from the speech detector's, scores one pause after another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from omni_realtime.chat import Samples
from omni_realtime.engine.port import TurnScorer
from omni_realtime_host.failure_log import log_failure

logger = logging.getLogger(__name__)

ANSWER_S = 1.5
"""How long a scorer may take, waiting included: less than any silence that ends a turn whatever the score."""

Answer: TypeAlias = Callable[[int, float], None]
"""Takes a pause and the probability that its turn is complete."""


class TurnScoringStream:
    """The pauses of one session, of which only the last is of interest; made by :meth:`TurnScoringService.open`."""

    def __init__(self, service: TurnScoringService, name: str, answer: Answer) -> None:
        self._service = service
        self._name = name
        self._answer = answer
        self._task: asyncio.Task[None] | None = None
        self._has_failed = False

    def score(self, pause: int, samples: Samples) -> None:
        """Have a pause scored in its turn, and let go of an older one that still waits."""
        self.close()
        self._task = asyncio.create_task(self._score(pause, samples))

    def close(self) -> None:
        """Want no answer any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _score(self, pause: int, samples: Samples) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                probability = await self._service.score(samples)
        except Exception as error:  # noqa: BLE001 - a plugin's code may raise anything
            if not self._has_failed:
                log_failure(logger, f"{self._name}: the turn scorer", error)
            self._has_failed = True
            probability = 0.0
        self._task = None
        self._answer(pause, probability)


class TurnScoringService:
    """Scores the pauses of many sessions in the order in which they come."""

    def __init__(self, scorer: TurnScorer) -> None:
        self._scorer = scorer
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="turn-scorer")

    async def close(self) -> None:
        """Stop scoring; the scorer may be closed then."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    def open(self, name: str, answer: Answer) -> TurnScoringStream:
        """Add a session; ``answer`` is called on the event loop, with 0 where the scorer fails or is late: logged once, under ``name``."""
        return TurnScoringStream(self, name, answer)

    async def score(self, samples: Samples) -> float:
        """Score one turn; cancelled while it waits, it is not scored at all.

        Raises:
            Exception: whatever the scorer raises.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, _score, self._scorer, samples)


def _score(scorer: TurnScorer, samples: Samples) -> float:
    return float(scorer.score(samples))
