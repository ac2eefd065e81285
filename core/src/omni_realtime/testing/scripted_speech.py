"""A speech detector, a turn scorer and a transcriber that do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from omni_realtime.chat import Samples
from omni_realtime.engine.port import Transcript, TranscriptionRequest

Said: TypeAlias = str | Transcript
"""A transcript; a string is one without log probabilities."""


def transcript_of(said: Said) -> Transcript:
    """The transcript that a test means."""
    return Transcript(text=said) if isinstance(said, str) else said


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


class ScriptedTurnScorer:
    """A :class:`~omni_realtime.engine.port.TurnScorer` that says what it is told.

    Args:
        probability: that a turn is complete, or a function of its samples.
        rate: in Hz.
        window_samples: how much of a turn it takes.

    Attributes:
        lengths: the samples of every turn that it was asked about, in order.
        started: ``start`` has returned.
        stopped: ``close`` has been called.
    """

    def __init__(self, probability: float | Callable[[Samples], float] = 1.0, *, rate: int = 16000, window_samples: int = 128_000) -> None:
        self.rate = rate
        self.window_samples = window_samples
        self.lengths: list[int] = []
        self.started = False
        self.stopped = False
        self._probability = probability

    async def start(self) -> None:
        """Take no time."""
        self.started = True

    async def close(self) -> None:
        """Take no time."""
        self.stopped = True

    def score(self, samples: Samples) -> float:
        """Say the probability.

        Raises:
            ValueError: if the samples are not those of the port.
        """
        if not 1 <= len(samples) <= self.window_samples or samples.dtype != np.float32:
            raise ValueError(f"{len(samples)} samples of {samples.dtype} for a window of {self.window_samples}")
        self.lengths.append(len(samples))
        return self._probability(samples) if callable(self._probability) else self._probability


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

    def __init__(self, transcript: Said | Exception | Callable[[TranscriptionRequest], Said] = "Hello.", *, seconds: float = 0.0) -> None:
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

    async def transcribe(self, request: TranscriptionRequest) -> Transcript:
        """Say the transcript."""
        self.requests.append(request)
        await asyncio.sleep(self._seconds)
        if isinstance(self._transcript, Exception):
            raise self._transcript
        return transcript_of(self._transcript(request) if callable(self._transcript) else self._transcript)
