"""What is special about MiniCPM-o, on the real engine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine_host import EngineHost
from omni_models import MINICPMO
from realtime_client import Answer, tone
from vllm.sampling_params import RequestOutputKind
from vllm_omni.model_executor.stage_input_processors import minicpmo_4_5_omni

from omni_realtime.audio import encode_pcm16, write_wav
from omni_realtime.chat import AudioPart, ChatMessage, GenerateRequest, TextPart, Turn
from omni_realtime_minicpmo.prompt import build_prompt
from omni_realtime_minicpmo.settings import MinicpmoSettings

Run = Callable[[Coroutine[Any, Any, None]], None]

pytestmark = pytest.mark.parametrize("omni_host", [MINICPMO], indirect=True, ids=str)

END, SPEECH_BEGINS = 151645, 151703
RATE = MINICPMO.input_rate


def fix_of(omni_host: EngineHost) -> Callable[..., list[Any]]:
    fix: Callable[..., list[Any]] = omni_host.adapter.plugin.hook.realtime_fix_sampling_params
    return fix


@contextmanager
def fixed_by(omni_host: EngineHost, fix: Callable[..., list[Any]]) -> Iterator[None]:
    """Has the engine ask another hook."""
    engine: Any = omni_host.adapter.engine
    own = engine._hook
    engine._hook = SimpleNamespace(realtime_fix_sampling_params=fix)
    try:
        yield
    finally:
        engine._hook = own


async def answer_to(omni_host: EngineHost, **response: Any) -> Answer:
    async with omni_host.connect() as client:
        await client.speak(encode_pcm16(tone(1.0, 437)))
        return await client.respond(**response)


def texts(omni_host: EngineHost, answer: Answer) -> int:
    return omni_host.raw(answer.id).kinds.count("text")


def test_output_kinds_on_the_real_stages(omni_host: EngineHost) -> None:
    engine: Any = omni_host.adapter.engine
    assert [stage.model_stage for stage in engine._stages] == ["llm", "tts", "code2wav"]

    def kinds(*modalities: str) -> list[Any]:
        params = engine._default_params()
        return [given.output_kind for given in fix_of(omni_host)(stages=engine._stages, params=params, modalities=modalities)]

    final, delta = RequestOutputKind.FINAL_ONLY, RequestOutputKind.DELTA
    assert kinds("audio") == [final, delta, delta]
    assert kinds("text") == [delta, delta, delta]


def test_the_transcript_comes_in_one_piece_before_the_audio(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        answer = await answer_to(omni_host)
        assert texts(omni_host, answer) == 1
        assert answer.kinds == ["text"] + ["audio"] * answer.kinds.count("audio")
        assert answer.kinds.count("audio") > 1

    run(scenario())


def test_a_text_response_streams(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        assert texts(omni_host, await answer_to(omni_host, modality="text")) > 1

    run(scenario())


def test_wrong_output_kinds_are_caught(omni_host: EngineHost, run: Run) -> None:
    def deltas(*, params: list[Any], **_: Any) -> list[Any]:
        return params

    def cumulative(*, params: list[Any], **given: Any) -> list[Any]:
        params = fix_of(omni_host)(params=params, **given)
        params[2].output_kind = RequestOutputKind.CUMULATIVE
        return params

    async def scenario() -> None:
        with fixed_by(omni_host, deltas):
            assert texts(omni_host, await answer_to(omni_host, max_output_tokens=8)) > 1
        with fixed_by(omni_host, cumulative):
            assert (await answer_to(omni_host)).status == "failed"
        assert texts(omni_host, await answer_to(omni_host)) == 1

    run(scenario())


async def check_alive(omni_host: EngineHost) -> None:
    await omni_host.omni.check_health()
    answer = await answer_to(omni_host)
    assert answer.status in {"completed", "incomplete"}
    assert answer.audio
    await omni_host.freed()


def test_a_reply_of_one_token_gets_a_second_and_the_talker_lives(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        answer = await answer_to(omni_host, max_output_tokens=1)
        assert (answer.status, answer.done["status_details"]["reason"]) == ("incomplete", "max_output_tokens")
        assert answer.usage["output_token_details"]["text_tokens"] == 2
        assert answer.audio
        await check_alive(omni_host)

    run(scenario())


def test_a_text_response_of_one_token_has_one(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        answer = await answer_to(omni_host, modality="text", max_output_tokens=1)
        assert (answer.status, answer.usage["output_tokens"]) == ("incomplete", 1)

    run(scenario())


@pytest.mark.parametrize("token", [END, SPEECH_BEGINS], ids=["the end", "the beginning of speech"])
def test_a_model_that_wants_to_say_nothing_says_something_and_the_talker_lives(omni_host: EngineHost, run: Run, token: int) -> None:
    def eager(*, params: list[Any], **given: Any) -> list[Any]:
        params[0].logit_bias = {token: 100.0}
        return fix_of(omni_host)(params=params, **given)

    async def scenario() -> None:
        with fixed_by(omni_host, eager):
            answer = await answer_to(omni_host, max_output_tokens=4)
        assert answer.usage["output_token_details"]["text_tokens"] >= 2
        assert answer.audio
        await check_alive(omni_host)

    run(scenario())


@pytest.mark.parametrize("samples", [1, 800])
def test_audio_of_less_than_one_token(omni_host: EngineHost, run: Run, samples: int) -> None:
    async def scenario() -> None:
        assert (await generate(omni_host, AudioPart(samples=tone(1, 437, RATE)[:samples], rate=RATE, key=f"short-{samples}"))).size
        await check_alive(omni_host)

    run(scenario())


async def generate(omni_host: EngineHost, audio: AudioPart, settings: MinicpmoSettings | None = None) -> np.ndarray[Any, Any]:
    """Answer audio in speech, with these settings of the deployment."""
    said = ChatMessage(role="user", content=(audio, TextPart(text="hello")))
    prompt = build_prompt(Turn(messages=(said,), max_output_tokens=12), settings or MinicpmoSettings())
    request = GenerateRequest(request_id=f"direct-{audio.key}", prompt=prompt, max_output_tokens=12)
    async with aclosing(omni_host.adapter.engine.generate(request)) as deltas:
        return np.concatenate([delta.audio async for delta in deltas if delta.audio is not None])


@pytest.fixture
def references(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The voices that the engine finds in its inputs, in the order of the requests; ``None`` for the checkpoint's own."""
    found: list[Any] = []
    find = minicpmo_4_5_omni._extract_prompt_reference_audio

    def record(prompt: Any) -> Any:
        found.append(find(prompt))
        return found[-1]

    monkeypatch.setattr(minicpmo_4_5_omni, "_extract_prompt_reference_audio", record)
    return found


def test_the_voice_is_never_the_users(omni_host: EngineHost, run: Run, references: list[Any]) -> None:
    async def scenario() -> None:
        assert (await generate(omni_host, AudioPart(samples=tone(1.5, 437, RATE), rate=RATE, key="mine"))).size
        assert references
        assert set(references) == {None}

    run(scenario())


def test_the_reference_audio_is_the_voice(omni_host: EngineHost, run: Run, references: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "voice.wav"
    file.write_bytes(write_wav(tone(2.0, 220, 22050), 22050))

    async def scenario() -> None:
        settings = MinicpmoSettings(reference_audio=file)
        audio = AudioPart(samples=tone(1.5, 437, RATE), rate=RATE, key="mine too")
        assert (await generate(omni_host, audio, settings)).size
        assert references
        for samples, rate in references:
            assert (len(samples), rate) == (44100, 22050)
            assert np.abs(samples.numpy() - tone(2.0, 220, 22050)).max() < 1e-4
        await omni_host.freed()

    run(scenario())
