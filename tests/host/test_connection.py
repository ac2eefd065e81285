"""A socket that is gone before its session hears of it."""

from __future__ import annotations

import asyncio
import logging

from omni_realtime.testing import ScriptedEngine
from omni_realtime_host.config_schema import Limits
from omni_realtime_host.connection import Connection
from omni_realtime_host.served_model import ServedModel


class ClosedSocket:
    """Behaves as uvicorn's does between a frame that breaks the protocol and the news of it."""

    async def receive(self) -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    async def send_text(self, _text: str) -> None:
        raise RuntimeError("Unexpected ASGI message 'websocket.send', after sending 'websocket.close'.")


def test_an_event_for_a_socket_that_just_closed_ends_the_session_without_a_fault_in_the_log(adapter, run, caplog):
    async def test():
        model = ServedModel(adapter(ScriptedEngine()), Limits())
        await asyncio.wait_for(Connection(ClosedSocket(), model, Limits(), opening={}).run(), 10)

    run(test())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
