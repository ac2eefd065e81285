"""``POST /v1/realtime/client_secrets``: the holder of an API key makes a short-lived key for a browser.

Source: ``client_secrets.create`` of the Realtime API reference.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any, Literal

import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from omni_realtime.protocol import ProtocolError, to_wire
from omni_realtime.protocol.decode import DEFAULT_LIMITS, is_deeper
from omni_realtime.protocol.validation import WireModel, refuse_missing, refuse_type, validate
from omni_realtime.session import Session
from omni_realtime_host.config_schema import MEBIBYTE
from omni_realtime_host.ephemeral_keys import MAX_CHARS, EphemeralKey
from omni_realtime_host.host import Host
from omni_realtime_host.http_errors import RequestRefusedError, refusal_of
from omni_realtime_host.model_choice import find_model
from omni_realtime_host.served_model import ServedModel

_NO_SESSION_RUNS = 0
"""The session's ``expires_at`` in the answer, as the API has it: the time begins with a session."""


class _ExpiresAfter(WireModel):
    anchor: Literal["created_at"] = "created_at"
    seconds: int = Field(default=600, ge=10, le=7200)


class _Request(WireModel):
    expires_after: _ExpiresAfter | None = None
    session: dict[str, Any] | None = None


async def create_client_secret(host: Host, request: Request) -> Response:
    """Answer with a key, its end in Unix seconds, and the session that it opens.

    Raises:
        RequestRefusedError: the request has no API key, or asks for what is not served.
    """
    api_key = host.auth.check(request)
    body = await _body(request)
    try:
        wanted = validate(_Request, _parse(body), "")
        session = {"type": "realtime"} if wanted.session is None else wanted.session
        model = _model(host, request.query_params, session)
        effective = _effective(model, session)
    except ProtocolError as error:
        raise refusal_of(error) from None
    expires_at = int(time.time()) + (wanted.expires_after or _ExpiresAfter()).seconds
    value = host.auth.ephemeral_keys.sign(EphemeralKey(model.name, session, expires_at), api_key)
    if len(value) > MAX_CHARS:
        message = (
            f"The session is too large: its key has {len(value)} characters, and {MAX_CHARS} fit the header that carries it. "
            "Leave out the longest parts, and send them with session.update once connected."
        )
        raise RequestRefusedError(400, message, code="session_too_large", param="session")
    answer = {"value": value, "expires_at": expires_at, "session": effective}
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


async def _body(request: Request) -> bytes:
    """Read all that comes: a client that is refused while it still sends might not get the answer."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MEBIBYTE:
            chunks.append(chunk)
    if size > MEBIBYTE:
        raise RequestRefusedError(413, f"The body has {size} bytes; send at most {MEBIBYTE}.", code="request_too_large")
    return b"".join(chunks)


def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise ProtocolError(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise ProtocolError('The body is not a JSON object such as {"session": {"type": "realtime"}}.', code="invalid_type")
    if is_deeper(value, DEFAULT_LIMITS.depth):
        raise ProtocolError(f"The body is nested more than {DEFAULT_LIMITS.depth} deep.", code="event_too_deep")
    return value


def _model(host: Host, query: Mapping[str, str], session: Mapping[str, Any]) -> ServedModel:
    """Choose by the session's ``model``, or by the query: a transcription session has no field for it."""
    name = session.get("model")
    if name is not None and not isinstance(name, str):
        refuse_type("session.model", "a string", name)
    if name:
        return find_model(name, host.models, "session.model")
    named = query.get("model", "")
    transcribing = [model for model in host.models if model.settings.capabilities.transcribes]
    choice = transcribing if session.get("type") == "transcription" and transcribing and not named else host.models
    return find_model(named, choice)


def _effective(model: ServedModel, session: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session that clients will get; it is opened once, so that what is refused is refused here."""
    if session.get("type") is None:
        refuse_missing("session.type")
    opened = Session(model.settings, token=secrets.token_hex(6), now=0, epoch_now=0, opening=session)
    return to_wire(opened.config) | {"expires_at": _NO_SESSION_RUNS}
