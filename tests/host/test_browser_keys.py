"""Client secrets and API keys as browsers and their libraries present them: in the list of subprotocols."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import httpx
import pytest
import websockets
from starlette.requests import HTTPConnection

from omni_realtime.testing import ScriptedEngine
from omni_realtime_host.auth import Auth, accepted_subprotocol
from omni_realtime_host.ephemeral_keys import EphemeralKey
from omni_realtime_host.http_errors import RequestRefusedError

KEYS = ["first-key", "ek_configured"]
AUTH = Auth(KEYS)
LOOPBACK = Auth([])
DOCUMENT = Path(__file__).parents[2] / "docs" / "browser_keys.md"
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What RFC 6455 lets stand as a subprotocol."""


def secret(auth: Auth, seconds: int = 7200, api_key: bytes = b"first-key") -> str:
    key = EphemeralKey("scripted", {"type": "realtime", "instructions": "Be kind."}, int(time.time()) + seconds)
    return auth.ephemeral_keys.sign(key, api_key if auth.needs_key else None)


VALID, EXPIRED = secret(AUTH), secret(AUTH, -1)
FORGED = secret(Auth(["another-key"]), api_key=b"another-key")
FORMS = {
    "browser": ("realtime", "openai-insecure-api-key.{}"),
    "agents-js": ("realtime", "openai-insecure-api-key.{}", "openai-agents-sdk.0.20.0"),
    "beta": ("realtime", "openai-insecure-api-key.{}", "openai-beta.realtime-v1"),
    "all": ("realtime", "openai-insecure-api-key.{}", "openai-agents-sdk.0.20.0", "openai-beta.realtime-v1"),
    "key first": ("openai-insecure-api-key.{}", "realtime"),
    "organization": ("realtime", "openai-insecure-api-key.{}", "openai-organization.org-1", "openai-project.proj_1"),
}


def filled(form: str, key: str) -> list[str]:
    return [each.format(key) for each in FORMS[form]]


def upgrade(subprotocols: list[str], client: str = "127.0.0.1", **headers: str) -> HTTPConnection:
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return HTTPConnection({"type": "websocket", "client": (client, 1), "headers": raw, "subprotocols": subprotocols})


def answer(auth: Auth, connection: HTTPConnection) -> str | tuple[int, str | None]:
    try:
        key = auth.check_session(connection)
    except RequestRefusedError as refusal:
        return refusal.status, refusal.code
    return f"secret of {key.model}" if key else "API key"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (VALID, "secret of scripted"),
        ("first-key", "API key"),
        ("ek_configured", "API key"),
        (EXPIRED, (401, "client_secret_expired")),
        (FORGED, (401, "invalid_api_key")),
        (VALID[:-1], (401, "invalid_api_key")),
        (VALID.upper(), (401, "invalid_api_key")),
        (VALID.removeprefix("ek_"), (401, "invalid_api_key")),
        (f"{VALID}=", (401, "invalid_api_key")),
        ("ek_", (401, "invalid_api_key")),
        ("", (401, "invalid_api_key")),
    ],
    ids=["valid", "API key", "API key like a secret", "expired", "forged", "cut", "case", "no prefix", "padded", "prefix alone", "empty"],
)
def test_each_list_of_subprotocols_carries_a_key(form, key, expected):
    assert answer(AUTH, upgrade(filled(form, key))) == expected


@pytest.mark.parametrize("form", FORMS)
def test_each_list_is_answered_with_realtime_alone(form):
    assert accepted_subprotocol(filled(form, VALID)) == "realtime"


@pytest.mark.parametrize("auth", [AUTH, LOOPBACK], ids=["with keys", "loopback"])
def test_a_client_secret_is_a_token_as_subprotocols_have_to_be(auth):
    assert TOKEN.fullmatch(f"openai-insecure-api-key.{secret(auth)}")


@pytest.mark.parametrize(
    ("key", "client", "origin", "expected"),
    [
        ("none", "127.0.0.1", None, "API key"),
        (secret(LOOPBACK), "127.0.0.1", None, "secret of scripted"),
        (secret(LOOPBACK), "::1", "http://localhost:3000", "secret of scripted"),
        (secret(LOOPBACK, -1), "127.0.0.1", None, (401, "client_secret_expired")),
        (VALID, "127.0.0.1", None, (401, "invalid_api_key")),
        ("ek_x", "127.0.0.1", None, (401, "invalid_api_key")),
        (secret(LOOPBACK), "203.0.113.9", None, (403, "loopback_only")),
        (secret(LOOPBACK), "127.0.0.1", "https://example.org", (403, "origin_not_allowed")),
    ],
)
def test_without_an_api_key_a_client_secret_counts_and_lets_in_no_one_else(key, client, origin, expected):
    headers = {"origin": origin} if origin else {}
    assert answer(LOOPBACK, upgrade(filled("browser", key), client, **headers)) == expected


