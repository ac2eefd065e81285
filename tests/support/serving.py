"""A served local model in a process of its own, as `make serve` starts it, and the official client whose every frame is checked."""

from __future__ import annotations

import contextlib
import difflib
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
import wave
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeServerEvent

from omni_realtime.testing.wire_log import WireLog

ROOT = Path(__file__).resolve().parents[2]
MODEL = "local-smollm2-135m"
READY_S = 180


@contextlib.contextmanager
def served(command: Sequence[str], log: Path, *, ca_file: Path | None = None) -> Iterator[str]:
    """Run a server until it is ready, over TLS where ``ca_file`` is its certificate; it must end with status 0 on SIGTERM."""
    scheme, trust = ("https", ssl.create_default_context(cafile=ca_file)) if ca_file else ("http", None)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with log.open("wb") as output:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        process = subprocess.Popen([*command, "--port", str(port)], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        _wait_until_ready(process, f"{scheme}://127.0.0.1:{port}/ready", log, trust)
        yield f"{scheme}://127.0.0.1:{port}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path, trust: ssl.SSLContext | None) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5, context=trust) as answer:  # noqa: S310 - loopback
            if answer.status == 200:
                return
        time.sleep(0.2)
    pytest.fail(f"not ready within {READY_S} s: {log.read_text()}")


class Talk:
    """The official client's connection, with a check on every frame."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.log = WireLog()

    async def next(self) -> RealtimeServerEvent:
        frame = await self.connection.recv_bytes()
        self.log.add(frame.decode())
        return self.connection.parse_event(frame)

    async def until(self, *kinds: str) -> list[RealtimeServerEvent]:
        """Receive until each of these events has come."""
        events, missing = [], set(kinds)
        while missing:
            events.append(await self.next())
            assert events[-1].type != "error" or "error" in kinds, events[-1]
            missing.discard(events[-1].type)
        return events


@asynccontextmanager
async def talk(url: str, model: str = MODEL, **query: object) -> AsyncIterator[Talk]:
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    async with client, client.realtime.connect(model=model, extra_query=query) as connection:
        yield Talk(connection)


def recording(name: str) -> bytes:
    """PCM16 at 24 kHz of a recording in examples/audio."""
    with wave.open(str(ROOT / "examples" / "audio" / f"{name}.wav")) as file:
        pcm: bytes = file.readframes(file.getnframes())
        return pcm


def likeness(one: str, other: str) -> float:
    """1 for the same letters and digits."""
    return difflib.SequenceMatcher(None, *("".join(filter(str.isalnum, text.lower())) for text in (one, other)), autojunk=False).ratio()
