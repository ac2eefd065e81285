"""An engine process that is killed amid a response, through a real socket: nothing hangs, and the host says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import psutil
import pytest
import websockets
from engine_host import EngineHost

Run = Callable[[Coroutine[Any, Any, None]], None]

NOTICED_S = 30.0


def engine_processes(stage: int) -> list[psutil.Process]:
    return [process for process in psutil.Process().children(recursive=True) if f"stage{stage}" in process.name().lower()]


@pytest.mark.kills_engine
def test_a_killed_engine_fails_what_runs_refuses_what_comes_and_turns_readiness_red(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client, httpx.AsyncClient(base_url=omni_host.url.removesuffix("/v1")) as http:
            await client.say("tell me a story")
            assert (await http.get("/ready")).status_code == 200
            await client.ask()
            await client.until("response.created")
            (process,) = engine_processes(stage=0)
            process.kill()
            failed = await asyncio.wait_for(client.until("response.done"), NOTICED_S)
            assert failed["response"]["status"] == "failed"
            following = await asyncio.wait_for(client.respond(), NOTICED_S)
            assert following.status == "failed"
            assert (await http.get("/ready")).status_code == 503
            with pytest.raises(websockets.InvalidStatus) as refusal:
                await omni_host.connect().__aenter__()
            assert refusal.value.response.status_code == 503

    run(scenario())
