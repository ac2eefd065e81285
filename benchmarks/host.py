"""What a session costs beside its floor: the same frames, sent by a bare WebSocket app on the same server; prints ratios.

A scripted model answers each of N sessions with 100 ms audio deltas as fast as they are taken. Host and floor run in one process of their
own and are measured in turns; the processor time is that of their process. The floor sends many frames in one system call, which no model
that speaks delta by delta can.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection

import httpx
import numpy as np
import pluggy
import uvicorn
import uvloop
import websockets
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from omni_realtime import defaults, hookspecs
from omni_realtime.adapter import Adapter
from omni_realtime.chat import ChatDelta
from omni_realtime.deployment import Deployment
from omni_realtime.hookspecs import ResampleRates
from omni_realtime.plugins import Plugin
from omni_realtime.protocol import Capabilities, encode
from omni_realtime.protocol.server_events import ResponseOutputAudioDelta
from omni_realtime.testing import ScriptedEngine
from omni_realtime_host.app import create_app
from omni_realtime_host.config_schema import Server
from omni_realtime_host.host import Host
from omni_realtime_host.served_model import ServedModel

DELTAS = 200
DELTA = np.zeros(2400, np.float32)
ROUNDS = 3
END = ".done"


def frames() -> list[str]:
    """The bytes of a response, without the work of making them."""
    where = {"response_id": "resp_0123456789ab1", "item_id": "item_0123456789ab2", "output_index": 0, "content_index": 0}
    delta = encode(ResponseOutputAudioDelta(event_id="event_0123456789ab3", delta=bytes(4800), **where))
    return [delta] * DELTAS + [f'{{"type":"response{END}"}}']


async def floor(websocket: WebSocket) -> None:
    prepared = frames()
    await websocket.accept()
    await websocket.send_text("{}")
    async for _request in websocket.iter_text():
        for frame in prepared:
            await websocket.send_text(frame)


async def processor_time(_request: Request) -> JSONResponse:
    return JSONResponse(time.process_time())


def scripted() -> Adapter:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(defaults)
    script = [*(ChatDelta(audio=DELTA, rate=24000) for _ in range(DELTAS)), ChatDelta(finish_reason="stop")]
    return Adapter(
        deployment=Deployment(name="scripted", plugin="scripted"),
        plugin=Plugin(name="scripted", distribution="scripted", version="1", hooks=(), hook=manager.hook),
        capabilities=Capabilities(output_modalities=("audio", "text"), audio_input=True),
        rates=ResampleRates(input=16000, output=24000),
        engine=ScriptedEngine(script),
        detector=None,
        transcriber=None,
    )


def serve(ports: Connection) -> None:
    async def run() -> None:
        server = Server()
        host = Host([ServedModel(scripted(), server.limits)], server)
        await host.start()
        bare = Starlette(routes=[WebSocketRoute("/", floor), Route("/cpu", processor_time)])
        options = {"port": 0, "ws": "websockets-sansio", "lifespan": "off", "log_level": "error", "ws_per_message_deflate": False}
        servers = [uvicorn.Server(uvicorn.Config(app, **options)) for app in (create_app(host), bare)]
        serving = [asyncio.create_task(each.serve()) for each in servers]
        while not all(each.started for each in servers):  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        ports.send([each.servers[0].sockets[0].getsockname()[1] for each in servers])
        await asyncio.gather(*serving)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def measure(url: str, cpu: str, sessions: int) -> tuple[float, float, float]:
    """Return wall seconds, the server's processor seconds, and the slowest session's seconds to its first delta."""
    sockets = [await websockets.connect(url, compression=None) for _ in range(sessions)]
    for socket in sockets:
        await socket.recv()
    first: list[float] = []

    async def respond(socket: websockets.ClientConnection) -> None:
        await socket.send('{"type":"response.create"}')
        heard = False
        while f'"response{END}"' not in (frame := (await socket.recv())[:40]):
            if not heard and "audio.delta" in frame:
                heard = True
                first.append(time.perf_counter() - begin)

    cpu_begin, begin = await fetch(cpu), time.perf_counter()
    await asyncio.gather(*map(respond, sockets))
    wall = time.perf_counter() - begin
    used = await fetch(cpu) - cpu_begin
    for socket in sockets:
        await socket.close()
    return wall, used, max(first)


async def fetch(url: str) -> float:
    async with httpx.AsyncClient() as client:
        return float((await client.get(url)).json())


async def main(host_port: int, floor_port: int) -> None:
    urls = {"host": f"ws://127.0.0.1:{host_port}/v1/realtime", "floor": f"ws://127.0.0.1:{floor_port}/"}
    alone = 0.0
    for sessions in (1, 8, 32):
        best: dict[str, tuple[float, ...]] = {}
        for _ in range(ROUNDS):
            for name, url in urls.items():
                found = await measure(url, f"http://127.0.0.1:{floor_port}/cpu", sessions)
                best[name] = tuple(map(min, found, best.get(name, found)))
        (wall, used, first), (floor_wall, floor_used, _) = best["host"], best["floor"]
        alone = alone or first
        speech = sessions * DELTAS * len(DELTA) / 24000
        print(
            f"{sessions:3} sessions x {DELTAS} deltas: wall {wall / floor_wall:.1f}x the floor, processor {used / floor_used:.1f}x; "
            f"the last session's first delta after {first / alone:.1f}x the time of one alone; {speech / wall:,.0f} s of speech a second"
        )


if __name__ == "__main__":
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        asyncio.run(main(*here.recv()))
    finally:
        process.terminate()
        process.join()
