"""What is special about MiMo-Audio, on the real engine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import aclosing
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_host import EngineHost
from omni_models import MIMO_AUDIO
from realtime_client import RealtimeClient, tone

from omni_realtime.audio import encode_pcm16, write_wav
from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, GenerateRequest, TextPart, Turn
from omni_realtime_mimo_audio.prompt import build_prompt
from omni_realtime_mimo_audio.settings import MimoAudioSettings

Run = Callable[[Coroutine[Any, Any, None]], None]

pytestmark = pytest.mark.parametrize("omni_host", [MIMO_AUDIO], indirect=True, ids=str)

RATE = MIMO_AUDIO.input_rate


def heard(seconds: float, hertz: float) -> AudioPart:
    return AudioPart(samples=tone(seconds, hertz, RATE), rate=RATE, key=f"{seconds}-{hertz}")


def message(role: Any, *content: str | AudioPart) -> ChatMessage:
    return ChatMessage(role=role, content=tuple(TextPart(text=part) if isinstance(part, str) else part for part in content))


def prompt_of(*messages: ChatMessage, settings: MimoAudioSettings | None = None, **turn: Any) -> ChatPrompt:
    return build_prompt(Turn(messages=messages, **turn), settings or MimoAudioSettings())


async def generate(omni_host: EngineHost, request_id: str, prompt: ChatPrompt) -> tuple[str, np.ndarray[Any, Any], Any]:
    """Return the text, the samples and the usage of a spoken response."""
    request = GenerateRequest(request_id=request_id, prompt=prompt)
    async with aclosing(omni_host.adapter.engine.generate(request)) as stream:
        deltas = [delta async for delta in stream]
    samples = [delta.audio for delta in deltas if delta.audio is not None]
    return "".join(delta.text for delta in deltas), np.concatenate(samples), deltas[-1].usage


def test_the_template_makes_the_models_own_layout(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        prompt = prompt_of(
            message("user", heard(2.0, 440)),
            message("assistant", "it is late"),
            message("user", heard(1.0, 880)),
            message("assistant", "good night"),
            message("user", heard(0.1, 300), "and?"),
            instructions="Be kind.",
        )
        assert await omni_host.adapter.engine.count_tokens(prompt) == 88
        _, samples, usage = await generate(omni_host, "layout", prompt)
        assert samples.size
        assert (usage.input_text_tokens + usage.input_audio_tokens, usage.input_audio_tokens) == (88, 13 + 7 + 1)

    run(scenario())


def test_words_and_audio_interleave_and_pads_are_no_words(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await client.speak(encode_pcm16(tone(1.0, 437)))
            answer = await client.respond()
        turns = [kind for kind, _ in groupby(answer.kinds)]
        assert turns[:4] == ["text", "audio", "text", "audio"]
        assert answer.text
        assert "<|" not in answer.text
        words = answer.kinds.count("text")
        assert answer.usage["output_token_details"]["text_tokens"] > words
        await omni_host.freed()

    run(scenario())


def test_a_written_answer_is_words_alone(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await client.speak(encode_pcm16(tone(1.0, 437)))
            answer = await client.respond("text", max_output_tokens=24)
        assert set(answer.kinds) == {"text"}
        assert not omni_host.raw(answer.id).audio
        assert "<|" not in answer.text

    run(scenario())


async def ask_behind(running: RealtimeClient, waiting: RealtimeClient) -> str:
    """Have one response run and another wait behind it; return the other's id."""
    for client in (running, waiting):
        await client.say("tell me a story")
    await running.ask()
    while (await running.receive())["type"] != "response.output_audio_transcript.delta":
        pass
    await waiting.ask()
    created = await waiting.until("response.created")
    return str(created["response"]["id"])


def test_a_response_that_waits_for_another_can_be_cancelled(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as running, omni_host.connect() as waiting:
            response_id = await ask_behind(running, waiting)
            await waiting.connection.response.cancel(response_id=response_id)
            done = await waiting.until("response.done")
            assert (done["response"]["status"], done["response"]["output"]) == ("cancelled", [])
            assert not omni_host.raw(response_id).kinds
            assert await omni_host.running_requests(), "the other had ended already"
            first = await running.answer()
            await omni_host.freed()
            again = await waiting.respond()
        assert (first.status, again.status) == ("completed", "completed")
        assert len(first.audio) > 0

    run(scenario())


def test_a_client_that_vanishes_while_it_waits_leaves_nothing(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as running:
            async with omni_host.connect() as waiting:
                await ask_behind(running, waiting)
                await waiting.vanish()
            assert (await running.answer()).status == "completed"
            await omni_host.freed()

    run(scenario())


def test_responses_that_wait_are_served_one_after_another_unmixed(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        prompt = prompt_of(message("user", heard(1.0, 500)))
        text, samples, _ = await generate(omni_host, "alone", prompt)
        async with omni_host.connect() as running, omni_host.connect() as waiting:
            await ask_behind(running, waiting)
            again = await generate(omni_host, "behind two", prompt)
            assert (await running.answer()).status == (await waiting.answer()).status == "completed"
        assert again[0] == text
        np.testing.assert_array_equal(again[1], samples)

    run(scenario())


def test_the_voice_prompt_is_heard(omni_host: EngineHost, run: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"{hertz}.wav" for hertz in (220, 330)]
    for file in files:
        file.write_bytes(write_wav(tone(1.0, float(file.stem), 16000), 16000))

    async def scenario() -> None:
        said = message("user", heard(1.0, 500))
        voices = [MimoAudioSettings(voice_prompt=file) for file in (*files, files[0])]
        spoken = [
            await generate(omni_host, f"voice-{index}", prompt_of(said, settings=voice, instructions="Be kind."))
            for index, voice in enumerate(voices)
        ]
        assert [usage.input_audio_tokens for *_, usage in spoken] == [14, 14, 14]
        assert (spoken[0][0], len(spoken[0][1])) == (spoken[2][0], len(spoken[2][1]))
        assert not np.array_equal(spoken[0][1], spoken[1][1])
        np.testing.assert_array_equal(spoken[0][1], spoken[2][1])
        await omni_host.freed()

    run(scenario())


@pytest.mark.parametrize("samples", [1, 480])
def test_audio_of_less_than_one_token(omni_host: EngineHost, run: Run, samples: int) -> None:
    async def scenario() -> None:
        short = AudioPart(samples=tone(1, 437, RATE)[:samples], rate=RATE, key=f"short-{samples}")
        _, audio, usage = await generate(omni_host, f"short-{samples}", prompt_of(message("user", short)))
        assert audio.size
        assert usage.input_audio_tokens == 1

    run(scenario())
