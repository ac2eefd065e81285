"""The choice of the model, readiness, and the pages beside the socket."""

from __future__ import annotations

import asyncio
import contextlib
import html
import io
import json
import logging

import httpx
import pytest
import websockets

from omni_realtime.engine.port import EngineDeadError
from omni_realtime.testing import ScriptedEngine, text_reply


async def refusal(url: str) -> tuple[int, dict]:
    with pytest.raises(websockets.InvalidStatus) as raised:
        await websockets.connect(url)
    response = raised.value.response
    return response.status_code, json.loads(response.body)["error"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?model=gpt-realtime", (404, "model_not_found")),
        ("", (400, "missing_required_parameter")),
        ("?model=scripted&intent=transcription", (400, "unsupported_value")),
        ("?model=scripted&duplex=1", (400, "unsupported_value")),
    ],
)
def test_an_unsupported_query_option_or_an_unknown_model_is_refused_before_the_upgrade(serve, run, adapter, query, expected):
    async def test():
        async with serve(more=(adapter(ScriptedEngine(), name="other"),)) as running:
            got, error = await refusal(running.url + query)
            assert (got, error["code"]) == expected
            if "duplex" not in query and "intent" not in query:
                assert "'scripted', 'other'" in error["message"]

    run(test())


@pytest.mark.parametrize(
    "query", ["", "?model=scripted", "?model=gpt-realtime", "?model=scripted&call_id=x&unknown=1", "?model=scripted&duplex=0"]
)
def test_a_default_only_where_one_model_is_served_and_unknown_keys_are_ignored(serve, run, query):
    async def test():
        async with serve() as running, running.connect(query) as client:
            assert client.log.events[0]["session"]["model"] == "scripted"

    run(test())


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", ["Cookie: " + "a" * 9000]),
        ("GET", [f"X-{number}: a" for number in range(130)]),
        ("GET", ["Content-Length: 0"]),
        ("POST", []),
    ],
    ids=["a long header", "many headers", "a body", "another method"],
)
def test_an_upgrade_that_cannot_be_read_is_refused_and_not_left_waiting(serve, run, method, headers):
    handshake = [
        "Host: here",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + "A" * 22 + "==",
    ]

    async def test():
        async with serve() as running:
            reader, writer = await asyncio.open_connection(*running.http.removeprefix("http://").split(":"))
            writer.write("\r\n".join([f"{method} /v1/realtime HTTP/1.1", *handshake, *headers, "", ""]).encode())
            head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
            writer.close()
            assert (head.split()[1], json.loads(body)["error"]["code"]) == (b"400", "invalid_handshake")
            async with running.connect():
                pass

    run(test())


def test_one_model_answers_to_the_apis_own_names_and_to_no_others(serve, run):
    async def test():
        async with serve() as running:
            async with running.connect("?model=gpt-4o-realtime-preview") as client:
                assert client.log.events[0]["session"]["model"] == "scripted"
            got, error = await refusal(f"{running.url}?model=other")
            assert (got, error["code"]) == (404, "model_not_found")

    run(test())


def test_each_model_answers_for_itself(serve, run, adapter):
    async def test():
        other = adapter(ScriptedEngine(text_reply("Other.")), name="vendor/other:1")
        async with serve(text_reply("First."), more=(other,)) as running:
            for query, text in (("?model=scripted", "First."), ("?model=vendor/other:1", "Other.")):
                async with running.connect(query) as client:
                    await client.say("Who?")
                    done = await client.until("response.done")
                    assert done["response"]["output"][0]["content"][0]["text"] == text
            async with httpx.AsyncClient(base_url=running.http) as client:
                listed = (await client.get("/v1/models")).json()
                assert [model["id"] for model in listed["data"]] == ["scripted", "vendor/other:1"]
                assert (await client.get("/v1/models/vendor/other:1")).json()["object"] == "model"
                assert (await client.get("/v1/models/none")).json()["error"]["code"] == "model_not_found"

    run(test())


