"""Speech recognition: Whisper tiny.en on CTranslate2."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from omni_realtime.audio import resample
from omni_realtime.engine.port import EngineError, TokenLogprob, Transcript, TranscriptionRequest
from omni_realtime_local import runtime
from omni_realtime_local.settings import WhisperSettings
from omni_realtime_local.weights import WHISPER, verified

RATE = 16_000
FRAMES_PER_SECOND = 100
WINDOW_FRAMES = 30 * FRAMES_PER_SECOND
"""What Whisper hears at once."""
REMEMBERED = 64
"""Transcripts kept; the engine and the session ask for the same audio within a turn or a few."""

_Name: TypeAlias = tuple[str, str | None, bool]
"""An audio's key, the prompt, and whether log probabilities were asked for."""


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
        self._answers: OrderedDict[_Name, asyncio.Future[Transcript]] = OrderedDict()

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

    async def transcribe(self, request: TranscriptionRequest) -> Transcript:
        """What was said, word by word if asked; see :meth:`omni_realtime.engine.port.Transcriber.transcribe`."""
        name = self._name(request)
        if not self._remembers(name):
            self._answers[name] = asyncio.ensure_future(self._run(request))
        self._answers.move_to_end(name)
        while len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)
        return await asyncio.shield(self._answers[name])

    def _name(self, request: TranscriptionRequest) -> _Name:
        """Name the answer to a request; one with log probabilities serves whoever needs none."""
        known = (request.key, request.prompt, True)
        return known if self._remembers(known) else (request.key, request.prompt, request.logprobs)

    def _remembers(self, name: _Name) -> bool:
        answer = self._answers.get(name)
        return answer is not None and not answer.cancelled() and not (answer.done() and answer.exception() is not None)

    async def _run(self, request: TranscriptionRequest) -> Transcript:
        if self._thread is None:
            raise EngineError("The transcriber is not running.")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._hear, self._model, request)
        except RuntimeError as error:
            raise EngineError("The audio could not be transcribed.") from error

    def _load(self) -> Any:
        folder = verified(self._settings.model_dir, WHISPER, "model")
        faster_whisper = runtime.load("faster_whisper")
        model = faster_whisper.WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=self._settings.threads, local_files_only=True
        )
        self._hear(model, TranscriptionRequest(samples=np.zeros(RATE, np.float32), rate=RATE, key=""))
        return model

    @staticmethod
    def _hear(model: Any, request: TranscriptionRequest) -> Transcript:
        samples = resample(request.samples, request.rate, RATE)
        if not samples.size:
            return Transcript(text="", logprobs=() if request.logprobs else None)
        found, _ = model.transcribe(
            samples,
            language="en",
            beam_size=1,
            temperature=0.0,
            without_timestamps=True,
            condition_on_previous_text=False,
            initial_prompt=request.prompt,
            word_timestamps=request.logprobs,
        )
        segments = list(_heard_once(found, samples.size))
        text = " ".join(segment.text.strip() for segment in segments).strip()
        return Transcript(text=text, logprobs=tuple(_logprobs(segments)) if request.logprobs else None)


def _heard_once(segments: Iterable[Any], samples: int) -> Iterable[Any]:
    """Leave out what follows the window that reached the end: with word timestamps, what is behind the last word is heard again."""
    for segment in segments:
        yield segment
        if segment.seek + WINDOW_FRAMES >= samples * FRAMES_PER_SECOND / RATE:
            return


def _logprobs(segments: Iterable[Any]) -> Iterable[TokenLogprob]:
    """One for each word, of the mean probability of its tokens."""
    first = True
    for word in (word for segment in segments for word in segment.words or ()):
        probability = max(float(word.probability), sys.float_info.min)
        yield TokenLogprob(token=word.word.lstrip() if first else word.word, logprob=min(math.log(probability), 0.0))
        first = False


_shared: WeakValueDictionary[WhisperSettings, WhisperTranscriber] = WeakValueDictionary()


def shared_transcriber(settings: WhisperSettings) -> WhisperTranscriber:
    """The one transcriber of these settings in this process."""
    transcriber = _shared.get(settings)
    if transcriber is None:
        transcriber = _shared[settings] = WhisperTranscriber(settings)
    return transcriber
