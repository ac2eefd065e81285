"""How a driver's events are sent through the methods of the package's connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

AUDIO = {"input": {"transcription": {"model": "gpt-4o-mini-transcribe"}}}


def frame_of(event: dict[str, Any]) -> str | bytes | None:
    """The frame of an event that is none, for ``send_raw``."""
    return event["binary"].encode() if "binary" in event else event.get("raw")


def method_of(connection: Any, event: dict[str, Any]) -> Callable[..., Any] | None:
    """``connection.conversation.item.create`` for ``conversation.item.create``; nothing for an event that the package lacks."""
    for name in event["type"].split("."):
        connection = getattr(connection, name, None)
    return connection
