"""Short-lived browser keys: made with the official client, used over real sockets, and refused once they are changed or expired."""

from __future__ import annotations

import asyncio
import hmac
import json
import random
import time
from types import SimpleNamespace

import httpx
import pytest
import websockets
from hypothesis import given
from hypothesis import strategies as st
from openai import APIStatusError, AsyncOpenAI, OpenAI
from openai.types.realtime import ClientSecretCreateResponse

from omni_realtime.testing import ScriptedDetector, ScriptedEngine, ScriptedTranscriber, text_reply
from omni_realtime_host import auth, ephemeral_keys
from omni_realtime_host.ephemeral_keys import MAX_CHARS, EphemeralKey, EphemeralKeys
from omni_realtime_host.http_errors import RequestRefusedError

KEYS = ["first-key", "second-key"]
PATH = "/v1/realtime/client_secrets"
FAR = int(time.time()) + 3600
TOOL = {"type": "function", "name": "weather", "description": "Tells it.", "parameters": {"type": "object", "properties": {}}}
REALTIME = {
    "type": "realtime",
    "model": "scripted",
    "instructions": "Sprich über das Wetter. 天気",
    "output_modalities": ["text"],
    "tools": [TOOL],
    "tool_choice": {"type": "function", "name": "weather"},
    "max_output_tokens": 50,
    "truncation": {"type": "retention_ratio", "retention_ratio": 0.5},
    "audio": {"input": {"format": {"type": "audio/pcmu"}, "turn_detection": {"type": "server_vad", "threshold": 0.7}}},
}
TRANSCRIPTION = {
    "type": "transcription",
    "audio": {"input": {"transcription": {"model": "whisper-1", "language": "de"}, "turn_detection": None}},
}
PARTS = {"detector": ScriptedDetector, "transcriber": ScriptedTranscriber}
WITH_KEYS = {"api_keys": KEYS}
SIGNER = EphemeralKeys(key.encode() for key in KEYS)


def parts() -> dict:
    return {name: part() for name, part in PARTS.items()}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def browser(key: str) -> list[str]:
    return ["realtime", f"openai-insecure-api-key.{key}"]


def made(session: dict | None = None, *, expires_at: int = FAR, model: str = "scripted", api_key: bytes = b"first-key") -> str:
    return SIGNER.sign(EphemeralKey(model, session or {"type": "realtime"}, expires_at), api_key)


async def mint(running, body: object = None, key: str = "first-key", query: str = "") -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    async with httpx.AsyncClient(base_url=running.http) as client:
        return await client.post(PATH + query, content=content, headers=bearer(key))


async def refused(running, key: str, query: str = "") -> tuple[int, dict]:
    answers = []
    for options in ({"additional_headers": bearer(key)}, {"additional_headers": {"api-key": key}}, {"subprotocols": browser(key)}):
        with pytest.raises(websockets.InvalidStatus) as refusal:
            await websockets.connect(running.url + query, **options)
        answers.append((refusal.value.response.status_code, json.loads(refusal.value.response.body)["error"]))
    assert answers.count(answers[0]) == len(answers)
    return answers[0]


def lasting(session: dict) -> dict:
    return {name: value for name, value in session.items() if name not in {"id", "expires_at"}}


@pytest.mark.parametrize("session", [None, {"type": "realtime"}, REALTIME, TRANSCRIPTION], ids=["none", "empty", "full", "transcription"])
@pytest.mark.parametrize("options", [{}, {"server": WITH_KEYS}], ids=["loopback", "with keys"])
def test_a_session_opened_with_a_client_secret_begins_as_it_was_minted(serve, run, session, options):
    async def test():
        async with serve(**parts(), **options) as running:
            before = int(time.time())
            answer = await mint(running, {} if session is None else {"session": session})
            secret = ClientSecretCreateResponse.model_validate_json(answer.content, strict=True)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "no-store"
            assert before + 600 <= secret.expires_at <= int(time.time()) + 600
            minted = answer.json()["session"]
            for connect in (
                {"additional_headers": bearer(secret.value)},
                {"additional_headers": {"api-key": secret.value}},
                {"subprotocols": browser(secret.value)},
            ):
                async with running.connect(**connect) as client:
                    [created] = client.log.events
                    assert lasting(created["session"]) == lasting(minted)
                    assert created["session"]["id"] != minted["id"]

    run(test())


