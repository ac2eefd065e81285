"""The beta dialect on a real socket: who gets it, and a client of its own time."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import numpy as np
import pytest
import websockets
from openai import AsyncOpenAI
from starlette.requests import HTTPConnection

from beta_wire import check_beta_event
from omni_realtime.chat import ChatDelta, ToolCallDelta
from omni_realtime.testing import ScriptedDetector, ScriptedTranscriber, call_reply, spoken_reply, text_reply, tone
from omni_realtime_host.dialect_choice import speaks_beta

BETA = {"OpenAI-Beta": "realtime=v1"}
LOOK = {"type": "function", "name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
SPEECH = np.concatenate([tone(1.0), np.zeros(24000)]).astype(np.float32)


def chunks(samples: np.ndarray) -> list[str]:
    """PCM16 in base64, 100 ms each."""
    pcm = (samples * 32767).astype("<i2").tobytes()
    return [base64.b64encode(pcm[start : start + 4800]).decode() for start in range(0, len(pcm), 4800)]


def upgrade(*headers: tuple[str, str], subprotocols: tuple[str, ...] = ()) -> HTTPConnection:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    return HTTPConnection({"type": "websocket", "headers": raw, "subprotocols": list(subprotocols)})


@pytest.mark.parametrize(
    ("connection", "beta"),
    [
        (upgrade(("OpenAI-Beta", "realtime=v1")), True),
        (upgrade(("openai-beta", "assistants=v2, realtime=v1")), True),
        (upgrade(("OpenAI-Beta", "assistants=v2"), ("OpenAI-Beta", "realtime=v1")), True),
        (upgrade(subprotocols=("realtime", "openai-insecure-api-key.x", "openai-beta.realtime-v1")), True),
        (upgrade(), False),
        (upgrade(("OpenAI-Beta", "assistants=v2")), False),
        (upgrade(("OpenAI-Beta", "realtime=v2")), False),
        (upgrade(("OpenAI-Beta", "")), False),
        (upgrade(subprotocols=("realtime", "openai-insecure-api-key.openai-beta.realtime-v1")), False),
    ],
)
def test_the_dialect_is_the_beta_where_the_upgrade_asks_for_it(connection, beta):
    assert speaks_beta(connection) is beta


class BetaSocket:
    """A bare client of the beta dialect that checks every frame it receives."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def until(self, kind: str) -> dict[str, Any]:
        while True:
            self.events.append(check_beta_event(await asyncio.wait_for(self.socket.recv(), 30)))
            if self.events[-1]["type"] == kind:
                return self.events[-1]

    async def append(self, samples: np.ndarray) -> None:
        for chunk in chunks(samples):
            await self.send("input_audio_buffer.append", audio=chunk)

    async def say(self, text: str) -> None:
        await self.send(
            "conversation.item.create", item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        )
        await self.send("response.create")


@pytest.mark.parametrize(
    "options",
    [
        {"additional_headers": BETA},
        {"subprotocols": ["realtime", "openai-insecure-api-key.k", "openai-beta.realtime-v1"]},
    ],
    ids=["header", "subprotocol"],
)
def test_a_session_in_the_beta_dialect(serve, run, options):
    async def test():
        async with serve(text_reply("Hello.")) as running, websockets.connect(f"{running.url}?model=scripted", **options) as socket:
            client = BetaSocket(socket)
            assert socket.subprotocol == ("realtime" if "subprotocols" in options else None)
            created = await client.until("session.created")
            conversation = await client.until("conversation.created")
            assert created["session"]["modalities"] == ["audio", "text"]
            await client.send("session.update", session={"modalities": ["text"], "temperature": 0.8})
            await client.until("session.updated")
            await client.say("Hello?")
            done = await client.until("response.done")
            assert done["response"]["output"][0]["content"] == [{"type": "text", "text": "Hello."}]
            assert done["response"]["conversation_id"] == conversation["conversation"]["id"]

    run(test())


def test_without_the_header_a_session_is_ga_and_refuses_the_beta_by_name(serve, run):
    async def test():
        async with serve() as running, running.connect(additional_headers={"OpenAI-Beta": "assistants=v2"}) as client:
            await client.send("session.update", session={"type": "realtime", "modalities": ["text"]})
            assert (await client.until("error"))["error"]["param"] == "session.modalities"

    run(test())


