"""The command ``omni-realtime``, with a check on every frame that leaves it.

The first argument is a file: each connection, when it ends, adds a line to it: how many frames it had, and what was wrong with one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from omni_realtime.testing.wire_log import WireLog
from omni_realtime_host import server
from omni_realtime_host.cli import main

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def checked(app: App, log: Path) -> App:
    """Wrap an ASGI app."""

    async def wrapped(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket" or _is_beta(scope):
            await app(scope, receive, send)
            return
        frames, faults = WireLog(), []

        async def check(message: Message) -> None:
            if message["type"] == "websocket.send" and not faults:  # one fault makes the rest of the order meaningless
                try:
                    frames.add(message["text"])
                except (AssertionError, ValueError) as error:
                    faults.append(f"{message['text'][:2000]}: {error}")
            await send(message)

        try:
            await app(scope, receive, check)
        finally:
            with log.open("a") as file:
                file.write(json.dumps({"frames": len(frames.events), "faults": faults}) + "\n")

    return wrapped


def _is_beta(scope: Message) -> bool:
    """Whether the client speaks the 2024 dialect, which the official models no longer have."""
    return (b"openai-beta", b"realtime=v1") in scope["headers"] or "openai-beta.realtime-v1" in scope["subprotocols"]


if __name__ == "__main__":
    make_app, log = server.create_app, Path(sys.argv[1])
    server.create_app = lambda host: checked(make_app(host), log)  # type: ignore[assignment,return-value]
    sys.exit(main(sys.argv[2:]))
