"""What goes wrong under load: pitfalls "Transport and load"."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import pytest
import websockets

from omni_realtime.chat import ChatDelta
from omni_realtime.testing import ScriptedDetector, ScriptedEngine, ScriptedTranscriber, text_reply, tone

SECOND = np.zeros(24000, np.float32)


def test_the_client_vanishes_in_mid_generation_50_times_and_the_work_is_freed_within_a_second_each(serve, run, eventually):
    async def test():
        async with serve([*text_reply("Well,")[:-1], 60.0]) as running:
            for _ in range(50):
                async with running.connect() as client:
                    await client.say("Go on.")
                    await client.until("response.output_text.delta")
                    client.socket.transport.abort()
                await eventually(lambda: not running.engine.running)
            assert len(running.engine.closed) == 50
            async with running.connect() as client:
                await client.say("Still there?")
                await client.until("response.output_text.delta")
                assert len(running.host._connections) == 1

    run(test())


def test_the_client_vanishes_with_transcriptions_and_frames_under_way(serve, run, eventually):
    async def test():
        parts = {"detector": ScriptedDetector(), "transcriber": ScriptedTranscriber(seconds=60)}
        session = {"audio": {"input": {"transcription": {"model": "scripted"}}}}
        async with serve(session=session, **parts) as running:
            async with running.connect() as client:
                await client.append(tone(5), chunk=120_000)
                await client.send("input_audio_buffer.commit")
                await client.until("input_audio_buffer.committed")
                await eventually(lambda: running.transcriber.requests)
            await eventually(lambda: not running.host._connections)
            assert not running.host.models[0].detection._streams

    run(test())


def test_a_model_that_waits_20_s_leaves_pings_answered(serve, run):
    async def test():
        async with serve([20.0]) as running, running.connect() as client:
            await client.say("Think.")
            await client.until("response.created")
            for _ in range(5):
                pong = await client.socket.ping()
                await asyncio.wait_for(pong, 1.0)

    run(test())


def test_an_engine_that_never_waits_does_not_keep_the_loop_to_itself(serve, run):
    def forever(_request):
        while True:
            yield ChatDelta(text="a" * 100)

    async def test():
        async with serve(forever, text_reply("Soon.")) as running, running.connect() as client, running.connect() as other:
            await client.say("Go on.")
            for _ in range(100):
                await client.receive()
            await other.say("And I?")
            await other.until("response.done")
            await client.send("response.cancel")
            assert (await client.until("response.done"))["response"]["status"] == "cancelled"

    run(test())


def test_a_client_that_reads_slower_than_the_model_speaks_gets_everything(serve, run):
    chunks = [ChatDelta(audio=SECOND, rate=24000) for _ in range(120)]
    server = {"limits": {"output_bytes": 1024 * 1024, "output_events": 64}}

    async def test():
        engine = ScriptedEngine([*chunks, ChatDelta(finish_reason="stop")])
        async with serve(engine=engine, server=server) as running, running.connect(max_queue=1) as client:
            await client.say("Sing.", modality="audio")
            await asyncio.sleep(0.3)
            assert engine.running, "the engine has to wait for the client"
            done = await client.until("response.done")
            assert done["response"]["status"] == "completed"
            sent = [base64.b64decode(each["delta"]) for each in client.log.events if each["type"] == "response.output_audio.delta"]
            assert sum(map(len, sent)) == 2 * 120 * 24000

    run(test())


def test_a_client_that_stops_reading_gets_its_terminal_event_an_error_and_a_close(serve, run, eventually, monkeypatch):
    monkeypatch.setattr("omni_realtime_host.output_buffer.STALL_S", 0.3)
    server = {"limits": {"output_bytes": 1024 * 1024}}

    def forever(_request):
        while True:
            yield ChatDelta(audio=SECOND, rate=24000)

    async def test():
        async with serve(forever, server=server) as running, running.connect(max_queue=1) as client:
            await client.say("Sing.", modality="audio")
            [connection] = running.host._connections
            await eventually(lambda: connection._output.closing, 5)
            assert connection._output._bytes < 2 * 1024 * 1024
            assert not running.engine.running
            await client.rest()
            assert client.log.types()[-2:] == ["response.done", "error"]
            assert client.log.events[-1]["error"]["code"] == "output_buffer_overflow"
            assert client.log.events[-2]["response"]["status"] == "cancelled"
            assert client.socket.close_code == 1008

    run(test())


def test_events_that_are_no_deltas_fill_the_buffer_too(serve, run):
    server = {"limits": {"output_bytes": 1024 * 1024}}

    async def test():
        async with serve(server=server) as running, running.connect(max_queue=1) as client:
            await client.send("input_audio_buffer.append", audio=base64.b64encode(bytes(500_000)).decode())
            await client.send("input_audio_buffer.commit")
            item = (await client.until("conversation.item.done"))["item"]["id"]
            asked = 0
            while not next(iter(running.host._connections))._output.closing:
                await client.send("conversation.item.retrieve", item_id=item)
                asked += 1
                await asyncio.sleep(0)
            await client.rest()
            assert client.log.types()[-1] == "error"
            assert client.log.types().count("conversation.item.retrieved") <= asked

    run(test())


def test_sessions_beyond_the_limit_are_refused_and_a_closed_one_makes_room(serve, run, eventually):
    async def test():
        async with serve(server={"limits": {"sessions": 2}}) as running:
            async with running.connect(), running.connect():
                with pytest.raises(websockets.InvalidStatus) as refusal:
                    await websockets.connect(running.url)
                assert refusal.value.response.status_code == 503
                assert b"too_many_sessions" in refusal.value.response.body
            await eventually(lambda: not running.host._connections)
            async with running.connect():
                pass

    run(test())


def test_hundred_turns_leave_nothing_behind_but_the_conversation(serve, run):
    async def test():
        async with serve() as running, running.connect() as client:
            for _ in range(100):
                await client.say("Hello?")
                await client.until("response.done")
            [connection] = running.host._connections
            await client.send("session.update", session={"type": "realtime"})
            await client.until("session.updated")
            assert (connection._generations, connection._aborts, connection._transcriptions) == ({}, set(), set())
            assert connection._output._bytes == 0

    run(test())


def test_a_session_expires(serve, run):
    async def test():
        async with serve(server={"limits": {"session_duration_s": 1}}) as running, running.connect() as client:
            await client.rest()
            assert client.log.events[-1]["error"]["code"] == "session_expired"

    run(test())
