from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from omni_realtime.engine.port import EngineError, TranscriptionRequest
from omni_realtime_local import asr
from omni_realtime_local.asr import WhisperTranscriber
from omni_realtime_local.settings import WhisperSettings


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the audios that a stand-in for Whisper has heard."""
    runs: list[int] = []

    def hear(model: Any, samples: np.ndarray, prompt: str | None) -> str:
        runs.append(samples.size)
        if samples.size == 13:
            raise RuntimeError("unlucky")
        return f"{samples.size} samples"

    monkeypatch.setattr(WhisperTranscriber, "_load", lambda self: object())
    monkeypatch.setattr(WhisperTranscriber, "_hear", staticmethod(hear))
    return runs


def request(key: str, size: int = 3, rate: int = 16_000) -> TranscriptionRequest:
    return TranscriptionRequest(samples=np.zeros(size, np.float32), rate=rate, key=key)


async def started() -> WhisperTranscriber:
    transcriber = WhisperTranscriber(WhisperSettings())
    await transcriber.start()
    return transcriber


def test_the_same_audio_is_heard_once(runs: list[int]) -> None:
    async def go() -> None:
        transcriber = await started()
        answers = await asyncio.gather(*(transcriber.transcribe(request("a")) for _ in range(5)))
        assert answers == ["3 samples"] * 5
        assert await transcriber.transcribe(request("a")) == "3 samples"
        assert runs == [3]
        await transcriber.close()

    asyncio.run(go())


def test_one_who_gives_up_does_not_take_the_answer_from_the_others(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def hear(model: Any, samples: np.ndarray, prompt: str | None) -> str:
        gate.wait(10)
        return "late"

    monkeypatch.setattr(WhisperTranscriber, "_hear", staticmethod(hear))

    async def go() -> None:
        transcriber = await started()
        first = asyncio.create_task(transcriber.transcribe(request("a")))
        second = asyncio.create_task(transcriber.transcribe(request("a")))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert await second == "late"
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


def test_another_rate_is_refused(runs: list[int]) -> None:
    async def go() -> None:
        transcriber = await started()
        with pytest.raises(EngineError, match="16000 Hz"):
            await transcriber.transcribe(request("a", rate=24_000))
        await transcriber.close()

    asyncio.run(go())


def test_the_model_lives_until_its_last_user_closes_it(runs: list[int]) -> None:
    async def go() -> None:
        transcriber = await started()
        await transcriber.start()
        await transcriber.close()
        assert await transcriber.transcribe(request("a")) == "3 samples"
        await transcriber.close()
        with pytest.raises(EngineError, match="not running"):
            await transcriber.transcribe(request("b"))

    asyncio.run(go())