def test_the_official_clients_make_a_client_secret_and_talk_with_it(serve, run):
    expires_after = {"anchor": "created_at", "seconds": 30}

    def talk_sync(base_url: str) -> str:
        with OpenAI(base_url=base_url, api_key="second-key") as server:
            secret = server.realtime.client_secrets.create(session=REALTIME, expires_after=expires_after)
        with OpenAI(base_url=base_url, api_key=secret.value) as client, client.realtime.connect(model="scripted") as connection:
            connection.response.create()
            return next(event for event in connection if event.type == "response.done").response.output[0].content[0].text

    async def talk_async(base_url: str) -> str:
        async with AsyncOpenAI(base_url=base_url, api_key="second-key") as server:
            secret = await server.realtime.client_secrets.create(session=REALTIME, expires_after=expires_after)
        async with (
            AsyncOpenAI(base_url=base_url, api_key=secret.value) as client,
            client.realtime.connect(model="scripted") as connection,
        ):
            assert (await connection.recv()).session.instructions == REALTIME["instructions"]
            await connection.response.create()
            async for event in connection:
                if event.type == "response.done":
                    break
            return event.response.output[0].content[0].text

    async def test():
        async with serve(text_reply("One."), text_reply("Two."), server=WITH_KEYS, **parts()) as running:
            assert await asyncio.to_thread(talk_sync, f"{running.http}/v1") == "One."
            assert await talk_async(f"{running.http}/v1") == "Two."

    run(test())


def test_a_client_may_still_update_the_session(serve, run):
    async def test():
        async with serve(server=WITH_KEYS, **parts()) as running, running.connect(subprotocols=browser(made(REALTIME))) as client:
            await client.send("session.update", session={"type": "realtime", "instructions": "New.", "tools": [], "tool_choice": "auto"})
            updated = (await client.until("session.updated"))["session"]
            assert (updated["instructions"], updated["tools"], updated["max_output_tokens"]) == ("New.", [], 50)

    run(test())


@pytest.mark.parametrize(
    ("expires_after", "seconds"),
    [
        (None, 600),
        ({}, 600),
        ({"anchor": "created_at"}, 600),
        ({"seconds": 10}, 10),
        ({"anchor": "created_at", "seconds": 7200}, 7200),
    ],
)
def test_a_client_secret_lasts_as_long_as_asked(serve, run, expires_after, seconds):
    async def test():
        async with serve() as running:
            before = int(time.time())
            answer = (await mint(running, {"expires_after": expires_after})).json()
            assert before + seconds <= answer["expires_at"] <= time.time() + seconds

    run(test())


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"expires_after": {"seconds": 9}}, 400, "invalid_value", "expires_after.seconds"),
        ({"expires_after": {"seconds": 7201}}, 400, "invalid_value", "expires_after.seconds"),
        ({"expires_after": {"seconds": -1}}, 400, "invalid_value", "expires_after.seconds"),
        ({"expires_after": {"seconds": "60"}}, 400, "invalid_type", "expires_after.seconds"),
        ({"expires_after": {"seconds": 60.5}}, 400, "invalid_type", "expires_after.seconds"),
        ({"expires_after": {"seconds": True}}, 400, "invalid_type", "expires_after.seconds"),
        ({"expires_after": {"seconds": None}}, 400, "invalid_type", "expires_after.seconds"),
        ({"expires_after": {"anchor": "used_at", "seconds": 60}}, 400, "invalid_value", "expires_after.anchor"),
        ({"expires_after": {"seconds": 60, "minutes": 1}}, 400, "unknown_parameter", "expires_after.minutes"),
        ({"expires_after": 600}, 400, "invalid_type", "expires_after"),
        ({"session": "realtime"}, 400, "invalid_type", "session"),
        ({"session": {}}, 400, "missing_required_parameter", "session.type"),
        ({"session": {"type": "video"}}, 400, "invalid_value", "session.type"),
        ({"session": {"type": ["realtime"]}}, 400, "invalid_type", "session.type"),
        ({"session": {"type": "transcription"}}, 400, "invalid_value", "session.type"),
        ({"session": {"type": "realtime", "model": "no-such-model"}}, 404, "model_not_found", "session.model"),
        ({"session": {"type": "realtime", "model": 5}}, 400, "invalid_type", "session.model"),
        ({"ttl": 600}, 400, "unknown_parameter", "ttl"),
        ([], 400, "invalid_type", None),
        (b"session=x", 400, "invalid_json", None),
        (b"\xff", 400, "invalid_json", None),
        (b'{"session": {"type": "realtime", "instructions": "\\ud800"}}', 400, "invalid_json", None),
        (b'{"session": {"type": "realtime", "max_output_tokens": NaN}}', 400, "invalid_json", None),
        (b'{"session": ' + b'{"x":' * 100 + b"1" + b"}" * 101, 400, "event_too_deep", None),
        (b'"' + b"x" * 1024 * 1024 + b'"', 413, "request_too_large", None),
        (b"x" * 30_000_000, 413, "request_too_large", None),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value)[:60],
)
def test_a_bad_request_names_what_is_wrong(serve, run, body, status, code, param):
    async def test():
        async with serve() as running:
            answer = await mint(running, body)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["param"], error["type"]) == (status, code, param, "invalid_request_error")
            assert error["message"]

    run(test())


