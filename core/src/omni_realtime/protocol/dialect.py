"""The wire's GA dialect, and what another dialect has to be."""

from __future__ import annotations

from collections.abc import Sequence

from omni_realtime.protocol.client_events import ClientEvent
from omni_realtime.protocol.decode import DecodeLimits, decode
from omni_realtime.protocol.encode import encode
from omni_realtime.protocol.server_events import ServerEvent


class Dialect:
    """Stands between one connection's frames and its session's events; this one is GA."""

    def decode(self, frame: str | bytes, *, limits: DecodeLimits) -> ClientEvent | None:
        """Return the event of a client's frame, ``None`` where it has to wait until ``released`` returns it.

        Raises:
            ProtocolError: the frame is no event of this dialect.
        """
        return decode(frame, limits=limits)

    def encode(self, event: ServerEvent) -> Sequence[str]:
        """Return the frames of a server event."""
        return (encode(event),)

    def released(self) -> Sequence[ClientEvent]:
        """Return the events that waited and are to reach the session now, before any other."""
        return ()
