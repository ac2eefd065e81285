"""A speech detector and a transcriber that do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from omni_realtime.chat import Samples
from omni_realtime.engine.port import TranscriptionRequest


def loudness(frame: Samples) -> float:
    """0.99 for a frame whose root mean square is above 0.01, else 0.01."""
    return 0.99 if float(np.sqrt(np.mean(np.square(frame)))) > 0.01 else 0.01  # noqa: PLR2004 - the docstring names it


class ScriptedDetector:
    """A :class:`~omni_realtime.engine.port.Detector` that asks a function for each frame's probability.

    A stream's state is the number of its frames so far.

    Args:
        probability: of one frame, shape ``(frame_samples,)``.
        rate: in Hz.
        frame_samples: samples of a frame.

    Attributes:
        batches: the number of streams of every ``score``, in order.
        started: ``start`` has returned.
        stopped: ``close`` has been called.
    """

    def __init__(self, probability: Callable[[Samples], float] = loudness, *, rate: int = 16000, frame_samples: int = 512) -> None:
        self.rate = rate
        self.frame_samples = frame_samples
        self.batches: list[int] = []
        self.started = False
        self.stopped = False
        self._probability = probability

    async def start(self) -> None:
        """Take no time."""
        self.started = True

    async def close(self) -> None:
        """Take no time."""
        self.stopped = True

    def initial_state(self) -> int:
        """No frame so far."""
        return 0

    def score(self, frames: NDArray[np.float32], states: Sequence[int]) -> tuple[list[float], list[int]]:
        """Ask ``probability`` for every frame.

        Raises:
            ValueError: if the shapes are not those of the port.
        """
        if frames.shape != (len(states), self.frame_samples) or frames.dtype != np.float32:
            raise ValueError(f"{frames.dtype} frames of shape {frames.shape} for {len(states)} streams of {self.frame_samples} samples")
        self.batches.append(len(states))
        return [self._probability(frame) for frame in frames], [state + 1 for state in states]


class ScriptedTranscriber:
    """A :class:`~omni_realtime.engine.port.Transcriber` that says what it is told.

    Args:
        transcript: of every request, or a function of the request; an exception is raised.
        seconds: how long each takes.

    Attributes:
        requests: every request, in order.
        started: ``start`` has returned.
        stopped: ``close`` has been called.
    """

    def __init__(self, transcript: str | Exception | Callable[[TranscriptionRequest], str] = "Hello.", *, seconds: float = 0.0) -> None:
        self.requests: list[TranscriptionRequest] = []
        self.started = False
        self.stopped = False
        self._transcript = transcript
        self._seconds = seconds

    async def start(self) -> None:
        """Take no time."""
        self.started = True

    async def close(self) -> None:
        """Take no time."""
        self.stopped = True

    async def transcribe(self, request: TranscriptionRequest) -> str:
        """Say the transcript."""
        self.requests.append(request)
        await asyncio.sleep(self._seconds)
        if isinstance(self._transcript, Exception):
            raise self._transcript
        return self._transcript(request) if callable(self._transcript) else self._transcript