@pytest.mark.parametrize("body", [b"", b"{}", b'{"session": null, "expires_after": null}'])
def test_everything_may_be_left_out(serve, run, body):
    async def test():
        async with serve() as running:
            assert (await mint(running, body)).json()["session"]["type"] == "realtime"

    run(test())


@pytest.mark.parametrize(
    "fields",
    [
        {"output_modalities": ["text", "audio"]},
        {"instructions": 5},
        {"voice": "alloy"},
        {"nonsense": 1},
        {"object": "realtime.transcription_session"},
        {"tools": [{"type": "mcp"}]},
        {"tool_choice": "required"},
        {"max_output_tokens": 0},
        {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 2}}}},
        {"audio": {"input": {"noise_reduction": {"type": "near_field"}}}},
        {"audio": {"output": {"speed": 1.5}}},
        {"audio": []},
    ],
    ids=str,
)
def test_a_bad_session_earns_what_session_update_earns(serve, run, fields):
    session = {"type": "realtime", **fields}

    async def test():
        async with serve(**parts()) as running, running.connect() as client:
            answer = await mint(running, {"session": session})
            await client.send("session.update", session=session)
            expected = (await client.until("error"))["error"]
            del expected["event_id"]
            assert (answer.status_code, answer.json()["error"]) == (400, expected)

    run(test())


def test_other_methods_are_not_allowed(serve, run):
    async def test():
        async with serve() as running, httpx.AsyncClient(base_url=running.http) as client:
            answer = await client.get(PATH)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
            assert answer.json()["error"]["code"] == "method_not_allowed"

    run(test())


def test_a_client_secret_is_for_one_model(serve, run, adapter):
    async def test():
        async with serve(server=WITH_KEYS, more=(adapter(ScriptedEngine(), name="vendor/other:1"),)) as running:
            assert (await mint(running)).json()["error"]["code"] == "missing_required_parameter"
            bodies = (({"session": {"type": "realtime", "model": "vendor/other:1"}}, ""), ({}, "?model=vendor/other:1"))
            for body, query in bodies:
                answer = (await mint(running, body, query=query)).json()
                assert answer["session"]["model"] == "vendor/other:1"
                for asked in ("", "?model=vendor/other:1", "?intent=conversation"):
                    async with running.connect(asked, subprotocols=browser(answer["value"])) as client:
                        assert client.log.events[0]["session"]["model"] == "vendor/other:1"
                status, error = await refused(running, answer["value"], "?model=scripted")
                assert (status, error["code"], error["param"]) == (400, "invalid_value", "model")
                assert "'vendor/other:1'" in error["message"]
            assert (await refused(running, made(model="gone")))[1]["code"] == "model_not_found"

    run(test())