def test_a_transcription_session_in_the_beta_dialect(serve, run):
    parts = {"detector": ScriptedDetector(), "transcriber": ScriptedTranscriber("What is it?")}

    async def test():
        url = "?model=scripted&intent=transcription"
        async with serve(**parts) as running, websockets.connect(running.url + url, additional_headers=BETA) as socket:
            client = BetaSocket(socket)
            await client.until("transcription_session.created")
            await client.send("transcription_session.update", session={"input_audio_transcription": {"model": "whisper-1"}})
            await client.until("transcription_session.updated")
            await client.append(SPEECH)
            completed = await client.until("conversation.item.input_audio_transcription.completed")
            assert completed["transcript"] == "What is it?"

    run(test())


def test_a_host_that_drains_lets_a_waiting_create_have_its_response(serve, run):
    gate = asyncio.Event()
    early_call = [ChatDelta(tool_call=ToolCallDelta(name="look", arguments="{}")), ChatDelta(text="Well."), gate]

    async def test():
        scripts = ([*early_call, ChatDelta(finish_reason="stop")], text_reply("Blue."))
        async with serve(*scripts) as running, websockets.connect(running.url, additional_headers=BETA) as socket:
            client = BetaSocket(socket)
            await client.send("session.update", session={"modalities": ["text"], "tools": [LOOK]})
            await client.until("session.updated")
            await client.say("Which colour has the sky?")
            call = (await client.until("response.output_item.done"))["item"]
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "1"}
            await client.send("conversation.item.create", item=output)
            await client.send("response.create")
            await client.send("input_audio_buffer.clear")
            await client.until("input_audio_buffer.cleared")
            draining = asyncio.create_task(running.host.drain())
            await asyncio.sleep(0)
            gate.set()
            await client.until("response.done")
            done = await client.until("response.done")
            assert done["response"]["output"][0]["content"] == [{"type": "text", "text": "Blue."}]
            with pytest.raises(websockets.ConnectionClosed):
                await client.until("error")
            await draining

    run(test())


async def until(connection, kind):
    """Receive to the first event of a type."""
    events = []
    while not events or events[-1].type != kind:
        events.append(await connection.recv())
        assert events[-1].type != "error", events[-1]
    return events


def test_the_official_client_of_the_beta(serve, run):
    reply = tone(0.5)
    session = {
        "modalities": ["audio", "text"],
        "voice": "alloy",
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "input_audio_transcription": {"model": "whisper-1"},
        "turn_detection": {"type": "server_vad", "threshold": 0.5},
        "tools": [LOOK],
        "tool_choice": "auto",
        "temperature": 0.8,
        "max_response_output_tokens": 4096,
    }
    scripts = (spoken_reply("It is a tone.", reply), call_reply("look", "{}"), text_reply("Blue."))
    parts = {"detector": ScriptedDetector(), "transcriber": ScriptedTranscriber("What is it?")}

    async def a_spoken_turn(connection):
        for chunk in chunks(SPEECH):
            await connection.input_audio_buffer.append(audio=chunk)
        events = await until(connection, "response.done")
        audio = b"".join(base64.b64decode(event.delta) for event in events if event.type == "response.audio.delta")
        assert len(audio) == 2 * len(reply)
        assert "".join(event.delta for event in events if event.type == "response.audio_transcript.delta") == "It is a tone."

    async def a_tool_call(connection):
        await connection.response.create(response={"modalities": ["text"]})
        call = (await until(connection, "response.output_item.done"))[-1].item
        await connection.conversation.item.create(item={"type": "function_call_output", "call_id": call.call_id, "output": "1"})
        await connection.response.create(response={"modalities": ["text"]})
        first, second = [(await until(connection, "response.done"))[-1].response for _ in range(2)]
        assert first.output[0].type == "function_call"
        assert second.output[0].content[0].text == "Blue."

    async def test():
        async with serve(*scripts, **parts) as running:
            address = running.url.removesuffix("/realtime")
            client = AsyncOpenAI(api_key="none", base_url=f"{running.http}/v1", websocket_base_url=address)
            async with client, client.beta.realtime.connect(model="scripted") as connection:
                await connection.session.update(session=session)
                await until(connection, "session.updated")
                await a_spoken_turn(connection)
                await a_tool_call(connection)

    run(test())
