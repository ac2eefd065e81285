"""Conversations over a real socket with a scripted model; every frame is checked against the official client's models and the order."""

from __future__ import annotations

import asyncio
import base64
import time

import numpy as np
import pytest
from openai import AsyncOpenAI

from omni_realtime.testing import ScriptedDetector, ScriptedEngine, ScriptedTranscriber, call_reply, spoken_reply, text_reply, tone

SPEECH = np.concatenate([np.zeros(12000), tone(1.0), np.zeros(24000)]).astype(np.float32)

BAD_FRAMES = [
    b"\x00",
    b"{}",
    *("null", "[]", '"x"', "{}", "{", "NaN"),
    *('{"type":5}', '{"type":"nonsense"}', '{"type":"\\ud800"}'),
    "[" * 100 + "]" * 100,
]


def audio_of(events: list[dict]) -> bytes:
    return b"".join(base64.b64decode(event["delta"]) for event in events if event["type"] == "response.output_audio.delta")


def test_a_text_turn(serve, run):
    async def test():
        async with serve(text_reply("Par", "is.")) as running, running.connect("?model=scripted") as client:
            await client.say("What is the capital of France?")
            done = await client.until("response.done")
            assert done["response"]["status"] == "completed"
            assert done["response"]["output"][0]["content"] == [{"type": "output_text", "text": "Paris."}]
            [request] = running.engine.requests
            assert request.modalities == ("text",)
            assert request.prompt.messages[-1].content[0].text == "What is the capital of France?"

    run(test())


def test_a_spoken_turn_with_server_vad_and_transcription(serve, run):
    reply = tone(0.7, rate=24000)

    async def test():
        parts = {"detector": ScriptedDetector(), "transcriber": ScriptedTranscriber("What is it?")}
        session = {"audio": {"input": {"transcription": {"model": "scripted"}}}}
        async with serve(spoken_reply("It is a tone.", reply), session=session, **parts) as running, running.connect() as client:
            await client.append(SPEECH)
            done = await client.until("response.done")
            while "conversation.item.input_audio_transcription.completed" not in client.log.types():
                await client.receive()
            types = client.log.types()
            order = ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.committed"]
            assert [kind for kind in types if kind in order] == order
            assert len(audio_of(client.log.events)) == 2 * len(reply)
            assert done["response"]["output"][0]["content"][0]["transcript"] == "It is a tone."
            [request] = running.transcriber.requests
            assert request.rate == 16000
            assert 0.9 < len(request.samples) / 16000 < 2.2

    run(test())


def test_speech_interrupts_a_response(serve, run):
    async def test():
        detector = ScriptedDetector()
        endless = [*spoken_reply("One two three.", tone(0.5))[:-1], 60.0]
        async with serve(endless, text_reply("Yes?"), detector=detector) as running, running.connect() as client:
            await client.say("Count.", modality="audio")
            await client.until("response.output_audio.delta")
            await client.append(SPEECH)
            cut = await client.until("response.done")
            assert cut["response"]["status"] == "cancelled"
            assert cut["response"]["status_details"]["reason"] == "turn_detected"
            answer = await client.until("response.done")
            assert answer["response"]["status"] == "completed"
            assert len(running.engine.requests) == 2
            assert cut["response"]["id"] in running.engine.closed

    run(test())


def test_cancel_frees_the_engine(serve, run, eventually):
    async def test():
        async with serve([*text_reply("Well,")[:-1], 60.0], text_reply("Again.")) as running, running.connect() as client:
            await client.say("Go on.")
            await client.until("response.output_text.delta")
            await client.send("response.cancel")
            done = await client.until("response.done")
            assert done["response"]["status_details"]["reason"] == "client_cancelled"
            await eventually(lambda: not running.engine.running)
            assert running.engine.aborts == [done["response"]["id"]]
            await client.say("Again.")
            assert (await client.until("response.done"))["response"]["status"] == "completed"

    run(test())


@pytest.mark.parametrize("engine_options", [{"ignore_abort": True}, {"swallow_cancel": True}], ids=str)
def test_cancel_frees_an_engine_that_is_deaf_in_one_ear(serve, run, eventually, engine_options):
    async def test():
        engine = ScriptedEngine([*text_reply("Well,")[:-1], 60.0, *text_reply("more")], text_reply("Again."), **engine_options)
        async with serve(engine=engine) as running, running.connect() as client:
            await client.say("Go on.")
            await client.until("response.output_text.delta")
            await client.send("response.cancel")
            await client.until("response.done")
            await eventually(lambda: not running.engine.running)
            await client.say("Again.")
            assert (await client.until("response.done"))["response"]["output"][0]["content"][0]["text"] == "Again."

    run(test())