def test_where_one_model_is_served_the_apis_own_names_stand_for_it_with_a_client_secret_too(serve, run, adapter):
    """Browser SDKs put the API's default model into the URL, whatever key they hold."""
    asked = "?model=gpt-realtime"

    async def test():
        async with serve(server=WITH_KEYS) as running:
            value = (await mint(running, {"session": {"type": "realtime", "model": "gpt-realtime"}})).json()["value"]
            async with running.connect(asked, subprotocols=browser(value)) as client:
                assert client.log.events[0]["session"]["model"] == "scripted"
        async with serve(server=WITH_KEYS, more=(adapter(ScriptedEngine(), name="gpt-oss"),)) as running:
            for query in (asked, "?model=gpt-oss"):
                assert (await refused(running, made(), query))[1]["param"] == "model"

    run(test())


def test_a_transcription_secret_opens_a_transcription_session_and_no_other_does(serve, run):
    async def test():
        async with serve(server=WITH_KEYS, **parts()) as running:
            for query in ("", "?intent=transcription", "?intent=", "?model=scripted", "?model=whisper-1&intent=transcription"):
                async with running.connect(query, subprotocols=browser(made(TRANSCRIPTION))) as client:
                    assert client.log.events[0]["session"]["type"] == "transcription"
            for session, query, param in (
                (REALTIME, "?intent=transcription", "intent"),
                (TRANSCRIPTION, "?intent=conversation", "intent"),
                (REALTIME, "?model=whisper-1", "model"),
                (TRANSCRIPTION, "?model=other", "model"),
            ):
                status, error = await refused(running, made(session), query)
                assert (status, error["code"], error["param"]) == (400, "invalid_value", param)
                assert f"'{session['type']}'" in error["message"] or "'scripted'" in error["message"]

    run(test())


def test_a_transcription_secret_is_for_the_only_model_that_transcribes_unless_the_query_names_one(serve, run, adapter):
    async def test():
        others = [adapter(ScriptedEngine(), name="deaf"), adapter(ScriptedEngine(), name="other", transcriber=ScriptedTranscriber())]
        session = {"session": {"type": "transcription"}}
        async with serve(more=tuple(others)) as running:
            for query in ("", "?model=other"):
                value = (await mint(running, session, query=query)).json()["value"]
                assert running.host.auth.ephemeral_keys.read(value, 0).model == "other"
            for query, expected in (("?model=deaf", "session.type"), ("?model=none", "model")):
                assert (await mint(running, session, query=query)).json()["error"]["param"] == expected

    run(test())


def test_a_session_that_is_no_longer_served_is_refused_before_the_upgrade(serve, run):
    async def test():
        async with serve(server=WITH_KEYS) as running:
            for session, param in ((TRANSCRIPTION, "session.type"), (REALTIME, "session.audio.input.turn_detection.type")):
                status, error = await refused(running, made(session))
                assert (status, error["param"]) == (400, param)
            async with running.connect(additional_headers=bearer("first-key")):
                pass

    run(test())


@pytest.mark.parametrize("server", [{}, WITH_KEYS], ids=["loopback", "with keys"])
def test_a_client_secret_opens_sessions_and_nothing_else(serve, run, server):
    async def test():
        async with serve(server=server) as running, httpx.AsyncClient(base_url=running.http) as client:
            value = (await mint(running)).json()["value"]
            for method, path in (("POST", PATH), ("GET", "/v1/models"), ("GET", "/v1/models/scripted")):
                for headers in (bearer(value), {"api-key": value}):
                    answer = await client.request(method, path, headers=headers)
                    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_permissions")
                changed = await client.request(method, path, headers=bearer(f"{value}x"))
                assert (changed.status_code, changed.json()["error"]["code"]) == (401, "invalid_api_key")

    run(test())


def test_making_a_client_secret_needs_an_api_key(serve, run):
    async def test():
        async with serve(server=WITH_KEYS) as running:
            for key in ("wrong", "ek_wrong"):
                answer = await mint(running, b"not even JSON", key)
                assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
            async with httpx.AsyncClient(base_url=running.http) as client:
                answer = await client.post(PATH)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert (await client.post(PATH, headers={"api-key": "second-key"})).status_code == 200
            async with AsyncOpenAI(base_url=f"{running.http}/v1", api_key="wrong") as client:
                with pytest.raises(APIStatusError) as refusal:
                    await client.realtime.client_secrets.create()
            assert refusal.value.code == "invalid_api_key"

    run(test())


