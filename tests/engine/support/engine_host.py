"""A host with one omni model on the real engine, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from omni_models import OmniModel
from raw_outputs import RawOutputs, RecordingOmni
from realtime_client import RealtimeClient
from vllm_omni.entrypoints import async_omni

from omni_realtime.adapter import Adapter, check_deployment, resolve
from omni_realtime.plugins import load_plugin
from omni_realtime_host.config_schema import Server
from omni_realtime_host.host import Host
from omni_realtime_host.served_model import ServedModel
from omni_realtime_host.server import listening, open_socket

START_S = 400.0
FREED_S = 1.0
"""How soon the engine's work is freed after its client is gone."""


class EngineHost:
    """A running host.

    Attributes:
        model: what is different about the model.
        adapter: the deployment that it serves.
        host: its host object.
        url: what a client's ``base_url`` is.
        omni: the engine itself.
    """

    def __init__(self, model: OmniModel, adapter: Adapter, host: Host, url: str, omni: RecordingOmni) -> None:
        self.model = model
        self.adapter = adapter
        self.host = host
        self.url = url
        self.omni = omni

    @contextlib.asynccontextmanager
    async def connect(self, **session: Any) -> AsyncIterator[RealtimeClient]:
        """Open a session through the official client, and check every event of it; update the session if ``session`` says what."""
        async with RealtimeClient.connect(self.url, self.adapter.deployment.name) as client:
            if session:
                await client.update(session)
            yield client

    def raw(self, response_id: str) -> RawOutputs:
        """Return what the engine itself gave for a response."""
        return self.omni.raw[response_id]

    async def stage_loads(self) -> list[dict[str, int]]:
        """Ask each stage's scheduler how many requests it has (``running``), and had since it started (``ever``)."""
        answers = await self.omni.collective_rpc("scheduler_load", timeout=30)
        return [answer[0] if isinstance(answer, list) else answer for answer in answers]

    async def running_requests(self) -> int:
        """Return how many requests AsyncOmni and its stages have, in all."""
        loads = await self.stage_loads()
        return len(self.omni.request_states) + sum(load["running"] for load in loads)

    async def freed(self, within_s: float = FREED_S) -> None:
        """Wait until nothing runs.

        Raises:
            AssertionError: if something still runs ``within_s`` from now.
        """
        deadline = time.monotonic() + within_s
        while (asked := time.monotonic()) and await self.running_requests():
            assert asked < deadline, (
                f"after {within_s} s the engine still runs {list(self.omni.request_states)}, {await self.stage_loads()}"
            )
            await asyncio.sleep(0.02)


@contextlib.contextmanager
def serving(model: OmniModel, checkpoints: Path) -> Iterator[EngineHost]:
    """Start a host with the model's tiny checkpoint, as the command line would, and stop it cleanly in the end."""
    deployment = model.deployment(model.make_checkpoint(checkpoints))
    problems = check_deployment(deployment)
    assert not problems, problems
    adapter = resolve(deployment, load_plugin(deployment.plugin))
    with _loop_in_a_thread() as run:
        lifetime = _running(model, adapter)
        host = run(lifetime.__aenter__())
        try:
            yield host
        finally:
            run(lifetime.__aexit__(None, None, None))


@contextlib.contextmanager
def _loop_in_a_thread() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="host")
    thread.start()
    try:
        yield lambda coroutine: asyncio.run_coroutine_threadsafe(coroutine, loop).result(START_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.asynccontextmanager
async def _running(model: OmniModel, adapter: Adapter) -> AsyncIterator[EngineHost]:
    server = Server(port=0)
    host = Host([ServedModel(adapter, server.limits)], server)
    made: list[RecordingOmni] = []

    class TheOmni(RecordingOmni):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            made.append(self)
            super().__init__(*args, **kwargs)

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(async_omni, "AsyncOmni", TheOmni)
            await host.start()
        listener = open_socket(server)
        async with listening(server, host, listener):
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            yield EngineHost(model, adapter, host, url, made[0])
            await host.drain()
    finally:
        await host.close()
