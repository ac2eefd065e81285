"""Collects the effects of one call, and gives every event its id."""

from __future__ import annotations

from typing import Any

from omni_realtime.protocol.server_events import ServerEvent
from omni_realtime.session.effects import Effect, Send
from omni_realtime.session.ids import Ids


class Outbox:
    """What one call of the session asks for, in order."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._effects: list[Effect] = []

    def send(self, event: type[ServerEvent], **fields: Any) -> None:
        """Send an event of this class."""
        self._effects.append(Send(event(event_id=self._ids.new("event"), **fields)))

    def add(self, effect: Effect) -> None:
        """Ask for any other effect."""
        self._effects.append(effect)

    def drain(self) -> list[Effect]:
        """Return what was collected, and begin anew."""
        effects, self._effects = self._effects, []
        return effects
