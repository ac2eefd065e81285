"""Runs a host on uvicorn, from the open port to the clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence

import uvicorn

from omni_realtime.adapter import Adapter
from omni_realtime_host.app import REALTIME_PATH, create_app
from omni_realtime_host.config_schema import MEBIBYTE, Server
from omni_realtime_host.host import Host
from omni_realtime_host.served_model import ServedModel
from omni_realtime_host.upgrade import UpgradeProtocol

Announce = Callable[[str], None]

PING_INTERVAL_S = 20.0
PING_TIMEOUT_S = 60.0
"""A client that answers no ping for so long is gone; longer than a client may pause before its session is ended in order."""

_NO_HANDSHAKE = "ASGI callable returned without completing handshake."
"""What uvicorn logs as an error of the application whenever an upgrade is refused; the host logs each refusal itself."""

CLOSE_S = 1.0
"""How long the sockets that are left may take when the host stops."""


_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - to be shown as a name that a client can connect to


class ListenError(Exception):
    """The address cannot be listened on."""


class _Uvicorn(uvicorn.Server):
    """Leaves the signals to :func:`run`, which drains first and then exits with 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def open_socket(server: Server) -> socket.socket:
    """Take the port, before anything heavy loads.

    Raises:
        ListenError: if another program has it, or this machine has no such address.
    """
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        listener = socket.create_server((server.host, server.port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        message = f"cannot listen on {server.host}:{server.port}: {reason}; choose another with --host and --port, or in the file"
        raise ListenError(message) from error
    # Accepted sockets inherit both options. Without the first, an event that follows another waits 40 ms for the other's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # a peer that keeps its window shut would hold a closed socket forever
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * (PING_INTERVAL_S + PING_TIMEOUT_S)))
    return listener


def run(server: Server, adapters: Sequence[Adapter], listener: socket.socket, announce: Announce) -> None:
    """Listen, load, serve until SIGTERM or SIGINT, and stop cleanly; a second signal hurries.

    Raises:
        StartError: if a deployment cannot start.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(server, adapters, listener, announce))


@contextlib.asynccontextmanager
async def listening(server: Server, host: Host, listener: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """Serve the routes of ``host`` while the context lasts; the task ends early only if uvicorn fails."""
    logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)
    runner = _Uvicorn(_uvicorn_config(server, host))
    serving = asyncio.create_task(runner.serve([listener]))
    try:
        yield serving
    finally:
        runner.should_exit = True
        await serving


async def _serve(server: Server, adapters: Sequence[Adapter], listener: socket.socket, announce: Announce) -> None:
    stop, hurry = asyncio.Event(), asyncio.Event()
    _on_signals(stop, hurry)
    host = Host([ServedModel(adapter, server.limits) for adapter in adapters], server)
    try:
        async with listening(server, host, listener) as serving:
            announce(f"Loading {', '.join(model.name for model in host.models)} ...")
            if await _unless(stop, host.start()):
                announce(_greeting(server, host, listener))
                await _unless(stop, asyncio.shield(serving))
            announce("Stopping ...")
            await _unless(hurry, host.drain())
            await host.end()
    finally:
        await host.close()


async def _unless(event: asyncio.Event, work: Awaitable[None]) -> bool:
    """Wait for ``work``, but no longer than until ``event``; whether it was done."""
    tasks = (asyncio.ensure_future(work), asyncio.create_task(event.wait()))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            await tasks[0]
            return True
        return False
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _uvicorn_config(server: Server, host: Host) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(host),
        http="h11",
        ws=UpgradeProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=server.limits.frame_bytes + MEBIBYTE,
        ws_per_message_deflate=False,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_TIMEOUT_S,
        ssl_certfile=server.tls.cert if server.tls else None,
        ssl_keyfile=server.tls.key if server.tls else None,
        timeout_graceful_shutdown=int(CLOSE_S),
    )


def _is_no_refusal(record: logging.LogRecord) -> bool:
    return record.msg != _NO_HANDSHAKE


def _on_signals(stop: asyncio.Event, hurry: asyncio.Event) -> None:
    def received() -> None:
        (hurry if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received)


def _greeting(server: Server, host: Host, listener: socket.socket) -> str:
    address, port = listener.getsockname()[:2]
    if address in _EVERYWHERE:
        address = "localhost"
    authority = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    secure = "s" if server.tls else ""
    models = ", ".join(model.name for model in host.models)
    return (
        f"Ready: {models} at ws{secure}://{authority}{REALTIME_PATH}\n"
        f"Next: open http{secure}://{authority}/ for a first conversation in ten lines, or run "
        f"examples/voice_turn.py --url http{secure}://{authority}/v1. Ctrl+C stops."
    )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not there on Windows
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
