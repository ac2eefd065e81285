"""No code can be added to the server without bringing it before the clients."""

from __future__ import annotations

import re

from provocations import provocations
from serving import ROOT

CODE = re.compile(r'code="(\w+)"')

ENDING = {"session_expired", "server_error", "output_buffer_overflow"}
"""The server closes after these; see ``session_ends`` and ``unread``."""

UPGRADES = {"invalid_api_key", "model_not_found", "model_not_ready"}
"""See ``refused_upgrades``; the rest of the refusals reach a client as these do, by their status."""

OTHER_REQUESTS = {
    "client_secret_expired",
    "insufficient_permissions",
    "invalid_handshake",
    "loopback_only",
    "origin_not_allowed",
    "request_too_large",
    "session_too_large",
    "shutting_down",
    "too_many_sessions",
    "unknown_url",
    "unsupported_value",
    "upgrade_required",
}


def test_every_code_of_the_source_is_provoked():
    sources = [file for part in ("core", "hostapp", "plugins") for file in (ROOT / part).rglob("src/**/*.py")]
    codes = {code for file in sources for code in CODE.findall(file.read_text())}
    assert codes > ENDING | UPGRADES | OTHER_REQUESTS
    assert codes - ENDING - UPGRADES - OTHER_REQUESTS <= {provocation["code"] for provocation in provocations()}
