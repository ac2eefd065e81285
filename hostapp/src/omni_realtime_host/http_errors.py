"""Errors of the HTTP side, in OpenAI's envelope."""

from __future__ import annotations

from starlette.responses import JSONResponse

from omni_realtime.protocol import ProtocolError

_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 426: {"Upgrade": "websocket"}}


class RequestRefusedError(Exception):
    """A request or an upgrade is refused; ``message`` says what to do."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None,
        param: str | None = None,
        type: str = "invalid_request_error",  # noqa: A002 - the API's name
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.type = type

    def response(self) -> JSONResponse:
        """Return the answer to send."""
        headers = _HEADERS.get(self.status)
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return JSONResponse({"error": error}, self.status, headers)


def refusal_of(error: ProtocolError) -> RequestRefusedError:
    """Return what a session object earns in HTTP that would earn ``error`` on the socket."""
    return RequestRefusedError(400, error.message, code=error.code, param=error.param, type=error.type)
