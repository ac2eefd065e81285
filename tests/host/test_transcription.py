"""Transcription over a real socket: sessions that only hear, and transcripts beside a conversation."""

from __future__ import annotations

import asyncio
import base64
import json
import wave
from dataclasses import replace
from pathlib import Path

import numpy as np
import pluggy
import pytest
import websockets
from openai import AsyncOpenAI

from omni_realtime import defaults, hookspecs
from omni_realtime.adapter import resolve
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import TokenLogprob, Transcript
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.plugins import Plugin
from omni_realtime.protocol import Capabilities
from omni_realtime.testing import ScriptedDetector, ScriptedEngine, ScriptedTranscriber, text_reply, tone

CAPITAL = Path(__file__).parents[2] / "examples" / "audio" / "capital.wav"
LOGPROBS = "item.input_audio_transcription.logprobs"
COMPLETED = "conversation.item.input_audio_transcription.completed"
SPEECH = np.concatenate([tone(0.3, level=0.0), tone(0.8), tone(0.9, level=0.0)])
SURE = Transcript(text="Hi.", logprobs=(TokenLogprob(token="Hi.", logprob=-0.5),))


def ears(transcript="Hi there."):
    return {"detector": ScriptedDetector(), "transcriber": ScriptedTranscriber(transcript)}


async def refusal(url):
    with pytest.raises(websockets.InvalidStatus) as raised:
        await websockets.connect(url)
    response = raised.value.response
    return response.status_code, json.loads(response.body)["error"]


@pytest.mark.parametrize(
    "query", ["?intent=transcription", "?model=scripted&intent=transcription", "?model=gpt-4o-transcribe&intent=transcription"]
)
def test_an_intent_opens_a_session_that_transcribes_and_never_answers(serve, run, query):
    async def test():
        async with serve(**ears()) as running, running.connect(query) as client:
            created = client.log.events[0]["session"]
            assert (created["type"], created["object"]) == ("transcription", "realtime.transcription_session")
            assert created["audio"]["input"]["transcription"] == {"model": "scripted"}
            await client.append(SPEECH)
            completed = await client.until(COMPLETED)
            assert completed["transcript"] == "Hi there."
            assert completed["usage"]["type"] == "duration"
            assert 0.9 < completed["usage"]["seconds"] < 2.2
            assert client.log.types()[1:] == [
                "input_audio_buffer.speech_started",
                "input_audio_buffer.speech_stopped",
                "input_audio_buffer.committed",
                "conversation.item.added",
                "conversation.item.done",
                "conversation.item.input_audio_transcription.delta",
                COMPLETED,
            ]
            await client.send("response.create", event_id="mine")
            error = (await client.until("error"))["error"]
            assert (error["code"], error["param"], error["event_id"]) == ("invalid_value", "type", "mine")
            assert running.engine.requests == []

    run(test())


def test_the_official_client_transcribes(serve, run):
    async def test():
        async with serve(**ears()) as running:
            client = AsyncOpenAI(base_url=running.url.removesuffix("/realtime").replace("ws", "http", 1), api_key="none")
            query = {"intent": "transcription"}
            url = running.url.removesuffix("/realtime")
            async with (
                client,
                client.with_options(websocket_base_url=url).realtime.connect(model="scripted", extra_query=query) as connection,
            ):
                assert (await connection.recv()).session.type == "transcription"
                transcription = {"model": "gpt-4o-mini-transcribe", "language": "en", "prompt": "Names."}
                await connection.session.update(
                    session={"type": "transcription", "audio": {"input": {"transcription": transcription, "turn_detection": None}}}
                )
                updated = await connection.recv()
                assert updated.session.audio.input.transcription.model == "scripted"
                assert updated.session.audio.input.turn_detection is None
                pcm = (SPEECH * 32767).astype("<i2").tobytes()
                await connection.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())
                await connection.input_audio_buffer.commit()
                async for event in connection:
                    if event.type == COMPLETED:
                        break
                assert (event.transcript, event.usage.seconds) == ("Hi there.", pytest.approx(2.0, abs=0.01))
                [request] = running.transcriber.requests
                assert (request.language, request.prompt) == ("en", "Names.")

    run(test())


