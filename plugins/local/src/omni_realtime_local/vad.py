"""Speech detection: Silero VAD on onnxruntime, many streams in one run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omni_realtime_local import runtime
from omni_realtime_local.settings import SileroSettings
from omni_realtime_local.weights import SILERO, verified

RATE = 16_000
FRAME = 512
CONTEXT = 64


class SileroState(NamedTuple):
    """What the network remembers of one stream."""

    hidden: NDArray[np.float32]
    """Shape ``(2, 128)``."""
    context: NDArray[np.float32]
    """The last samples before the next frame, shape ``(64,)``."""


class SileroDetector:
    """A detector of speech in frames of 32 ms."""

    def __init__(self, settings: SileroSettings) -> None:
        self._settings = settings
        self._session: Any = None

    @property
    def rate(self) -> int:
        """16 kHz."""
        return RATE

    @property
    def frame_samples(self) -> int:
        """512 samples, 32 ms."""
        return FRAME

    async def start(self) -> None:
        """Verify and load the network."""
        self._session = await asyncio.to_thread(self._load)

    async def close(self) -> None:
        """Free the network."""
        self._session = None

    def initial_state(self) -> SileroState:
        """Silence so far."""
        return SileroState(np.zeros((2, 128), np.float32), np.zeros(CONTEXT, np.float32))

    def score(self, frames: NDArray[np.float32], states: Sequence[SileroState]) -> tuple[list[float], list[SileroState]]:
        """Score a frame for each stream in one run; see :meth:`omni_realtime.engine.port.Detector.score`."""
        if not states:
            return [], []
        context = np.stack([state.context for state in states])
        hidden = np.stack([state.hidden for state in states], axis=1)
        inputs = {"input": np.concatenate([context, frames], axis=1), "state": hidden, "sr": np.array(RATE, np.int64)}
        probabilities, following = self._session.run(None, inputs)
        tails = frames[:, -CONTEXT:].copy()
        return probabilities[:, 0].tolist(), [SileroState(following[:, i], tails[i]) for i in range(len(states))]

    def _load(self) -> Any:
        path = verified(self._settings.model_file, SILERO, "data/silero_vad.onnx")
        return runtime.onnx_session(path)
