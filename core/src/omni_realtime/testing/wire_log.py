"""Follows what a server says on one connection, and fails at the first frame that breaks the API's schema or its order."""

from __future__ import annotations

from typing import Any

from omni_realtime.testing.order import OrderChecker
from omni_realtime.testing.wire import check_server_event

LARGEST_FRAME = 1024 * 1024
"""Some clients close a connection over a larger frame; only an item that is retrieved with its audio may be one."""


class WireLog:
    """The events of one connection so far, each of them checked: its schema, its order, its size."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._order = OrderChecker()

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the responses without a ``response.done``."""
        return self._order.running

    def types(self) -> list[str]:
        """Return the types of the events, in order."""
        return [event["type"] for event in self.events]

    def add(self, frame: str) -> dict[str, Any]:
        """Check the next frame and return its event.

        Raises:
            AssertionError: the frame breaks the order.
            ValueError: the frame breaks the schema.
        """
        event = check_server_event(frame)
        self._order.check(event)
        too_large = len(frame) >= LARGEST_FRAME and event["type"] != "conversation.item.retrieved"
        assert not too_large, f"{event['type']} is a frame of {len(frame)} characters"
        self.events.append(event)
        return event