@pytest.mark.parametrize("query", ["?intent=translation&model=scripted", "?intent=quicksilver"])
def test_an_unknown_intent_is_refused_before_the_upgrade(serve, run, query):
    async def test():
        async with serve(**ears()) as running:
            status, error = await refusal(running.url + query)
            assert (status, error["code"], error["param"]) == (400, "unsupported_value", "intent")
            assert "transcription" in error["message"]

    run(test())


@pytest.mark.parametrize(
    "query", ["?intent=transcription", "?intent=transcription&model=scripted", "?intent=transcription&model=whisper-1"]
)
def test_without_a_transcriber_the_intent_is_refused_and_says_what_to_configure(serve, run, query):
    async def test():
        async with serve() as running:
            status, error = await refusal(running.url + query)
            assert (status, error["code"], error["param"]) == (400, "unsupported_value", "intent")
            assert "`transcriber: local`" in error["message"]

    run(test())


@pytest.mark.parametrize(("name", "opened"), [("pen", "pen"), ("pencil", "pencil"), ("gpt-realtime-whisper", "pen"), ("writer", "pen")])
def test_the_url_may_name_a_transcription_model(serve, run, adapter, name, opened):
    """LiveKit names its transcription model there, and not the deployment."""

    async def test():
        writer = adapter(ScriptedEngine(), name="writer", **ears())
        writer = replace(writer, capabilities=replace(writer.capabilities, transcription_models=("pen", "pencil")))
        async with serve(more=(writer,)) as running, running.connect(f"?intent=transcription&model={name}") as client:
            assert client.log.events[0]["session"]["audio"]["input"]["transcription"] == {"model": opened}

    run(test())


def test_the_only_model_that_transcribes_needs_no_name(serve, run, adapter):
    async def test():
        deaf = adapter(ScriptedEngine(), name="deaf")
        async with serve(more=(deaf,), **ears()) as running:
            for query in ("?intent=transcription", "?intent=transcription&model=gpt-4o-transcribe"):
                async with running.connect(query) as client:
                    assert client.log.events[0]["session"]["type"] == "transcription"
            status, error = await refusal(running.url + "?intent=transcription&model=deaf")
            assert (status, error["param"]) == (400, "intent")
            assert "'deaf' does not transcribe" in error["message"]
            assert "'scripted'" in error["message"]
            status, error = await refusal(running.url + "?intent=transcription&model=nobody")
            assert (status, error["code"]) == (404, "model_not_found")

    run(test())


def test_one_of_several_that_transcribe_has_to_be_named(serve, run, adapter):
    async def test():
        second = adapter(ScriptedEngine(), name="second", transcriber=ScriptedTranscriber())
        third = adapter(ScriptedEngine(), name="third")
        async with serve(more=(second, third), **ears()) as running:
            for query in ("?intent=transcription", "?intent=transcription&model=whisper-1"):
                status, error = await refusal(running.url + query)
                assert (status, error["code"]) == (400, "missing_required_parameter")
                assert "'scripted', 'second'." in error["message"]
            async with running.connect("?intent=transcription&model=second") as client:
                assert client.log.events[0]["session"]["type"] == "transcription"

    run(test())


def test_a_conversation_has_transcripts_beside_its_answers(serve, run):
    """By a transcriber that the deployment names, whatever the model is."""

    async def test():
        session = {"audio": {"input": {"transcription": {"model": "whisper-1"}}}}
        async with serve(text_reply("Yes."), session=session, **ears()) as running, running.connect("?intent=conversation") as client:
            await client.append(SPEECH)
            while {COMPLETED, "response.done"} - set(client.log.types()):
                await client.receive()
            [completed] = [event for event in client.log.events if event["type"] == COMPLETED]
            assert (completed["transcript"], completed["usage"]["type"]) == ("Hi there.", "duration")
            assert "logprobs" not in completed

    run(test())


