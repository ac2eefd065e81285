"""Speech recognition: Whisper tiny.en on CTranslate2."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from omni_realtime.chat import Samples
from omni_realtime.engine.port import EngineError, TranscriptionRequest
from omni_realtime_local import runtime
from omni_realtime_local.settings import WhisperSettings
from omni_realtime_local.weights import WHISPER, verified

RATE = 16_000
REMEMBERED = 64
"""Transcripts kept; the engine and the session ask for the same audio within a turn or a few."""


class WhisperTranscriber:
    """Writes down English speech, one audio at a time, each only once.

    The engine and the session of a deployment share one instance: it loads at the first ``start`` and is freed at the last ``close``.
    """

    def __init__(self, settings: WhisperSettings) -> None:
        self._settings = settings
        self._users = 0
        self._loading = asyncio.Lock()
        self._model: Any = None
        self._thread: ThreadPoolExecutor | None = None
        self._answers: OrderedDict[tuple[str, str | None], asyncio.Future[str]] = OrderedDict()

    async def start(self) -> None:
        """Verify, load and warm the model, unless that is done."""
        async with self._loading:
            if self._model is None:
                thread = ThreadPoolExecutor(1, "whisper")
                try:
                    self._model = await asyncio.get_running_loop().run_in_executor(thread, self._load)
                except BaseException:
                    thread.shutdown(wait=False)
                    raise
                self._thread = thread
            self._users += 1

    async def close(self) -> None:
        """Free the model, if nobody else uses it."""
        async with self._loading:
            self._users = max(0, self._users - 1)
            if self._users or self._thread is None:
                return
            self._answers.clear()
            thread, self._thread, self._model = self._thread, None, None
            await asyncio.to_thread(thread.shutdown, cancel_futures=True)

    async def transcribe(self, request: TranscriptionRequest) -> str:
        """What was said, the empty string if nothing was; see :meth:`omni_realtime.engine.port.Transcriber.transcribe`."""
        if request.rate != RATE:
            raise EngineError(f"Whisper takes audio at {RATE} Hz, not {request.rate} Hz.")
        name = (request.key, request.prompt)
        answer = self._answers.get(name)
        if answer is None or answer.cancelled() or (answer.done() and answer.exception() is not None):
            answer = asyncio.ensure_future(self._run(request.samples, request.prompt))
            self._answers[name] = answer
        self._answers.move_to_end(name)
        while len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)
        return await asyncio.shield(answer)

    async def _run(self, samples: Samples, prompt: str | None) -> str:
        if self._thread is None:
            raise EngineError("The transcriber is not running.")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._hear, self._model, samples, prompt)
        except RuntimeError as error:
            raise EngineError("The audio could not be transcribed.") from error

    def _load(self) -> Any:
        folder = verified(self._settings.model_dir, WHISPER, "model")
        faster_whisper = runtime.load("faster_whisper")
        model = faster_whisper.WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=self._settings.threads, local_files_only=True
        )
        self._hear(model, np.zeros(RATE, np.float32), None)
        return model

    @staticmethod
    def _hear(model: Any, samples: Samples, prompt: str | None) -> str:
        if not samples.size:
            return ""
        segments, _ = model.transcribe(
            samples,
            language="en",
            beam_size=1,
            temperature=0.0,
            without_timestamps=True,
            condition_on_previous_text=False,
            initial_prompt=prompt,
        )
        return " ".join(segment.text.strip() for segment in segments).strip()


_shared: WeakValueDictionary[WhisperSettings, WhisperTranscriber] = WeakValueDictionary()


def shared_transcriber(settings: WhisperSettings) -> WhisperTranscriber:
    """The one transcriber of these settings in this process."""
    transcriber = _shared.get(settings)
    if transcriber is None:
        transcriber = _shared[settings] = WhisperTranscriber(settings)
    return transcriber
