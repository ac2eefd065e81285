"""Short-lived keys for browsers: signed, kept nowhere, and bound to one session object."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from omni_realtime.protocol.capability_check import OPENAI_TRANSCRIPTION_MODELS
from omni_realtime.protocol.session_update import OPENAI_MODELS
from omni_realtime_host.http_errors import RequestRefusedError

PREFIX = "ek_"
MAX_CHARS = 8000
"""The longest key: with the other subprotocols of a browser it still fits the 8 KiB that servers and proxies allow a header line."""

_SALT = b"omni-realtime client secret 1"
_FORM = re.compile(r"ek_\.?[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{64}")
"""SHA-384's 48 bytes are 64 characters without a spare bit, so that no other text stands for the same signature."""


@dataclass(frozen=True, slots=True)
class EphemeralKey:
    """What a key allows: sessions of ``model`` that begin with ``session``, until ``expires_at`` in Unix seconds."""

    model: str
    session: Mapping[str, Any]
    expires_at: int

    def check_query(self, query: Mapping[str, str], *, only_model: bool = False) -> None:
        """Check that an upgrade asks for what the key allows; it may leave out both ``model`` and ``intent``.

        ``only_model`` says that the host serves no other, so that the API's own names stand for it.

        Raises:
            RequestRefusedError: 400, it asks for another model or another type of session.
        """
        kind = self.session["type"]
        served = {self.model, *(OPENAI_TRANSCRIPTION_MODELS if kind == "transcription" else ())}
        name = query.get("model", "")
        if name and name not in served and not (only_model and name.startswith(OPENAI_MODELS)):
            message = f"The client secret is for the model '{self.model}'. Leave out `model`, or create a client secret for the other."
            raise RequestRefusedError(400, message, code="invalid_value", param="model")
        if query.get("intent") and (query["intent"] == "transcription") != (kind == "transcription"):
            message = f"The client secret is for a session of the type '{kind}'. Leave out `intent`, or create another client secret."
            raise RequestRefusedError(400, message, code="invalid_value", param="intent")


class EphemeralKeys:
    """Signs keys and reads them, the same on every host that has the API key under which a key was made."""

    def __init__(self, api_keys: Iterable[bytes]) -> None:
        """Derive a signing key from each API key; without one, keys are good for this process alone."""
        self._signing_keys: dict[bytes | None, bytes] = {key: _stretch(key) for key in api_keys} or {None: secrets.token_bytes(48)}

    def sign(self, key: EphemeralKey, api_key: bytes | None) -> str:
        """Return the text of ``key``; it is good as long as ``api_key`` is, ``None`` where no API key is configured."""
        return PREFIX + str(_serializer([self._signing_keys[api_key]]).dumps([key.model, key.expires_at, key.session]))

    def read(self, text: str, now: float) -> EphemeralKey:
        """Return the key that was signed as ``text``; ``now`` is in Unix seconds.

        Raises:
            RequestRefusedError: 401, it was not made here, it was changed, or it has expired.
        """
        if not _FORM.fullmatch(text):
            raise _invalid()
        try:
            model, expires_at, session = _serializer([*self._signing_keys.values()]).loads(text.removeprefix(PREFIX))
        except BadData:
            raise _invalid() from None
        if now >= expires_at:
            message = "This client secret has expired. Have your server create another with POST /v1/realtime/client_secrets."
            raise RequestRefusedError(401, message, code="client_secret_expired")
        return EphemeralKey(model, session, expires_at)


def _stretch(api_key: bytes) -> bytes:
    """Make it costly to guess a weak API key from what a browser is given."""
    return hashlib.scrypt(api_key, salt=_SALT, n=2**14, r=8, p=1, dklen=48)


def _serializer(signing_keys: list[bytes]) -> URLSafeSerializer:
    return URLSafeSerializer(signing_keys, salt=_SALT, signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha384})


def _invalid() -> RequestRefusedError:
    message = (
        "This client secret is not valid: it was changed, or the API key that it was made with is no longer a key of this host. "
        "Have your server create another with POST /v1/realtime/client_secrets."
    )
    return RequestRefusedError(401, message, code="invalid_api_key")