def test_an_expired_client_secret_is_refused_and_the_session_that_it_opened_goes_on(serve, run, monkeypatch):
    clock = SimpleNamespace(now=time.time())
    monkeypatch.setattr(auth, "time", SimpleNamespace(time=lambda: clock.now))

    async def test():
        async with serve(server=WITH_KEYS) as running:
            answer = (await mint(running, {"expires_after": {"seconds": 10}})).json()
            value, end = answer["value"], answer["expires_at"]
            async with running.connect(subprotocols=browser(value)) as client:
                clock.now = end - 0.001
                async with running.connect(subprotocols=browser(value)):
                    pass
                for clock.now in (end, end + 1, end + 10**6):
                    status, error = await refused(running, value)
                    assert (status, error["code"]) == (401, "client_secret_expired")
                    assert "has expired" in error["message"]
                await client.say("Still there?")
                await client.until("response.done")
            status, error = await refused(running, changed(value, len(value) - 1))
            assert (status, error["code"]) == (401, "invalid_api_key")

    run(test())


def changed(value: str, index: int) -> str:
    return value[:index] + ("B" if value[index] == "A" else "A") + value[index + 1 :]


SIGNED = [made(), made(REALTIME)]


def reads(value: str, keys: EphemeralKeys = SIGNER) -> bool:
    try:
        keys.read(value, FAR - 1)
    except RequestRefusedError as refusal:
        return (refusal.status, refusal.code) != (401, "invalid_api_key")
    return True


@given(data=st.data(), value=st.sampled_from(SIGNED))
def test_a_client_secret_with_any_bit_flipped_is_refused(data, value):
    assert reads(value)
    index, bit = data.draw(st.integers(0, len(value) - 1)), data.draw(st.integers(0, 7))
    assert not reads(value[:index] + chr(ord(value[index]) ^ 1 << bit) + value[index + 1 :])


@pytest.mark.parametrize("value", SIGNED, ids=["short", "compressed"])
def test_a_client_secret_with_any_character_changed_left_out_or_put_in_is_refused(value):
    for index in range(len(value)):
        for forged in (changed(value, index), value[:index] + value[index + 1 :], value[:index], f"{value[:index]}={value[index:]}"):
            assert not reads(forged)


@given(value=st.text(max_size=80))
def test_what_was_never_signed_is_refused(value):
    assert not reads(value)
    assert not reads(f"ek_{value}")


@given(one=st.text("AB.-_", max_size=20), other=st.text("AB.-_", min_size=60, max_size=70))
def test_what_looks_like_a_client_secret_is_refused(one, other):
    assert not reads(f"ek_{one}.{other}")


def test_parts_of_two_client_secrets_make_no_third():
    payloads, signatures = zip(*(value.rsplit(".", 1) for value in SIGNED), strict=True)
    assert not reads(f"{payloads[0]}.{signatures[1]}")
    assert not reads(f"{payloads[1]}.{signatures[0]}")


def test_a_client_secret_is_good_wherever_its_api_key_is():
    other_host = EphemeralKeys([b"second-key", b"first-key", b"third-key"])
    after_rotation = EphemeralKeys([b"second-key"])
    value = made(REALTIME)
    assert other_host.read(value, 0) == EphemeralKey("scripted", REALTIME, FAR)
    assert not reads(value, after_rotation)
    assert reads(made(api_key=b"second-key"), after_rotation)
    for stranger in (EphemeralKeys([b"first-kez"]), EphemeralKeys([])):
        assert not reads(value, stranger)


def test_a_client_secret_under_another_salt_is_refused(monkeypatch):
    value = made()
    monkeypatch.setattr(ephemeral_keys, "_SALT", b"another")
    assert reads(made())
    assert not reads(value)


