"""Ends of turns: smart-turn v3 on onnxruntime, which hears from the voice whether a speaker has finished."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from omni_realtime.chat import Samples
from omni_realtime_local import runtime
from omni_realtime_local.log_mel import RATE, log_mel
from omni_realtime_local.settings import SmartTurnSettings
from omni_realtime_local.weights import SMART_TURN, verified

WINDOW = 8 * RATE


class SmartTurnScorer:
    """A scorer of the last 8 s of a turn; some 50 ms of one core each."""

    def __init__(self, settings: SmartTurnSettings) -> None:
        self._settings = settings
        self._session: Any = None

    @property
    def rate(self) -> int:
        """16 kHz."""
        return RATE

    @property
    def window_samples(self) -> int:
        """128000 samples, 8 s."""
        return WINDOW

    async def start(self) -> None:
        """Verify, load and warm the network."""
        self._session = await asyncio.to_thread(self._load)
        await asyncio.to_thread(self.score, np.zeros(RATE, np.float32))

    async def close(self) -> None:
        """Free the network."""
        self._session = None

    def score(self, samples: Samples) -> float:
        """Score a turn; see :meth:`omni_realtime.engine.port.TurnScorer.score`. What is missing of 8 s is silence before it."""
        features = log_mel(np.pad(samples, (WINDOW - len(samples), 0)))
        (probabilities,) = self._session.run(None, {"input_features": features[None]})
        return float(probabilities[0, 0])

    def _load(self) -> Any:
        path = verified(self._settings.model_file, SMART_TURN, "audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx")
        return runtime.onnx_session(path)