@pytest.mark.parametrize(
    ("headers", "offered", "expected"),
    [
        ({"authorization": f"Bearer {VALID}"}, [], "secret of scripted"),
        ({"authorization": f"bearer  {VALID} "}, [], "secret of scripted"),
        ({"api_key": VALID}, [], "secret of scripted"),
        ({"authorization": f"Basic {VALID}"}, [], (401, "invalid_api_key")),
        ({"authorization": "Bearer first-key"}, filled("browser", EXPIRED), "API key"),
        ({"authorization": f"Bearer {EXPIRED}"}, filled("browser", VALID), (401, "client_secret_expired")),
        ({"api_key": "wrong"}, filled("browser", VALID), (401, "invalid_api_key")),
        ({"authorization": "Basic x"}, filled("browser", VALID), "secret of scripted"),
        ({}, [*filled("browser", VALID), *filled("browser", EXPIRED)], "secret of scripted"),
        ({}, [*filled("browser", EXPIRED), *filled("browser", VALID)], (401, "client_secret_expired")),
        ({}, ["realtime"], (401, "invalid_api_key")),
        ({}, ["realtime", VALID], (401, "invalid_api_key")),
        ({}, ["realtime", f"OpenAI-Insecure-Api-Key.{VALID}"], (401, "invalid_api_key")),
    ],
)
def test_one_key_counts_a_header_before_a_subprotocol(headers, offered, expected):
    assert answer(AUTH, upgrade(offered, **headers)) == expected


@pytest.mark.parametrize("form", FORMS)
def test_requests_beside_sessions_take_no_client_secret(form):
    assert AUTH.check(upgrade(filled(form, "first-key"))) == b"first-key"
    assert LOOPBACK.check(upgrade([])) is None
    for auth in (AUTH, LOOPBACK):
        with pytest.raises(RequestRefusedError) as refusal:
            auth.check(upgrade(filled(form, secret(auth))))
        assert (refusal.value.status, refusal.value.code) == (403, "insufficient_permissions")


@pytest.mark.parametrize("form", FORMS)
def test_a_browser_gets_the_session_of_its_client_secret_in_each_form(serve, run, form):
    async def test():
        async with serve(server={"api_keys": KEYS}) as running:
            offered = filled(form, VALID)
            async with websockets.connect(running.url, subprotocols=offered, origin="https://example.org", compression=None) as socket:
                assert socket.subprotocol == "realtime"
                created = json.loads(await socket.recv())
                assert (created["type"], created["session"]["instructions"]) == ("session.created", "Be kind.")
            for bad, code in ((EXPIRED, "client_secret_expired"), (FORGED, "invalid_api_key")):
                with pytest.raises(websockets.InvalidStatus) as refusal:
                    await websockets.connect(running.url, subprotocols=filled(form, bad))
                response = refusal.value.response
                assert (response.status_code, json.loads(response.body)["error"]["code"]) == (401, code)
                assert bad not in f"{response.headers}{response.body!r}"

    run(test())


def test_one_header_line_for_each_subprotocol_will_do(serve, run):
    async def test():
        async with serve(server={"api_keys": KEYS}) as running, httpx.AsyncClient(base_url=running.http) as client:
            headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
            headers += [("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
            headers += [("Sec-WebSocket-Protocol", each) for each in filled("agents-js", VALID)]
            async with client.stream("GET", "/v1/realtime", headers=headers) as response:
                assert (response.status_code, response.headers["sec-websocket-protocol"]) == (101, "realtime")

    run(test())


def test_the_document_does_what_it_says(serve, run, adapter, monkeypatch, capsys):
    text = DOCUMENT.read_text(encoding="utf-8")
    [python] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [url, offered] = re.search(r"new WebSocket\(\"(.*?)\", (\[.*?\])\)", text).groups()
    monkeypatch.setenv("OMNI_REALTIME_API_KEY", "first-key")

    async def test():
        async with serve(server={"api_keys": KEYS}, more=(adapter(ScriptedEngine(), name="local-smollm2-135m"),)) as running:
            await asyncio.to_thread(exec, python.replace("http://localhost:8000", running.http), {})
            value = capsys.readouterr().out.strip()
            assert url.replace("ws://localhost:8000", running.http.replace("http", "ws")) == running.url
            protocols = json.loads(offered.replace('" + value', f'{value}"'))
            async with running.connect(subprotocols=protocols) as client:
                assert "Ghent" in client.log.events[0]["session"]["instructions"]

    run(test())
