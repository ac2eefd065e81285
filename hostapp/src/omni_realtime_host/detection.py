"""Speech detection off the event loop: one worker thread per deployment scores the frames of all its sessions in batches."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omni_realtime.chat import Samples
from omni_realtime.engine.port import Detector
from omni_realtime_host.failure_log import log_failure

logger = logging.getLogger(__name__)

ROUNDS = 16
"""Frames of one stream that are scored before the others have their turn again; half a second of audio with 32 ms frames."""

Answer: TypeAlias = Callable[[int, Sequence[float]], None]
"""Takes an epoch and the probabilities of its next frames."""


class DetectionStream:
    """The frames of one session; made by :meth:`DetectionService.open`."""

    def __init__(self, service: DetectionService, initial_state: Any, answer: Answer, fail: Callable[[], None]) -> None:
        self.state = initial_state
        self.answer = answer
        self.fail = fail
        self.epoch = -1
        self.pending: deque[Samples] = deque()
        self._service = service

    def score(self, epoch: int, frames: Samples) -> None:
        """Queue whole frames; a new epoch is a new stream, and drops what is unscored of the older one."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.pending.clear()
            self.state = self._service.initial_state()
        size = self._service.frame_samples
        self.pending.extend(frames[start : start + size] for start in range(0, len(frames), size))
        self._service.wake()

    def close(self) -> None:
        """Drop what is unscored."""
        self.pending.clear()
        self._service.forget(self)


class DetectionService:
    """Scores the frames of many streams, one frame of each in a call of the detector."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._streams: set[DetectionStream] = set()
        self._wanted = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="speech-detector")
        self._task: asyncio.Task[None] | None = None
        self.failure: BaseException | None = None

    @property
    def frame_samples(self) -> int:
        """Samples of one frame."""
        return self._detector.frame_samples

    def initial_state(self) -> Any:
        """Return the state of a stream before its first frame."""
        return self._detector.initial_state()

    def start(self) -> None:
        """Begin to score; the detector has started."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop scoring; the detector may be closed then."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.to_thread(self._thread.shutdown)

    def open(self, answer: Answer, fail: Callable[[], None]) -> DetectionStream:
        """Add a stream; ``answer`` gets its probabilities and ``fail`` is called once if the detector breaks, both on the event loop."""
        stream = DetectionStream(self, self.initial_state(), answer, fail)
        self._streams.add(stream)
        return stream

    def forget(self, stream: DetectionStream) -> None:
        """Remove a closed stream."""
        self._streams.discard(stream)

    def wake(self) -> None:
        """Say that a stream has frames."""
        self._wanted.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while batch := [_Work(stream) for stream in self._streams if stream.pending]:
                try:
                    await loop.run_in_executor(self._thread, _score, self._detector, batch)
                except Exception as error:  # noqa: BLE001 - a plugin's code may raise anything
                    self._fail(error)
                    return
                for work in batch:
                    work.deliver()

    def _fail(self, error: Exception) -> None:
        log_failure(logger, "the speech detector", error)
        self.failure = error
        for stream in tuple(self._streams):
            stream.fail()


class _Work:
    """Some frames of one stream on their way through the thread."""

    def __init__(self, stream: DetectionStream) -> None:
        self._stream = stream
        self._epoch = stream.epoch
        self.frames = [stream.pending.popleft() for _ in range(min(ROUNDS, len(stream.pending)))]
        self.state = stream.state
        self.probabilities: list[float] = []

    def deliver(self) -> None:
        if self._stream.epoch == self._epoch:
            self._stream.state = self.state
            self._stream.answer(self._epoch, self.probabilities)


def _score(detector: Detector, batch: Sequence[_Work]) -> None:
    for round_ in range(ROUNDS):
        active = [work for work in batch if round_ < len(work.frames)]
        if not active:
            return
        frames: NDArray[np.float32] = np.stack([work.frames[round_] for work in active])
        probabilities, states = detector.score(frames, [work.state for work in active])
        for work, probability, state in zip(active, probabilities, states, strict=True):
            work.probabilities.append(float(probability))
            work.state = state
