"""The socket's protocol: uvicorn's own, but no upgrade stays without an answer."""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from omni_realtime_host.http_errors import RequestRefusedError

_REFUSAL: Final = RequestRefusedError(
    400,
    "This upgrade cannot be read: send a GET without a body, with at most 128 headers of at most 8192 characters each. "
    "Leave out cookies, or use a shorter key.",
    code="invalid_handshake",
)


class UpgradeProtocol(WebSocketsSansIOProtocol):
    """Refuses an upgrade that the WebSocket library cannot read; uvicorn would leave the client waiting."""

    def data_received(self, data: bytes) -> None:
        """Take what came, and close if it was no handshake."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated and not self.transport.is_closing():
            self.transport.write(_refusal())
            self.transport.close()


def _refusal() -> bytes:
    response = _REFUSAL.response()
    headers = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
    return b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n" + headers + b"\r\n" + response.body