@pytest.mark.slow
@pytest.mark.parametrize("rate", [16000, 24000])
def test_a_model_of_another_plugin_is_written_down_by_the_local_transcriber(serve, run, rate):
    """``transcriber: local`` and ``detector: local`` beside any model, at the rate that the model takes."""

    class Model:
        @hookimpl
        def realtime_capabilities(self):
            return Capabilities(audio_input=True)

        @hookimpl
        def realtime_resample_rates(self):
            return ResampleRates(input=rate, output=24000)

        @hookimpl
        def realtime_engine(self):
            return ScriptedEngine(text_reply("Paris."))

    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(defaults)
    manager.register(Model())
    session = {"include": [LOGPROBS], "audio": {"input": {"transcription": {"model": "whisper-1"}}}}
    deployment = Deployment(name="omni", plugin="omni", detector="local", transcriber="local", session=session)
    lent = resolve(deployment, Plugin(name="omni", distribution="omni", version="1", hooks=(), hook=manager.hook))
    with wave.open(str(CAPITAL)) as file:
        asked = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768

    async def test():
        async with serve(more=(lent,)) as running:
            for query in ("?model=omni", "?intent=transcription"):
                async with running.connect(query) as client:
                    await client.append(np.concatenate([asked, tone(1.0, level=0.0)]))
                    completed = await client.until(COMPLETED)
                    assert completed["transcript"] == "What is the capital of France?"
                    assert completed["usage"] == {"type": "duration", "seconds": pytest.approx(2.5, abs=1)}
                    assert len(completed["logprobs"]) == 6

    run(test())


@pytest.mark.parametrize("kind", ["realtime", "transcription"])
def test_log_probabilities_come_where_they_are_included(serve, run, adapter, kind):
    async def test():
        sure = adapter(ScriptedEngine(text_reply("Yes.")), name="sure", **ears(SURE))
        sure = replace(sure, capabilities=replace(sure.capabilities, transcription_logprobs=True))
        query = "?model=sure&intent=transcription" if kind == "transcription" else "?model=sure"
        async with serve(more=(sure,)) as running, running.connect(query) as client:
            audio = {"input": {"transcription": {"model": "whisper-1"}, "turn_detection": None}}
            await client.send("session.update", session={"type": kind, "include": [LOGPROBS], "audio": audio})
            await client.append(SPEECH)
            await client.send("input_audio_buffer.commit")
            completed = await client.until(COMPLETED)
            assert completed["logprobs"] == [{"token": "Hi.", "bytes": list(b"Hi."), "logprob": -0.5}]

    run(test())


def test_a_transcriber_that_breaks_its_contract_fails_its_turn_alone(serve, run):
    class Broken(ScriptedTranscriber):
        async def transcribe(self, request):
            return "no transcript"

    async def test():
        parts = {"detector": ScriptedDetector(), "transcriber": Broken()}
        async with serve(**parts) as running, running.connect("?intent=transcription") as client:
            await client.append(SPEECH)
            failed = await client.until("conversation.item.input_audio_transcription.failed")
            assert failed["error"]["code"] == "server_error"
            await client.send("session.update", session={"type": "transcription"})
            await client.until("session.updated")

    run(test())


def test_sessions_of_both_kinds_do_not_wait_for_each_other(serve, run):
    async def test():
        async with (
            serve(text_reply("Yes."), **ears()) as running,
            running.connect("?intent=transcription") as hearing,
            running.connect() as talking,
        ):
            await asyncio.gather(hearing.append(SPEECH), talking.say("Hello?"))
            await hearing.until(COMPLETED)
            await talking.until("response.done")

    run(test())
