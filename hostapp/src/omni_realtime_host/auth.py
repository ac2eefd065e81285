"""Who may use the host: the holders of a key, or, where no key is configured, this machine alone; a client secret opens sessions only."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import NoReturn
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from omni_realtime_host.config_schema import is_loopback
from omni_realtime_host.ephemeral_keys import PREFIX, EphemeralKey, EphemeralKeys
from omni_realtime_host.http_errors import RequestRefusedError

SUBPROTOCOL = "realtime"
_KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket, so OpenAI's clients offer the key as a subprotocol."""


class Auth:
    """Checks every request and upgrade."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = tuple(key.encode() for key in keys)
        self.ephemeral_keys = EphemeralKeys(self._keys)

    @property
    def needs_key(self) -> bool:
        """Whether clients must present a key."""
        return bool(self._keys)

    def check(self, connection: HTTPConnection) -> bytes | None:
        """Let a request pass; return its API key, ``None`` where none is configured.

        Raises:
            RequestRefusedError: 401 without a valid key; 403 with a client secret, or from elsewhere where no key is configured.
        """
        key = self._key(connection)
        if isinstance(key, EphemeralKey):
            message = "A client secret opens sessions and nothing else. Use an API key for this request."
            raise RequestRefusedError(403, message, code="insufficient_permissions")
        return key

    def check_session(self, connection: HTTPConnection) -> EphemeralKey | None:
        """Let a session's upgrade pass; return the client secret that it comes with, ``None`` with an API key.

        Raises:
            RequestRefusedError: 401 without a valid key; 403 from elsewhere where no key is configured.
        """
        key = self._key(connection)
        return key if isinstance(key, EphemeralKey) else None

    def _key(self, connection: HTTPConnection) -> bytes | EphemeralKey | None:
        presented = _presented_key(connection)
        if not self._keys:
            _check_local(connection)
        api_key = self._matching(presented) if presented else None
        if api_key is None and presented and presented.startswith(PREFIX):
            return self.ephemeral_keys.read(presented, time.time())
        if api_key is None and self._keys:
            _refuse(presented)
        return api_key

    def _matching(self, presented: str) -> bytes | None:
        given = presented.encode(errors="replace")
        matches = [key for key in self._keys if secrets.compare_digest(given, key)]
        return matches[0] if matches else None


def accepted_subprotocol(offered: Iterable[str]) -> str | None:
    """Choose what to answer to a client's subprotocols; a key is never echoed."""
    return SUBPROTOCOL if SUBPROTOCOL in offered else None


def _refuse(presented: str | None) -> NoReturn:
    message = "Incorrect API key provided. Use one of the keys of this host's `server.api_keys`."
    if presented is None:
        message = (
            "You didn't provide an API key. Send it as `Authorization: Bearer KEY`, as `api-key: KEY`, "
            f"or as the WebSocket subprotocol `{_KEY_SUBPROTOCOL}KEY`."
        )
    raise RequestRefusedError(401, message, code="invalid_api_key")


def _presented_key(connection: HTTPConnection) -> str | None:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    if key := connection.headers.get("api-key"):
        return key
    offered: list[str] = connection.scope.get("subprotocols", [])
    return next((each.removeprefix(_KEY_SUBPROTOCOL) for each in offered if each.startswith(_KEY_SUBPROTOCOL)), None)


def _check_local(connection: HTTPConnection) -> None:
    """Keep out other machines, and web pages of other origins in this machine's own browser."""
    if connection.client is None or not is_loopback(connection.client.host):
        message = "This host has no API key configured and serves this machine alone. Set `server.api_keys` to serve others."
        raise RequestRefusedError(403, message, code="loopback_only")
    origin = connection.headers.get("origin")
    if origin is not None and not is_loopback(_host_of(origin)):
        message = "This host has no API key configured and serves no pages of other origins. Set `server.api_keys` to serve them."
        raise RequestRefusedError(403, message, code="origin_not_allowed")


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""
