"""Speech synthesis: Piper in a worker process.

The process is the boundary to Piper's licence (GPL-3.0-or-later), and keeps its work off this interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np

from omni_realtime.chat import Samples
from omni_realtime.engine.port import EngineDeadError, EngineError
from omni_realtime_local.check import voice_config
from omni_realtime_local.settings import PiperSettings
from omni_realtime_local.weights import JOE, verified
from omni_realtime_local.worker import Worker, WorkerDiedError

VOICE = "joe"
PACKAGED = "data/en_US-joe-medium.onnx"
DEATHS = 3
"""Workers in a row that die without having spoken a sentence, before the engine is given up."""

_log = logging.getLogger(__name__)


def voice_name(settings: PiperSettings) -> str:
    """What clients call the voice."""
    return VOICE if settings.model_file is None else settings.model_file.stem


def voice_rate(settings: PiperSettings) -> int:
    """The voice's rate in Hz, as its configuration says."""
    config = voice_config(settings.model_file or JOE.file(PACKAGED))
    return int(json.loads(config.read_text("utf-8"))["audio"]["sample_rate"])


class PiperSpeaker:
    """Speaks sentences, one at a time; a worker that died is replaced at the next sentence."""

    def __init__(self, settings: PiperSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._worker: Worker | None = None
        self._model: Path | None = None
        self._deaths = 0

    @property
    def rate(self) -> int:
        """The voice's rate in Hz; 0 before the first worker runs."""
        return 0 if self._worker is None else self._worker.rate

    async def start(self) -> None:
        """Verify the voice and start a worker."""
        self._model = await asyncio.to_thread(verified, self._settings.model_file, JOE, PACKAGED)
        self._worker = await self._spawn(self._model)

    async def close(self) -> None:
        """End the worker."""
        self._model = None
        if self._worker is not None:
            await self._worker.close()
            self._worker = None

    def check_health(self) -> None:
        """Return while there is a worker, or hope for one.

        Raises:
            EngineDeadError: once too many in a row have died.
        """
        if self._deaths >= DEATHS:
            raise EngineDeadError(f"The speech worker died {self._deaths} times in a row; see the server's log.")

    async def speak(self, text: str) -> AsyncGenerator[Samples, None]:
        """Speak a sentence.

        Yields:
            Float32 samples at the voice's rate; none where the text holds nothing to say.

        Raises:
            EngineError: if the worker dies or refuses; the next sentence gets a new one.
        """
        async with self._turn:
            worker = await self._living()
            try:
                async with contextlib.aclosing(worker.speak(text)) as chunks:
                    async for pcm in chunks:
                        yield np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32768)
            except WorkerDiedError as error:
                self._deaths += 1
                raise EngineError("The speech worker died in the middle of a sentence; the next response gets a new one.") from error
            self._deaths = 0

    async def _living(self) -> Worker:
        self.check_health()
        if self._model is None:
            raise EngineError("The speech synthesis is not running.")
        if self._worker is None or not self._worker.alive:
            _log.warning("the speech worker is gone: starting another")
            if self._worker is not None:
                await self._worker.close()
            try:
                self._worker = await self._spawn(self._model)
            except WorkerDiedError as error:
                self._deaths += 1
                raise EngineError("The speech worker could not be started.") from error
        return self._worker

    async def _spawn(self, model: Path) -> Worker:
        arguments = [str(model), str(voice_config(model)), str(self._settings.threads)]
        return await Worker.start(sys.executable, "-P", "-m", "omni_realtime_local.piper_worker", *arguments)
