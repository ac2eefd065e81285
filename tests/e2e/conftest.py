"""The local model, served as `make serve` serves it, and a second listener for what it says."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterator

import pytest

import omni_realtime_local
from omni_realtime.audio import decode_pcm16, resample
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import TranscriptionRequest
from serving import MODEL, served


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [sys.executable, "-m", "omni_realtime_host", "serve", "deployments/local.yaml"]
    with served(command, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


@pytest.fixture(scope="session")
def write_down() -> Iterator[Callable[[bytes], str]]:
    """Write down PCM16 at 24 kHz, with the same Whisper that hears the user."""
    transcriber = omni_realtime_local.realtime_transcriber(Deployment(name=MODEL, plugin="local"))
    with asyncio.Runner() as runner:
        runner.run(transcriber.start())

        def transcribe(pcm: bytes) -> str:
            samples = resample(decode_pcm16(pcm), 24000, 16000)
            request = TranscriptionRequest(samples=samples, rate=16000, key=hashlib.sha256(pcm).hexdigest())
            return runner.run(transcriber.transcribe(request)).text

        yield transcribe
        runner.run(transcriber.close())
