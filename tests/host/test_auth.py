"""Who is let in, and what an upgrade answers."""

from __future__ import annotations

import json
import secrets
import ssl

import httpx
import pytest
import websockets
from starlette.requests import HTTPConnection

from omni_realtime_host.auth import Auth, accepted_subprotocol
from omni_realtime_host.http_errors import RequestRefusedError

KEYS = ["first-key", "second-key"]


def connection(client: str = "127.0.0.1", subprotocols: tuple[str, ...] = (), **headers: str) -> HTTPConnection:
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return HTTPConnection({"type": "websocket", "client": (client, 1), "headers": raw, "subprotocols": list(subprotocols)})


def status(auth: Auth, each: HTTPConnection) -> int:
    try:
        auth.check(each)
    except RequestRefusedError as refusal:
        return refusal.status
    return 101


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (connection(authorization="Bearer first-key"), 101),
        (connection(authorization="bearer second-key"), 101),
        (connection(api_key="second-key"), 101),
        (connection(subprotocols=("realtime", "openai-insecure-api-key.first-key", "openai-agents-sdk.0.20.0")), 101),
        (connection(authorization="Bearer first-key", client="203.0.113.9", origin="https://example.org"), 101),
        (connection(), 401),
        (connection(authorization="Bearer wrong"), 401),
        (connection(authorization="Bearer first-key2"), 401),
        (connection(authorization="Bearer \xff"), 401),
        (connection(authorization="Bearer"), 401),
        (connection(authorization="Basic first-key"), 401),
        (connection(api_key="wrong"), 401),
        (connection(subprotocols=("realtime",)), 401),
        (connection(subprotocols=("openai-insecure-api-key.",)), 401),
    ],
)
def test_a_key_opens_and_nothing_else_does(each, expected):
    assert status(Auth(KEYS), each) == expected


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (connection(), 101),
        (connection(client="::1"), 101),
        (connection(client="::ffff:127.0.0.1"), 101),
        (connection(authorization="Bearer anything"), 101),
        (connection(origin="http://localhost:3000"), 101),
        (connection(origin="http://127.0.0.1:8000"), 101),
        (connection(origin="http://[::1]:8000"), 101),
        (connection(client="203.0.113.9"), 403),
        (connection(origin="https://example.org"), 403),
        (connection(origin="http://localhost.example.org"), 403),
        (connection(origin="null"), 403),
        (connection(origin="http://[broken"), 403),
    ],
)
def test_without_a_key_this_machine_alone_is_served(each, expected):
    assert status(Auth([]), each) == expected


def test_keys_are_compared_in_constant_time_and_all_of_them(monkeypatch):
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append(b)
        return a == b

    monkeypatch.setattr(secrets, "compare_digest", compare)
    Auth(KEYS).check(connection(api_key="first-key"))
    assert compared == [b"first-key", b"second-key"]


@pytest.mark.parametrize(
    ("offered", "answer"),
    [
        ((), None),
        (("realtime",), "realtime"),
        (("realtime", "openai-insecure-api-key.X"), "realtime"),
        (("openai-insecure-api-key.X", "openai-beta.realtime-v1", "realtime"), "realtime"),
        (("openai-insecure-api-key.X",), None),
    ],
)
def test_the_subprotocol_is_realtime_or_none(offered, answer):
    assert accepted_subprotocol(offered) == answer


def test_sec_websocket_protocol_realtime_and_a_key_answers_exactly_realtime_and_the_key_is_never_echoed(serve, run, caplog, capfd):
    offered = ["realtime", "openai-insecure-api-key.first-key"]
    caplog.set_level("DEBUG")

    async def test():
        async with serve(server={"api_keys": KEYS}) as running:
            async with running.connect(subprotocols=offered) as client:
                assert client.socket.subprotocol == "realtime"
                assert "first-key" not in str(client.socket.response.headers)
            with pytest.raises(websockets.InvalidStatus) as refusal:
                await websockets.connect(running.url, subprotocols=["realtime", "openai-insecure-api-key.guess-1"])
            response = refusal.value.response
            assert response.status_code == 401
            assert json.loads(response.body)["error"]["code"] == "invalid_api_key"
            assert b"guess-1" not in response.body

    run(test())
    ours = "".join(
        record.getMessage() for record in caplog.records if record.name.startswith(("omni", "uvicorn.error")) and record.levelno >= 20
    )
    output = "".join(capfd.readouterr())
    for secret in ("first-key", "guess-1"):
        assert secret not in ours + output


def test_nothing_offered_is_answered_with_nothing(serve, run):
    async def test():
        headers = {"Authorization": "Bearer second-key"}
        async with serve(server={"api_keys": KEYS}) as running, running.connect(additional_headers=headers) as client:
            assert client.socket.subprotocol is None
            assert "Sec-WebSocket-Protocol" not in client.socket.response.headers

    run(test())


def test_a_page_of_another_origin_cannot_use_a_host_without_a_key(serve, run):
    async def test():
        async with serve() as running:
            with pytest.raises(websockets.InvalidStatus) as refusal:
                await websockets.connect(running.url, origin="https://example.org")
            assert refusal.value.response.status_code == 403

    run(test())


def test_the_list_of_models_needs_the_key_too(serve, run):
    async def test():
        async with serve(server={"api_keys": KEYS}) as running, httpx.AsyncClient(base_url=running.http) as client:
            assert (await client.get("/v1/models")).status_code == 401
            assert (await client.get("/v1/models", headers={"api-key": "first-key"})).status_code == 200
            assert (await client.get("/ready")).status_code == 200

    run(test())


def test_tls(serve, run, certificate):
    cert, key = certificate

    async def test():
        async with serve(server={"tls": {"cert": str(cert), "key": str(key)}}) as running:
            assert running.url.startswith("wss://")
            context = ssl.create_default_context(cafile=str(cert))
            async with running.connect(ssl=context) as client:
                await client.say("Hello?")
                await client.until("response.done")
            async with httpx.AsyncClient(verify=context) as http:
                assert running.url in (await http.get(running.http)).text

    run(test())
