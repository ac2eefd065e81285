"""Which dialect of the API a client speaks; it says so at the upgrade."""

from __future__ import annotations

from starlette.requests import HTTPConnection

BETA_HEADER = "OpenAI-Beta"
BETA_FEATURE = "realtime=v1"
BETA_SUBPROTOCOL = "openai-beta.realtime-v1"


def speaks_beta(connection: HTTPConnection) -> bool:
    """Whether a client speaks the beta dialect of 2024; the header's other features belong to other parts of the API."""
    if BETA_SUBPROTOCOL in connection.scope.get("subprotocols", ()):
        return True
    features = ",".join(connection.headers.getlist(BETA_HEADER)).split(",")
    return BETA_FEATURE in (feature.strip() for feature in features)
