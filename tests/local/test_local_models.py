"""The real models, from a spoken question to a spoken answer."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

import omni_realtime_local as plugin
from omni_realtime.chat import (
    AudioPart,
    ChatDelta,
    ChatMessage,
    ChatPrompt,
    GenerateRequest,
    NamedTool,
    Samples,
    TextPart,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
)
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import Engine, EngineError, Transcriber, Transcript, TranscriptionRequest
from omni_realtime_local.llm import LanguageModel, Piece
from omni_realtime_local.settings import LocalSettings, SmolLm2Settings
from omni_realtime_local.weights import WeightsError

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
Ask = Callable[..., Any]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="get_weather", description="Get the weather in a city.", parameters=CITY)
TIMER = Tool(
    name="set_timer",
    description="Start a timer.",
    parameters={"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]},
)


def said(role: str, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=(TextPart(text=text),))  # type: ignore[arg-type]


def turn(*messages: ChatMessage, **options: Any) -> Turn:
    return Turn(messages=messages, instructions=plugin.INSTRUCTIONS, **options)


def heard(samples: Samples, key: str, transcript: str | None = None) -> ChatMessage:
    return ChatMessage(role="user", content=(AudioPart(samples=samples, rate=16_000, key=key, transcript=transcript),))


def likeness(one: str, other: str) -> float:
    """1 for the same letters and digits; white space, case and punctuation apart."""
    return difflib.SequenceMatcher(None, *("".join(filter(str.isalnum, text.lower())) for text in (one, other)), autojunk=False).ratio()


def story(request_id: str, *, modalities: tuple[Any, ...] = ("audio",)) -> GenerateRequest:
    prompt = ChatPrompt(messages=(said("user", "Tell me a long story about a fox."),))
    return GenerateRequest(request_id=request_id, prompt=prompt, modalities=modalities)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("capital", "What is the capital of France?"),
        ("week", "How many days are there in a week?"),
        ("sky", "Why is the sky blue?"),
        ("interrupt", "Stop. What is the capital of Italy?"),
    ],
)
def test_the_recordings_are_heard(run: Run, transcriber: Transcriber, recording: Callable[[str], Samples], name: str, words: str) -> None:
    request = TranscriptionRequest(samples=recording(name), rate=16_000, key=f"heard-{name}")
    assert run(transcriber.transcribe(request)) == Transcript(text=words)


@pytest.mark.parametrize("rate", [8_000, 24_000, 44_100])
def test_a_model_of_any_rate_can_borrow_the_transcriber(
    run: Run, transcriber: Transcriber, recording: Callable[[str], Samples], rate: int
) -> None:
    samples = soxr.resample(recording("capital"), 16_000, rate)
    request = TranscriptionRequest(samples=samples, rate=rate, key=f"rate-{rate}")
    assert run(transcriber.transcribe(request)).text == "What is the capital of France?"


def test_each_word_has_its_log_probability(run: Run, transcriber: Transcriber, recording: Callable[[str], Samples]) -> None:
    pause = np.zeros(16_000 * 28, np.float32)
    long = np.concatenate([recording("capital"), pause, recording("week")])
    for key, samples, words in (("words", recording("capital"), 6), ("words of two windows", long, 14)):
        said = run(transcriber.transcribe(TranscriptionRequest(samples=samples, rate=16_000, key=key, logprobs=True)))
        assert "".join(each.token for each in said.logprobs) == said.text
        assert len(said.logprobs) == words
        assert all(-3 < each.logprob <= 0 for each in said.logprobs)
    noise = np.random.default_rng(0).normal(0, 0.3, recording("capital").size).astype(np.float32)
    request = TranscriptionRequest(samples=recording("capital") + noise, rate=16_000, key="drowned", logprobs=True)
    drowned = run(transcriber.transcribe(request)).logprobs
    assert not drowned or min(each.logprob for each in drowned) < -1


def test_silence_has_no_log_probabilities(run: Run, transcriber: Transcriber) -> None:
    for size in (0, 16_000):
        request = TranscriptionRequest(samples=np.zeros(size, np.float32), rate=16_000, key=f"silent-{size}", logprobs=True)
        assert run(transcriber.transcribe(request)) == Transcript(text="", logprobs=())


def test_a_prompt_guides_the_spelling(run: Run, transcriber: Transcriber, recording: Callable[[str], Samples]) -> None:
    samples = recording("capital")
    plain = TranscriptionRequest(samples=samples, rate=16_000, key="prompted")
    guided = TranscriptionRequest(samples=samples, rate=16_000, key="prompted", prompt="what is the capital of italy what is")
    answers = [run(transcriber.transcribe(each)).text for each in (plain, guided)]
    assert [text.islower() for text in answers] == [False, True]
    assert likeness(*answers) > 0.7


def test_a_spoken_question_gets_a_spoken_answer(
    run: Run, answer: Ask, transcriber: Transcriber, recording: Callable[[str], Samples]
) -> None:
    reply = run(answer(turn(heard(recording("capital"), "spoken-capital"))))
    assert "Paris" in reply.text
    assert reply.finish == "stop"
    assert reply.rates == {22_050}
    assert reply.spoken.split() == reply.text.split()
    assert reply.usage.input_text_tokens > 10
    assert reply.usage.output_text_tokens > 5

    audio = soxr.resample(np.concatenate(reply.audio), 22_050, 16_000)
    again = run(transcriber.transcribe(TranscriptionRequest(samples=audio, rate=16_000, key="spoken-again"))).text
    assert likeness(again, reply.text) > 0.85


def test_a_second_question_is_answered_after_the_first(run: Run, answer: Ask) -> None:
    chat = [said("user", "What is the capital of France?"), said("assistant", "The capital of France is Paris.")]
    reply = run(answer(turn(*chat, said("user", "How many days are there in a week?"), modalities=("text",))))
    assert "7" in reply.text or "seven" in reply.text
    follow_up = run(answer(turn(*chat, said("user", "And of Italy?"), modalities=("text",))))
    assert "Rome" in follow_up.text


def test_a_transcript_that_is_known_is_not_heard_again(run: Run, answer: Ask) -> None:
    reply = run(answer(turn(heard(np.zeros(16_000, np.float32), "known", "What is the capital of Japan?"), modalities=("text",))))
    assert "Tokyo" in reply.text


@pytest.mark.parametrize("loudness", [0.0, 0.05])
def test_silence_and_noise_are_no_words_and_still_get_an_answer(run: Run, answer: Ask, transcriber: Transcriber, loudness: float) -> None:
    noise = np.random.default_rng(0).normal(0, loudness, 32_000).astype(np.float32)
    key = f"noise-{loudness}"
    assert run(transcriber.transcribe(TranscriptionRequest(samples=noise, rate=16_000, key=key))).text == ""
    assert run(answer(turn(heard(noise, key), modalities=("text",)))).text


def test_audio_comes_before_the_text_is_complete(run: Run, answer: Ask) -> None:
    deltas = run(answer(turn(said("user", "Tell me a long story about a fox."), max_output_tokens=250))).deltas
    kinds = ["audio" if delta.audio is not None else "text" for delta in deltas[:-1]]
    assert kinds.index("audio") < len(kinds) - 1 - kinds[::-1].index("text")
    assert deltas[-1].finish_reason == "length"
    assert deltas[-1].usage.output_text_tokens == 250


def test_a_text_response_is_never_spoken(run: Run, answer: Ask, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> None:
        raise AssertionError("spoken")

    monkeypatch.setattr(engine._speaker, "speak", refuse)  # type: ignore[attr-defined]
    reply = run(answer(turn(said("user", "What is the capital of France?"), modalities=("text",))))
    assert "Paris" in reply.text
    assert reply.audio == []


@pytest.mark.parametrize("choice", ["required", "auto", NamedTool(name="get_weather")])
def test_a_tool_is_called_with_arguments_after_its_schema(run: Run, answer: Ask, choice: ToolChoice) -> None:
    reply = run(answer(turn(said("user", "What is the weather in Paris?"), tools=(WEATHER,), tool_choice=choice)))
    assert reply.finish == "tool_calls"
    assert reply.calls == ["get_weather"]
    assert json.loads(reply.arguments) == {"city": "Paris"}
    assert reply.text == ""
    assert reply.audio == []


def test_required_chooses_between_several_tools(run: Run, answer: Ask) -> None:
    reply = run(answer(turn(said("user", "Set a timer for five minutes."), tools=(WEATHER, TIMER), tool_choice="required")))
    assert reply.calls == ["set_timer"]
    assert json.loads(reply.arguments) == {"minutes": 5}


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_question_that_needs_no_tool_is_answered(run: Run, answer: Ask, choice: ToolChoice) -> None:
    question = said("user", "What is the capital of France?")
    reply = run(answer(turn(question, tools=(WEATHER,), tool_choice=choice, modalities=("text",))))
    assert reply.calls == []
    assert "Paris" in reply.text


def test_the_output_of_a_call_is_used(run: Run, answer: Ask) -> None:
    call = ChatMessage(role="assistant", tool_calls=(ToolCall(call_id="c", name="get_weather", arguments='{"city": "London"}'),))
    output = ChatMessage(role="tool", content=(TextPart(text='{"temperature": 7, "conditions": "heavy rain"}'),), tool_call_id="c")
    reply = run(answer(turn(said("user", "What is the weather in London?"), call, output, tools=(WEATHER,), modalities=("text",))))
    assert "rain" in reply.text
    assert reply.finish == "stop"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 2}}, "required": ["a"]},
        {"properties": {"a": {"type": "string", "minLength": 3, "maxLength": 1}}, "required": ["a"]},
        {"properties": {"a": {"$ref": "http://elsewhere/schema"}}, "required": ["a"]},
        {"properties": {"a": 3}, "required": ["a"]},
        {"properties": "nonsense"},
    ],
)
def test_a_schema_that_binds_nothing_is_an_error_that_names_the_tool(run: Run, answer: Ask, schema: dict[str, Any]) -> None:
    tool = Tool(name="odd_tool", description="Do something odd.", parameters=schema)
    with pytest.raises(EngineError, match="odd_tool"):
        run(answer(turn(said("user", "Hello."), tools=(tool,), tool_choice="required")))


def test_a_prompt_beyond_the_context_is_refused_and_counted(run: Run, answer: Ask, engine: Engine) -> None:
    long = said("user", "hello " * 3000)
    assert run(engine.count_tokens(ChatPrompt(messages=(long,)))) > engine.context_window
    with pytest.raises(EngineError) as refused:
        run(answer(turn(long)))
    assert refused.value.code == "context_length_exceeded"


def test_the_count_is_what_the_model_reads(run: Run, answer: Ask, engine: Engine, deployment: Deployment) -> None:
    asked = turn(said("user", "What is the capital of France?"), modalities=("text",))
    counted = run(engine.count_tokens(plugin.realtime_build_prompt(asked, deployment)))
    assert counted == run(answer(asked)).usage.input_text_tokens


def test_an_empty_conversation_gets_an_answer(run: Run, answer: Ask) -> None:
    assert run(answer(turn(modalities=("text",), max_output_tokens=5))).finish == "length"
    assert run(answer(Turn(messages=(), modalities=("text",), max_output_tokens=5))).finish == "length"


def test_closed_responses_free_their_slots(run: Run, engine: Engine) -> None:
    async def go() -> None:
        for i in range(6):
            async with aclosing(engine.generate(story(f"closed-{i}"))) as deltas:
                await anext(deltas)
        while engine._model._running:  # type: ignore[attr-defined]  # noqa: ASYNC110  (nothing tells)
            await asyncio.sleep(0.01)

    run(asyncio.wait_for(go(), 10))  # the six stories, told to their ends, take far longer


def test_a_waiting_response_can_be_aborted_and_a_running_one_too(run: Run, engine: Engine) -> None:
    async def last(deltas: Any) -> ChatDelta:
        return [delta async for delta in deltas][-1]

    async def go() -> None:
        tasks = [asyncio.create_task(last(engine.generate(story(f"abort-{i}", modalities=("text",))))) for i in range(4)]
        await asyncio.sleep(1)
        for i in reversed(range(4)):
            await engine.abort(f"abort-{i}")
        await engine.abort("unknown")
        assert [delta.finish_reason for delta in await asyncio.gather(*tasks)] == ["abort"] * 4

    run(asyncio.wait_for(go(), 60))


def test_two_responses_at_once(run: Run, answer: Ask) -> None:
    async def go() -> list[Any]:
        questions = ("What is the capital of France?", "What is the capital of Japan?")
        return await asyncio.gather(*(answer(turn(said("user", question)), question) for question in questions))

    first, second = run(go())
    assert "Paris" in first.text
    assert "Tokyo" in second.text
    assert first.audio
    assert second.audio


def test_the_detector_tells_speech_from_silence_for_many_streams_at_once(
    run: Run, deployment: Deployment, recording: Callable[[str], Samples]
) -> None:
    detector = plugin.realtime_detector(deployment)
    run(detector.start())
    speech = recording("capital")
    frames = np.stack([speech[: 512 * 40].reshape(40, 512), np.zeros((40, 512), np.float32)], axis=1)
    states = [detector.initial_state()] * 2
    before = [array.copy() for array in states[0]]
    scores = []
    for both in frames:
        probabilities, states = detector.score(both, states)
        scores.append(probabilities)
    speaking, silent = np.array(scores).T
    assert (speaking > 0.5).mean() > 0.6
    assert (silent < 0.1).all()
    assert all(np.array_equal(a, b) for a, b in zip(before, detector.initial_state(), strict=True))

    alone, state = [], [detector.initial_state()]
    for frame in frames[:, :1]:
        probabilities, state = detector.score(frame, state)
        alone.append(probabilities[0])
    assert np.allclose(alone, speaking, atol=1e-4), "a stream's scores must not depend on its neighbours"
    run(detector.close())


def test_the_context_ends_a_long_reply(run: Run) -> None:
    async def go() -> Piece:
        model = LanguageModel(SmolLm2Settings(context=512, max_concurrent=1))
        await model.start()
        try:
            chat = [{"role": "user", "content": "Tell me a long story about a fox. " + "Please! " * 220}]
            return [piece async for piece in model.stream(chat, max_tokens=512)][-1]
        finally:
            await model.close()

    last = run(go())
    assert last.finish == "length"
    assert 505 <= last.prompt_tokens + last.output_tokens <= 512


def test_a_file_that_is_no_model_fails_the_start_and_leaves_nothing_running(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"no model")
    engine = plugin.LocalEngine(LocalSettings(smollm2=SmolLm2Settings(model_file=tmp_path / "m.gguf")))
    with pytest.raises(WeightsError, match=r"llama\.cpp cannot load .*m\.gguf"):
        run(engine.start())
    assert engine._speaker._worker is None
    run(engine.close())
