from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from omni_realtime.engine.port import EngineError, Transcript, TranscriptionRequest
from omni_realtime_local import asr
from omni_realtime_local.asr import WhisperTranscriber
from omni_realtime_local.settings import WhisperSettings


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the audios that a stand-in for Whisper has heard."""
    runs: list[int] = []

    def hear(model: Any, request: TranscriptionRequest) -> Transcript:
        size = request.samples.size
        runs.append(size)
        if size == 13:
            raise RuntimeError("unlucky")
        return Transcript(text=f"{size} samples", logprobs=() if request.logprobs else None)

    monkeypatch.setattr(WhisperTranscriber, "_load", lambda self: object())
    monkeypatch.setattr(WhisperTranscriber, "_hear", staticmethod(hear))
    return runs


def request(key: str, size: int = 3, *, logprobs: bool = False) -> TranscriptionRequest:
    return TranscriptionRequest(samples=np.zeros(size, np.float32), rate=16_000, key=key, logprobs=logprobs)


async def started() -> WhisperTranscriber:
    transcriber = WhisperTranscriber(WhisperSettings())
    await transcriber.start()
    return transcriber


def test_the_same_audio_is_heard_once(runs: list[int]) -> None:
    async def go() -> None:
        transcriber = await started()
        answers = await asyncio.gather(*(transcriber.transcribe(request("a")) for _ in range(5)))
        assert answers == [Transcript(text="3 samples")] * 5
        assert (await transcriber.transcribe(request("a"))).text == "3 samples"
        assert runs == [3]
        await transcriber.close()

    asyncio.run(go())


def test_log_probabilities_are_made_for_who_asks_and_serve_who_does_not(runs: list[int]) -> None:
    async def go() -> None:
        transcriber = await started()
        assert (await transcriber.transcribe(request("a"))).logprobs is None
        asked = await transcriber.transcribe(request("a", logprobs=True))
        assert asked.logprobs == ()
        assert await transcriber.transcribe(request("a")) is asked
        assert runs == [3, 3]
        await transcriber.close()

    asyncio.run(go())


def test_one_who_gives_up_does_not_take_the_answer_from_the_others(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def hear(model: Any, request: TranscriptionRequest) -> Transcript:
        gate.wait(10)
        return Transcript(text="late")

    monkeypatch.setattr(WhisperTranscriber, "_hear", staticmethod(hear))

    async def go() -> None:
        transcriber = await started()
        first = asyncio.create_task(transcriber.transcribe(request("a")))
        second = asyncio.create_task(transcriber.transcribe(request("a")))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert (await second).text == "late"
        await transcriber.close()

    asyncio.run(go())


def test_a_failure_is_an_error_and_is_not_remembered(runs: list[int]) -> None:
    async def go() -> None:
        transcriber = await started()
        for _ in range(2):
            with pytest.raises(EngineError):
                await transcriber.transcribe(request("a", 13))
        assert runs == [13, 13]
        await transcriber.close()

    asyncio.run(go())


def test_old_answers_are_forgotten(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asr, "REMEMBERED", 2)

    async def go() -> None:
        transcriber = await started()
        for key in ("a", "b", "a", "c", "a", "b"):
            await transcriber.transcribe(request(key))
        assert len(runs) == 4
        await transcriber.close()

    asyncio.run(go())


def test_the_model_lives_until_its_last_user_closes_it(runs: list[int]) -> None:
    async def go() -> None:
        transcriber = await started()
        await transcriber.start()
        await transcriber.close()
        assert (await transcriber.transcribe(request("a"))).text == "3 samples"
        await transcriber.close()
        with pytest.raises(EngineError, match="not running"):
            await transcriber.transcribe(request("b"))

    asyncio.run(go())
