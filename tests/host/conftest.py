"""A host with a scripted model on a real socket, and a client whose every frame is checked."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pluggy
import pytest
import websockets

from omni_realtime import defaults, hookspecs
from omni_realtime.adapter import Adapter
from omni_realtime.deployment import Deployment
from omni_realtime.hookspecs import ResampleRates
from omni_realtime.plugins import Plugin
from omni_realtime.protocol import Capabilities
from omni_realtime.testing import ScriptedDetector, ScriptedEngine, ScriptedTranscriber, ScriptedTurnScorer, text_reply
from omni_realtime.testing.wire_log import WireLog
from omni_realtime_host.config_schema import Server
from omni_realtime_host.host import Host
from omni_realtime_host.served_model import ServedModel
from omni_realtime_host.server import listening, open_socket

WAIT_S = 30.0


class CheckedClient:
    """A WebSocket client that checks every frame it receives."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.log = WireLog()

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def receive(self) -> dict[str, Any]:
        frame = await asyncio.wait_for(self.socket.recv(), WAIT_S)
        assert isinstance(frame, str)
        return self.log.add(frame)

    async def until(self, kind: str) -> dict[str, Any]:
        while (event := await self.receive())["type"] != kind:
            assert event["type"] != "error" or kind == "error", event
        return event

    async def rest(self) -> None:
        """Receive until the server closes."""
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await self.receive()

    async def say(self, text: str, *, modality: str = "text") -> None:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self.send("conversation.item.create", item=item)
        await self.send("response.create", response={"output_modalities": [modality]})

    async def append(self, samples: np.ndarray, chunk: int = 960) -> None:
        """Append float samples at 24 kHz as PCM16, in chunks of 40 ms unless told otherwise."""
        pcm = (samples * 32767).astype("<i2").tobytes()
        for start in range(0, len(pcm), 2 * chunk):
            await self.send("input_audio_buffer.append", audio=base64.b64encode(pcm[start : start + 2 * chunk]).decode())


@dataclass
class Running:
    """A host that is up."""

    host: Host
    url: str
    engine: ScriptedEngine
    detector: ScriptedDetector | None
    transcriber: ScriptedTranscriber | None
    start: Callable[[], Coroutine[Any, Any, None]]
    logs: list[WireLog] = field(default_factory=list)

    @property
    def http(self) -> str:
        return self.url.replace("ws", "http", 1).removesuffix("/v1/realtime")

    @contextlib.asynccontextmanager
    async def connect(self, query: str = "", **options: Any) -> AsyncIterator[CheckedClient]:
        async with websockets.connect(self.url + query, compression=None, max_size=None, **options) as socket:
            client = CheckedClient(socket)
            self.logs.append(client.log)
            await client.until("session.created")
            yield client


def make_adapter(
    engine: ScriptedEngine,
    *,
    name: str = "scripted",
    detector: ScriptedDetector | None = None,
    turn_scorer: ScriptedTurnScorer | None = None,
    transcriber: ScriptedTranscriber | None = None,
    session: dict[str, Any] | None = None,
) -> Adapter:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(defaults)
    capabilities = Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        turn_detection=(*(("server_vad",) if detector else ()), *(("semantic_vad",) if turn_scorer else ())),
        transcription_models=("scripted",) if transcriber else (),
        tools=True,
    )
    return Adapter(
        deployment=Deployment(name=name, plugin="scripted", session=session or {}),
        plugin=Plugin(name="scripted", distribution="scripted-plugin", version="1.0", hooks=(), hook=manager.hook),
        capabilities=capabilities,
        rates=ResampleRates(input=16000, output=24000),
        engine=engine,
        detector=detector,
        turn_scorer=turn_scorer,
        transcriber=transcriber,
    )


@contextlib.asynccontextmanager
async def _serve(
    *scripts: Any,
    engine: ScriptedEngine | None = None,
    detector: ScriptedDetector | None = None,
    turn_scorer: ScriptedTurnScorer | None = None,
    transcriber: ScriptedTranscriber | None = None,
    session: dict[str, Any] | None = None,
    server: dict[str, Any] | None = None,
    more: tuple[Adapter, ...] = (),
    started: bool = True,
) -> AsyncIterator[Running]:
    engine = engine or ScriptedEngine(*(scripts or (text_reply("Hello."),)))
    adapter = make_adapter(engine, detector=detector, turn_scorer=turn_scorer, transcriber=transcriber, session=session)
    settings = Server.model_validate({"port": 0, **(server or {})})
    host = Host([ServedModel(each, settings.limits) for each in (adapter, *more)], settings)
    listener = open_socket(settings)
    scheme = "wss" if settings.tls else "ws"
    url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v1/realtime"
    running = Running(host, url, engine, detector, transcriber, host.start)
    try:
        if started:
            await host.start()
        async with listening(settings, host, listener):
            try:
                yield running
            finally:
                await asyncio.wait_for(host.drain(), WAIT_S)
                await host.end()
    finally:
        await host.close()


@pytest.fixture
def serve() -> Callable[..., contextlib.AbstractAsyncContextManager[Running]]:
    """``async with serve(*scripts, ...) as running``: a host on a free port of this event loop."""
    return _serve


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """The files of a certificate for 127.0.0.1 and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


@pytest.fixture
def adapter() -> Callable[..., Adapter]:
    """Make a scripted deployment."""
    return make_adapter


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, None]], None]:
    """Run a test's coroutine, and fail if it hangs or leaves a task behind."""

    def run_all(test: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test, 60)
            for _ in range(20):
                left = asyncio.all_tasks() - {asyncio.current_task()}
                if not left:
                    return
                await asyncio.sleep(0.05)
            raise AssertionError(f"tasks were left behind: {left}")

        asyncio.run(bounded())

    return run_all


@pytest.fixture
def eventually() -> Callable[..., Coroutine[Any, Any, None]]:
    """Wait until a condition holds; a second is long enough unless told otherwise."""

    async def wait(condition: Callable[[], object], seconds: float = 1.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - the conditions are those of code that has no event for a test
                await asyncio.sleep(0.005)

    return wait