def test_without_an_api_key_client_secrets_are_good_for_one_process():
    one, other = EphemeralKeys([]), EphemeralKeys([])
    value = one.sign(EphemeralKey("scripted", {"type": "realtime"}, FAR), None)
    assert reads(value, one)
    assert not reads(value, other)


def test_signatures_are_compared_in_constant_time(monkeypatch):
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or compare(a, b))
    assert not reads(changed(SIGNED[0], len(SIGNED[0]) - 1))
    assert compared == [(48, 48)] * len(KEYS)


@pytest.mark.parametrize("server", [{}, WITH_KEYS], ids=["loopback", "with keys"])
def test_a_forged_client_secret_is_refused_before_the_upgrade(serve, run, server):
    async def test():
        async with serve(server=server) as running:
            value = (await mint(running)).json()["value"]
            stranger = EphemeralKeys([b"x"]).sign(EphemeralKey("scripted", {"type": "realtime"}, FAR), b"x")
            for forged in (changed(value, 5), value[:-1], value[:20], "ek_", "ek_x", stranger):
                status, error = await refused(running, forged)
                assert (status, error["code"]) == (401, "invalid_api_key")
                assert forged == "ek_" or forged not in error["message"]
            async with running.connect(subprotocols=browser(value)):
                pass

    run(test())


def test_a_client_secret_does_not_let_pages_of_other_origins_into_a_host_without_a_key(serve, run):
    async def test():
        async with serve() as running:
            value = (await mint(running)).json()["value"]
            with pytest.raises(websockets.InvalidStatus) as refusal:
                await websockets.connect(running.url, origin="https://example.org", subprotocols=browser(value))
            assert refusal.value.response.status_code == 403

    run(test())


def test_pages_of_other_origins_may_use_a_client_secret_of_a_host_with_keys(serve, run):
    async def test():
        options = {"origin": "https://example.org", "subprotocols": browser(made())}
        async with serve(server=WITH_KEYS) as running, running.connect(**options) as client:
            assert client.socket.subprotocol == "realtime"

    run(test())


def incompressible(size: int) -> str:
    return random.Random(0).randbytes(size).hex()


def test_the_largest_client_secret_fits_the_header_of_a_browser(serve, run):
    offered = ["openai-agents-sdk.100.100.100", "openai-beta.realtime-v1"]

    async def test():
        async with serve(server=WITH_KEYS) as running:
            sessions = ({"type": "realtime", "instructions": incompressible(size)} for size in range(5500, 0, -5))
            session = next(session for session in sessions if len(made(session)) <= MAX_CHARS - 16)
            value = (await mint(running, {"session": session})).json()["value"]
            assert MAX_CHARS - 50 < len(value) <= MAX_CHARS
            async with websockets.connect(running.url, subprotocols=[*browser(value), *offered], compression=None) as socket:
                assert json.loads(await socket.recv())["session"]["instructions"] == session["instructions"]

    run(test())


def test_a_session_too_large_for_a_header_is_refused_with_advice(serve, run):
    async def test():
        async with serve(server=WITH_KEYS) as running:
            answer = await mint(running, {"session": {"type": "realtime", "instructions": incompressible(20_000)}})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["param"]) == (400, "session_too_large", "session")
            assert "session.update" in error["message"]

    run(test())


def test_a_client_secret_is_never_logged_or_echoed(serve, run, caplog, capfd):
    caplog.set_level("DEBUG")

    async def test() -> list[str]:
        async with serve(server=WITH_KEYS) as running:
            value = (await mint(running, {"session": REALTIME | {"audio": {}}})).json()["value"]
            expired = made(expires_at=1)
            async with running.connect(subprotocols=browser(value)) as client:
                assert client.socket.subprotocol == "realtime"
                assert value not in str(client.socket.response.headers)
            for bad in (expired, changed(value, 10)):
                assert bad not in str(await refused(running, bad))
            told.extend([value, expired, changed(value, 10)])

    told: list[str] = []
    run(test())
    ours = "".join(
        record.getMessage() for record in caplog.records if record.name.startswith(("omni", "uvicorn.error")) and record.levelno >= 20
    )
    output = "".join(capfd.readouterr())
    for secret in (*told, *KEYS, REALTIME["instructions"]):
        assert secret not in ours + output
