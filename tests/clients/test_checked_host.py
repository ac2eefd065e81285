"""The servers' own check of every frame finds what it is there to find."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from checked_host import Message, Receive, Send, checked

SCOPE: dict[str, Any] = {"type": "websocket", "headers": [], "subprotocols": []}
TOO_EARLY = json.dumps({"type": "error", "event_id": "event_1", "error": {"type": "server_error", "message": "No."}})
"""A good frame, but the first must be ``session.created``."""


def _connection(folder: Path, frame: str, **scope: Any) -> dict[str, Any] | None:
    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await send({"type": "websocket.send", "text": frame})

    async def receive() -> Message:
        raise AssertionError("nothing comes")

    async def send(_message: Message) -> None:
        pass

    log = folder / "frames"
    asyncio.run(checked(app, log)({**SCOPE, **scope}, receive, send))
    return json.loads(log.read_text()) if log.exists() else None


@pytest.mark.parametrize("frame", ['{"type": "error"}', '{"type": "response.begun", "event_id": "event_1"}', "[", TOO_EARLY])
def test_a_fault_is_written_down(tmp_path: Path, frame: str):
    seen = _connection(tmp_path, frame)
    assert seen is not None
    assert [fault.startswith(frame) for fault in seen["faults"]] == [True]


def test_the_2024_dialect_is_left_to_its_own_checks(tmp_path: Path):
    assert _connection(tmp_path, "[", headers=[(b"openai-beta", b"realtime=v1")]) is None
    assert _connection(tmp_path, "[", subprotocols=["realtime", "openai-beta.realtime-v1"]) is None