def test_ready_is_red_before_the_model_is_warm_and_health_is_green(serve, run):
    async def test():
        engine = ScriptedEngine(text_reply("Hello."), start_seconds=0.2)
        async with serve(engine=engine, started=False) as running, httpx.AsyncClient(base_url=running.http) as client:
            starting = asyncio.create_task(running.start())
            assert (await client.get("/health")).json() == {"status": "ok"}
            ready = await client.get("/ready")
            assert (ready.status_code, ready.json()) == (503, {"status": "not ready", "reasons": {"scripted": "loading"}})
            assert (await refusal(running.url))[1]["code"] == "model_not_ready"
            await starting
            assert (await client.get("/ready")).status_code == 200
            async with running.connect():
                pass

    run(test())


def test_ready_is_red_once_the_engine_is_dead_and_responses_fail_at_once(serve, run):
    async def test():
        async with serve([EngineDeadError("The engine died.")]) as running, httpx.AsyncClient(base_url=running.http) as client:
            async with running.connect() as session:
                await session.say("Die.")
                failed = (await session.until("response.done"))["response"]
                assert failed["status_details"]["error"]["message"] == "The engine died."
                assert (await client.get("/ready")).json()["reasons"] == {"scripted": "the engine died"}
                assert (await client.get("/health")).status_code == 200
                await session.say("Again.")
                assert (await session.until("response.done"))["response"]["status"] == "failed"
                assert len(running.engine.requests) == 1
            assert (await refusal(running.url))[0] == 503

    run(test())


def test_the_health_watch_finds_a_dead_engine_without_a_turn(serve, run, eventually, monkeypatch):
    monkeypatch.setattr("omni_realtime_host.served_model.HEALTH_CHECK_S", 0.01)

    async def test():
        async with serve() as running:
            running.engine.die()
            await eventually(running.host.not_ready)

    run(test())


def test_the_page_says_what_runs_here_and_a_next_step(serve, run):
    async def test():
        async with serve(text_reply("Hello", " to you.")) as running, httpx.AsyncClient(base_url=running.http) as client:
            page = (await client.get("/")).text
            assert running.url in page
            assert "scripted-plugin 1.0" in page
            step = html.unescape(page.partition("<pre>")[2].partition("</pre>")[0])
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                await asyncio.to_thread(exec, step, {})
            assert printed.getvalue() == "Hello to you."

    run(test())


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("POST", "/v1/models", 405), ("GET", "/v1/realtime", 426)]
)
def test_http_errors_have_the_api_envelope(serve, run, method, path, status):
    async def test():
        async with serve() as running, httpx.AsyncClient(base_url=running.http) as client:
            answer = await client.request(method, path)
            assert answer.status_code == status
            assert answer.json()["error"]["type"] == "invalid_request_error"

    run(test())


def test_a_socket_elsewhere_is_told_where_clients_connect(serve, run):
    async def test():
        async with serve() as running:
            status, error = await refusal(running.url.replace("/v1/realtime", "/realtime"))
            assert (status, error["code"]) == (404, "unknown_url")
            assert "/v1/realtime" in error["message"]

    run(test())


def test_a_refused_upgrade_is_one_line_in_the_log_and_no_error(serve, run, caplog):
    async def test():
        async with serve() as running:
            await refusal(running.url + "?model=none")

    with caplog.at_level(logging.INFO):
        run(test())
    assert [record.getMessage() for record in caplog.records if "refused" in record.getMessage()] == [
        "an upgrade was refused: 404 model_not_found"
    ]
    assert all(record.levelno < logging.ERROR for record in caplog.records)


def test_a_model_that_cannot_start_is_named_and_what_started_is_closed(serve, run):
    class Broken(ScriptedEngine):
        async def start(self) -> None:
            raise RuntimeError("weights are missing: run the installer")

    async def test():
        engine = Broken()
        async with serve(engine=engine, started=False) as running:
            with pytest.raises(Exception, match="deployment 'scripted' did not start: weights are missing"):
                await running.start()
            assert engine.stopped

    run(test())
