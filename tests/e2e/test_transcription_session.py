"""Real speech, written down by the local model for the official client."""

from __future__ import annotations

import asyncio
import base64
import math

import pytest

from serving import MODEL, Talk, recording, talk

pytestmark = pytest.mark.slow

COMPLETED = "conversation.item.input_audio_transcription.completed"
LOGPROBS = "item.input_audio_transcription.logprobs"
SILENCE = bytes(24000 * 2)
WORDS = ["What is the capital of France?", "How many days are there in a week?", "Why is the sky blue?"]


async def append(client: Talk, pcm: bytes) -> None:
    for start in range(0, len(pcm), 4800):
        await client.connection.input_audio_buffer.append(audio=base64.b64encode(pcm[start : start + 4800]).decode())


@pytest.mark.parametrize("model", [MODEL, "gpt-4o-transcribe"])
def test_a_session_that_only_transcribes(server: str, model: str) -> None:
    async def test() -> None:
        async with talk(server, model, intent="transcription") as client:
            [created] = await client.until("session.created")
            assert created.session.type == "transcription"
            await append(client, b"".join(recording(name) + SILENCE for name in ("capital", "week", "sky")))
            events = [event for _ in WORDS for event in await client.until(COMPLETED)]
            assert [event.transcript for event in events if event.type == COMPLETED] == WORDS
            kinds = [event.type.rpartition(".")[0] for event in events]
            assert not [kind for kind in kinds if kind.startswith("response")]
            for completed in (event for event in events if event.type == COMPLETED):
                assert completed.usage.type == "duration"
                assert 1 < completed.usage.seconds < 5

    asyncio.run(test())


def test_log_probabilities_of_each_word_on_a_manual_turn(server: str) -> None:
    async def test() -> None:
        async with talk(server, intent="transcription") as client:
            await client.until("session.created")
            audio = {"input": {"transcription": {"model": "whisper-1", "language": "en"}, "turn_detection": None}}
            await client.connection.session.update(session={"type": "transcription", "include": [LOGPROBS], "audio": audio})
            await client.until("session.updated")
            await append(client, recording("capital"))
            await client.connection.input_audio_buffer.commit()
            *_, delta, completed = await client.until(COMPLETED)
            assert completed.transcript == delta.delta == WORDS[0]
            assert "".join(word.token for word in completed.logprobs) == completed.transcript
            assert all(bytes(word.bytes).decode() == word.token for word in completed.logprobs)
            assert math.exp(sum(word.logprob for word in completed.logprobs)) > 0.2
            assert delta.logprobs == completed.logprobs

    asyncio.run(test())


def test_log_probabilities_beside_an_answer(server: str) -> None:
    async def test() -> None:
        async with talk(server) as client:
            await client.until("session.created")
            audio = {"input": {"transcription": {"model": "whisper-1"}}}
            session = {"type": "realtime", "include": [LOGPROBS], "output_modalities": ["text"], "audio": audio}
            await client.connection.session.update(session=session)
            await client.until("session.updated")
            await append(client, recording("capital") + SILENCE)
            events = await client.until(COMPLETED, "response.done")
            [completed] = [event for event in events if event.type == COMPLETED]
            assert len(completed.logprobs) == 6
            [done] = [event for event in events if event.type == "response.done"]
            assert "Paris" in done.response.output[0].content[0].text

    asyncio.run(test())
