"""A real HTTP server that answers chat completions as it is told, and engines that talk to it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from omni_realtime.engine.chat_completions import ChatCompletionsEngine, read_settings

Step = bytes | float
WAIT_S = 10.0


class ChatServer:
    """Answers completions with the scripts of ``answers``, in turn, the last one ever after.

    A script is a ``Response``, or the pieces of a stream of events: bytes to send, seconds to wait. A stream ends with its pieces; one
    that ends with ``drop`` breaks the connection instead.
    """

    drop = b"drop the connection"

    def __init__(self) -> None:
        self.url = ""
        self.reset()

    def reset(self) -> None:
        self.answers: list[Response | list[Step]] = []
        self.models: Response = JSONResponse({"data": [{"id": "tiny", "max_model_len": 2048}]})
        self.tokenize: Callable[[dict[str, Any]], Response] = lambda _: Response(status_code=404)
        self.health_status = 200
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.running = 0
        self.connections: set[tuple[str, int]] = set()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", lambda _: self.models),
                Route("/health", lambda _: Response(status_code=self.health_status)),
                Route("/tokenize", self._tokenize, methods=["POST"]),
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
            ]
        )

    async def _tokenize(self, request: Request) -> Response:
        return self.tokenize(json.loads(await request.body()))

    async def _complete(self, request: Request) -> Response:
        try:
            self.bodies.append(json.loads(await request.body()))
        except ClientDisconnect:
            return Response()
        self.headers.append(dict(request.headers))
        assert request.client
        self.connections.add(tuple(request.client))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Response) else StreamingResponse(self._play(answer), media_type="text/event-stream")

    async def _play(self, steps: list[Step]) -> AsyncIterator[bytes]:
        self.running += 1
        try:
            for step in steps:
                if step is self.drop:
                    raise ConnectionResetError
                if isinstance(step, bytes):
                    yield step
                await asyncio.sleep(step if isinstance(step, float) else 0)
        finally:
            self.running -= 1


@pytest.fixture(scope="session")
def _chat_server() -> Iterator[ChatServer]:
    server = ChatServer()
    listener = socket.create_server(("127.0.0.1", 0))
    server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    uvicorn_server = uvicorn.Server(uvicorn.Config(server.app(), log_level="critical", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=uvicorn_server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield server
    uvicorn_server.should_exit = True
    thread.join()


@pytest.fixture
def server(_chat_server: ChatServer) -> ChatServer:
    _chat_server.reset()
    return _chat_server


@pytest.fixture
def connect(server):
    """A started engine that talks to the server."""

    @asynccontextmanager
    async def connect(**settings: Any) -> AsyncIterator[ChatCompletionsEngine]:
        section = {"type": "chat_completions", "base_url": f"{server.url}/v1", "model": "tiny", **settings}
        engine = ChatCompletionsEngine(read_settings(section))
        await engine.start()
        try:
            yield engine
        finally:
            await engine.close()

    return connect


@pytest.fixture
def run() -> Callable[[Callable[[], Coroutine[Any, Any, None]]], None]:
    """Run an asynchronous test; one that hangs fails."""
    return lambda test: asyncio.run(asyncio.wait_for(test(), 6 * WAIT_S))


@pytest.fixture
def talk(connect, run) -> Callable[..., None]:
    """Run an asynchronous test with an engine of some settings."""

    def talk(test: Callable[[ChatCompletionsEngine], Awaitable[None]], **settings: Any) -> None:
        async def with_engine() -> None:
            async with connect(**settings) as engine:
                await test(engine)

        run(with_engine)

    return talk


@pytest.fixture
def eventually() -> Callable[..., Awaitable[None]]:
    async def eventually(condition: Callable[[], object], seconds: float = WAIT_S) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            await asyncio.sleep(0.01)

    return eventually
