from __future__ import annotations

import asyncio
import wave
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

import omni_realtime_local
from omni_realtime.chat import ChatDelta, GenerateRequest, Samples, Turn
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import Engine, Transcriber

AUDIO = Path(__file__).parents[2] / "examples" / "audio"


@pytest.fixture(scope="session")
def deployment() -> Deployment:
    return Deployment(name="local-smollm2-135m", plugin="local")


@pytest.fixture(scope="session")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Runs a coroutine on the one loop that the loaded models belong to."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="session")
def engine(run: Callable[..., Any], deployment: Deployment) -> Iterator[Engine]:
    engine = omni_realtime_local.realtime_engine(deployment)
    run(engine.start())
    yield engine
    run(engine.close())


@pytest.fixture(scope="session")
def transcriber(run: Callable[..., Any], deployment: Deployment) -> Iterator[Transcriber]:
    transcriber = omni_realtime_local.realtime_transcriber(deployment)
    run(transcriber.start())
    yield transcriber
    run(transcriber.close())


@pytest.fixture(scope="session")
def recording() -> Callable[[str], Samples]:
    """A recording of ``examples/audio`` at 16 kHz."""

    def read(name: str) -> Samples:
        with wave.open(str(AUDIO / f"{name}.wav")) as file:
            assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
            pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return soxr.resample(pcm.astype(np.float32) / 32768, 24_000, 16_000)

    return read


class Answer:
    """All deltas of a generation, joined."""

    def __init__(self, deltas: list[ChatDelta]) -> None:
        calls = [delta.tool_call for delta in deltas if delta.tool_call is not None]
        self.deltas = deltas
        self.text = "".join(delta.text for delta in deltas)
        self.spoken = " ".join(delta.spoken for delta in deltas if delta.spoken)
        self.audio = [delta.audio for delta in deltas if delta.audio is not None]
        self.rates = {delta.rate for delta in deltas if delta.audio is not None}
        self.calls = [call.name for call in calls if call.name]
        self.arguments = "".join(call.arguments for call in calls)
        self.finish = deltas[-1].finish_reason
        self.usage = deltas[-1].usage


@pytest.fixture(scope="session")
def answer(engine: Engine, deployment: Deployment) -> Callable[..., Coroutine[Any, Any, Answer]]:
    """Generates the answer to a turn."""

    async def generate(turn: Turn, request_id: str = "r1") -> Answer:
        prompt = omni_realtime_local.realtime_build_prompt(turn, deployment)
        request = GenerateRequest(
            request_id=request_id, prompt=prompt, modalities=turn.modalities, max_output_tokens=turn.max_output_tokens
        )
        return Answer([delta async for delta in engine.generate(request)])

    return generate