@pytest.mark.parametrize("before", [(), tuple(text_reply("Well,")[:-1])], ids=["before the first delta", "amid the deltas"])
def test_the_model_raises(serve, run, before):
    async def test():
        async with serve([*before, ValueError("a secret prompt")], text_reply("Fine.")) as running, running.connect() as client:
            await client.say("Fail.")
            failed = (await client.until("response.done"))["response"]
            assert failed["status"] == "failed"
            assert failed["status_details"]["error"] == {
                "type": "server_error",
                "code": "server_error",
                "message": "The model failed to answer. Try again.",
            }
            await client.say("Again.")
            assert (await client.until("response.done"))["response"]["status"] == "completed"

    run(test())


def test_a_failure_is_logged_without_what_it_says(serve, run, caplog):
    async def test():
        async with serve([ValueError("a secret prompt")]) as running, running.connect() as client:
            await client.say("Fail.")
            await client.until("response.done")

    run(test())
    assert "ValueError" in caplog.text
    assert "scripted_engine.py" in caplog.text
    assert "secret" not in caplog.text


def test_a_tool_call(serve, run):
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}

    async def test():
        async with serve(call_reply("weather", '{"city":', '"Paris"}')) as running, running.connect() as client:
            await client.send("session.update", session={"type": "realtime", "tools": [tool], "output_modalities": ["text"]})
            await client.until("session.updated")
            await client.send("response.create")
            done = await client.until("response.done")
            [call] = done["response"]["output"]
            assert (call["name"], call["arguments"]) == ("weather", '{"city":"Paris"}')
            assert running.engine.requests[0].prompt.tools[0].name == "weather"

    run(test())


@pytest.mark.parametrize("frame", BAD_FRAMES, ids=repr)
def test_a_bad_frame_earns_one_error_and_the_session_lives(serve, run, frame):
    async def test():
        async with serve() as running, running.connect() as client:
            await client.socket.send(frame)
            await client.until("error")
            await client.say("Hello?")
            assert (await client.until("response.done"))["response"]["status"] == "completed"
            assert client.log.types().count("error") == 1

    run(test())


def test_15_mib_of_audio_in_one_append_is_legal(serve, run):
    async def test():
        async with serve() as running, running.connect() as client:
            await client.send("input_audio_buffer.append", audio=base64.b64encode(bytes(15 * 1024 * 1024)).decode())
            await client.send("input_audio_buffer.commit")
            await client.until("input_audio_buffer.committed")

    run(test())


def test_a_frame_beyond_the_limit_is_refused_and_the_session_lives(serve, run):
    async def test():
        async with serve() as running, running.connect() as client:
            await client.send("input_audio_buffer.append", audio="A" * (21 * 1024 * 1024))
            assert (await client.until("error"))["error"]["code"] == "event_too_large"
            await client.say("Hello?")
            await client.until("response.done")

    run(test())


def test_the_official_client(serve, run):
    async def test():
        async with serve(spoken_reply("Hello there.", tone(0.3))) as running:
            client = AsyncOpenAI(api_key="none", base_url=f"{running.http}/v1")
            async with client, client.realtime.connect(model="scripted") as connection:
                assert (await connection.recv()).type == "session.created"
                await connection.session.update(session={"type": "realtime", "output_modalities": ["audio"]})
                item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello!"}]}
                await connection.conversation.item.create(item=item)
                await connection.response.create()
                audio = b""
                async for event in connection:
                    if event.type == "response.output_audio.delta":
                        audio += base64.b64decode(event.delta)
                    if event.type == "response.done":
                        break
                assert event.response.status == "completed"
                assert len(audio) == 2 * 0.3 * 24000
            async with AsyncOpenAI(api_key="none", base_url=f"{running.http}/v1") as client:
                assert [model.id async for model in client.models.list()] == ["scripted"]

    run(test())


def test_two_sessions_at_once_do_not_wait_for_each_other(serve, run):
    async def test():
        blocked = asyncio.Event()
        scripts = ([blocked, *text_reply("Late.")], text_reply("Soon."))
        async with serve(*scripts) as running, running.connect() as slow, running.connect() as quick:
            await slow.say("Slow?")
            await slow.until("response.created")
            await quick.say("Quick?")
            assert (await quick.until("response.done"))["response"]["output"][0]["content"][0]["text"] == "Soon."
            blocked.set()
            assert (await slow.until("response.done"))["response"]["output"][0]["content"][0]["text"] == "Late."

    run(test())


def test_time_to_the_first_delta_stays_flat_to_32_sessions(serve, run):
    async def first_delta(client) -> float:
        started = time.perf_counter()
        await client.say("Hello?")
        await client.until("response.output_text.delta")
        elapsed = time.perf_counter() - started
        await client.until("response.done")
        return elapsed

    async def test():
        async with serve([0.05, *text_reply("Hello.")]) as running:
            connections = [running.connect() for _ in range(32)]
            clients = [await connection.__aenter__() for connection in connections]
            alone = await first_delta(clients[0])
            together = await asyncio.gather(*map(first_delta, clients))
            for connection in connections:
                await connection.__aexit__(None, None, None)
            assert max(together) < alone + 2.0

    run(test())
