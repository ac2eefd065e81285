"""A spoken conversation with the local model, through the official client on a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path

import pytest

from serving import ROOT, Talk, likeness, recording, talk

pytestmark = pytest.mark.slow

SILENCE = bytes(24000 * 2)
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


async def configure(client: Talk, **session: object) -> None:
    await client.connection.session.update(session={"type": "realtime", **session})
    await client.until("session.updated")


async def append(client: Talk, pcm: bytes) -> None:
    for start in range(0, len(pcm), 4800):
        await client.connection.input_audio_buffer.append(audio=base64.b64encode(pcm[start : start + 4800]).decode())


def audio_of(events) -> bytes:
    return b"".join(base64.b64decode(event.delta) for event in events if event.type == "response.output_audio.delta")


def transcript_of(events) -> str:
    return "".join(event.delta for event in events if event.type == "response.output_audio_transcript.delta")


def test_three_turns_on_one_connection(server: str, write_down: Callable[[bytes], str]):
    async def conversation():
        async with talk(server) as client:
            await client.until("session.created")
            await configure(client, audio={"input": {"transcription": {"model": "whisper-1"}}})

            await append(client, recording("capital") + SILENCE)
            first = await client.until("response.done", "conversation.item.input_audio_transcription.completed")
            asked = next(e.transcript for e in first if e.type.endswith("transcription.completed"))

            await configure(client, audio={"input": {"turn_detection": None}})
            await append(client, recording("week"))
            await client.connection.input_audio_buffer.commit()
            await client.connection.response.create()
            second = await client.until("response.done", "conversation.item.input_audio_transcription.completed")

            await configure(client, audio={"input": {"turn_detection": {"type": "server_vad"}}})
            await append(client, recording("sky") + SILENCE)
            heard = await client.until("response.output_audio.delta")
            await append(client, recording("interrupt") + SILENCE)
            cut_off = await client.until("input_audio_buffer.speech_started", "response.done")
            interrupted = next(e.response for e in cut_off if e.type == "response.done")
            item_id = interrupted.output[0].id
            await client.connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=300)
            third = await client.until("conversation.item.truncated", "response.done")
            await client.connection.conversation.item.retrieve(item_id=item_id)
            kept = (await client.until("conversation.item.retrieved"))[-1].item

            assert "capital of france" in asked.lower()
            assert "paris" in transcript_of(first).lower()
            assert "7" in transcript_of(second) or "seven" in transcript_of(second).lower()
            assert interrupted.status == "cancelled"
            assert interrupted.status_details.reason == "turn_detected"
            said = transcript_of(heard) + transcript_of(cut_off)
            assert said.startswith(kept.content[0].transcript)
            assert len(kept.content[0].transcript) < len(said)
            assert len(base64.b64decode(kept.content[0].audio)) == 300 * 48
            assert "rome" in transcript_of(third).lower()
            return [(transcript_of(events), audio_of(events)) for events in (first, second, third)]

    for transcript, audio in asyncio.run(conversation()):
        assert likeness(write_down(audio), transcript) > 0.75, transcript


def test_the_answer_begins_before_it_is_complete(server: str):
    """The story takes the model many sentences' time, so that a busy machine does not hide that the first one is spoken at once."""
    story = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Tell me a long story about a fox."}]}

    async def order():
        async with talk(server) as client:
            await client.until("session.created")
            await client.connection.conversation.item.create(item=story)
            await client.connection.response.create(response={"max_output_tokens": 300})
            return [event.type for event in await client.until("response.done")]

    kinds = asyncio.run(order())
    first_audio = kinds.index("response.output_audio.delta")
    assert "response.output_audio_transcript.delta" in kinds[first_audio:]


@pytest.mark.parametrize("encoding", ["audio/pcmu", "audio/pcma"])
def test_a_telephone_is_understood_and_answered_at_8000_bytes_a_second(server: str, write_down: Callable[[bytes], str], encoding: str):
    from omni_realtime.audio import FORMATS, decode_pcm16, encode_pcm16, resample

    wire = FORMATS[encoding]

    async def call():
        async with talk(server) as client:
            await client.until("session.created")
            await configure(
                client,
                audio={
                    "input": {"format": {"type": encoding}, "transcription": {"model": "whisper-1"}},
                    "output": {"format": {"type": encoding}},
                },
            )
            speech = wire.encode(resample(decode_pcm16(recording("capital") + SILENCE), 24000, 8000))
            for start in range(0, len(speech), 160):
                await client.connection.input_audio_buffer.append(audio=base64.b64encode(speech[start : start + 160]).decode())
            return await client.until("response.done", "conversation.item.input_audio_transcription.completed")

    events = asyncio.run(call())
    heard = next(e.transcript for e in events if e.type.endswith("transcription.completed"))
    assert likeness(heard, "What is the capital of France?") > 0.8
    speech = encode_pcm16(resample(wire.decode(audio_of(events)), 8000, 24000))
    assert likeness(write_down(speech), transcript_of(events)) > 0.6


def test_a_tool_call_there_and_back(server: str):
    async def call():
        async with talk(server) as client:
            await client.until("session.created")
            await configure(client, tools=[WEATHER], tool_choice="required", output_modalities=["text"])
            question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is the weather in Paris?"}]}
            await client.connection.conversation.item.create(item=question)
            await client.connection.response.create()
            events = await client.until("response.done")
            done = next(e for e in events if e.type == "response.function_call_arguments.done")
            output = {"type": "function_call_output", "call_id": done.call_id, "output": json.dumps({"weather": "sunny, 25 degrees"})}
            await client.connection.conversation.item.create(item=output)
            await client.connection.response.create(response={"tool_choice": "none"})
            return done, await client.until("response.done")

    done, answer = asyncio.run(call())
    assert done.name == "get_weather"
    assert "paris" in json.loads(done.arguments)["city"].lower()
    assert answer[-1].response.status == "completed"
    assert answer[-1].response.output[0].content[0].text


def test_two_conversations_at_once_do_not_mix(server: str):
    async def ask(name: str, word: str):
        async with talk(server) as client:
            await client.until("session.created")
            await append(client, recording(name) + SILENCE)
            assert word in transcript_of(await client.until("response.done")).lower()

    async def both():
        await asyncio.gather(ask("capital", "paris"), ask("interrupt", "rome"))

    asyncio.run(both())


def test_the_example_holds_its_conversation(server: str, tmp_path: Path, write_down: Callable[[bytes], str]):
    command = [sys.executable, "examples/voice_turn.py", "--url", f"{server}/v1", "--out", str(tmp_path / "reply.wav")]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert shown.returncode == 0, shown.stderr
    assert "What is the capital of France?" in shown.stdout
    assert "Paris" in shown.stdout
    assert "Stop. What is the capital of Italy?" in shown.stdout
    with wave.open(str(tmp_path / "reply.wav")) as reply:
        assert likeness(write_down(reply.readframes(reply.getnframes())), "The capital of France is Paris.") > 0.75


def test_the_example_says_what_to_do_without_a_server():
    command = [sys.executable, "examples/voice_turn.py", "--url", "http://127.0.0.1:9/v1"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 1
    assert "make serve" in shown.stderr
