"""The error that a client's event earns."""

from __future__ import annotations


class ProtocolError(Exception):
    """A client event was refused: nothing changed, and the client gets one ``error`` event.

    The fields are those of the API's error object; ``message`` says what to do, ``param`` names the field at fault as a dotted path.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str | None,
        param: str | None = None,
        type: str = "invalid_request_error",  # noqa: A002 - the API's name
        event_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param
        self.type = type
        self.event_id = event_id
