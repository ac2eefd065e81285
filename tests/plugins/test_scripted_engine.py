"""The scripted engine keeps the port's contract, and breaks it only where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.chat import AudioPart, ChatDelta, ChatMessage, ChatPrompt, GenerateRequest, TextPart, ToolCallDelta, Usage
from omni_realtime.engine.port import (
    Detector,
    Engine,
    EngineDeadError,
    EngineError,
    TokenLogprob,
    Transcriber,
    Transcript,
    TranscriptionRequest,
)
from omni_realtime.testing import (
    ScriptedDetector,
    ScriptedEngine,
    ScriptedTranscriber,
    call_reply,
    chunked,
    count_words,
    spoken_reply,
    text_reply,
    tone,
)

ENGINE: Engine = ScriptedEngine()
DETECTOR: Detector = ScriptedDetector()
TRANSCRIBER: Transcriber = ScriptedTranscriber()


def request(request_id: str = "r1", text: str = "Hello there") -> GenerateRequest:
    return GenerateRequest(request_id=request_id, prompt=ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text=text),)),)))


async def collect(engine: ScriptedEngine, request_id: str = "r1") -> list[ChatDelta]:
    return [delta async for delta in engine.generate(request(request_id))]


async def read(engine: ScriptedEngine, seen: list[ChatDelta]) -> None:
    async for delta in engine.generate(request()):
        seen.append(delta)  # noqa: PERF401 - what came before an exception or a cancellation counts


def text_of(deltas: Sequence[ChatDelta]) -> str:
    return "".join(delta.text for delta in deltas)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(5):
            await test()

    asyncio.run(bounded())


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - the engine has no event for everything that a test waits for
        await asyncio.sleep(0)


def test_each_generation_plays_its_script_and_the_last_goes_on() -> None:
    async def test() -> None:
        engine = ScriptedEngine(text_reply("one", usage=Usage(output_text_tokens=1)), lambda request: text_reply("id ", request.request_id))
        first = await collect(engine, "a")
        assert [delta.text for delta in first] == ["one", ""]
        assert (first[-1].finish_reason, first[-1].usage) == ("stop", Usage(output_text_tokens=1))
        assert [text_of(await collect(engine, name)) for name in ("b", "c")] == ["id b", "id c"]
        assert [made.request_id for made in engine.requests] == engine.closed == ["a", "b", "c"]
        assert engine.running == ()

    run(test)


def test_an_engine_without_a_script_says_so() -> None:
    with pytest.raises(EngineError, match="no script"):
        asyncio.run(collect(ScriptedEngine()))


def test_a_running_request_id_is_refused() -> None:
    async def test() -> None:
        engine = ScriptedEngine(text_reply("a"))
        running = engine.generate(request())
        await anext(running)
        with pytest.raises(EngineError, match="request id"):
            await collect(engine)
        await running.aclose()
        assert text_of(await collect(engine)) == "a"

    run(test)


def test_a_step_waits_for_the_test_to_go_on() -> None:
    async def test() -> None:
        gate = asyncio.Event()
        engine = ScriptedEngine([ChatDelta(text="a"), gate, 0.001, ChatDelta(text="b", finish_reason="stop")])
        task = asyncio.create_task(collect(engine))
        await until(lambda: engine.running == ("r1",))
        await asyncio.sleep(0.01)
        assert not task.done()
        gate.set()
        assert text_of(await task) == "ab"

    run(test)


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_generation_fails_before_amid_and_after_its_deltas(before: int) -> None:
    steps = [ChatDelta(text="a"), ChatDelta(text="b", finish_reason="stop")]

    async def test() -> None:
        engine = ScriptedEngine([*steps[:before], EngineError("broken"), *steps[before:]], text_reply("well"))
        seen: list[ChatDelta] = []
        with pytest.raises(EngineError, match="broken"):
            await read(engine, seen)
        assert seen == steps[:before]
        assert engine.running == ()
        await engine.check_health()
        assert text_of(await collect(engine, "r2")) == "well"

    run(test)


@pytest.mark.parametrize("stop", ["abort", "close"])
def test_abort_and_close_end_what_waits(stop: str) -> None:
    async def test() -> None:
        engine = ScriptedEngine([ChatDelta(text="a"), asyncio.Event(), ChatDelta(text="never")])
        task = asyncio.create_task(collect(engine))
        await until(lambda: bool(engine.running))
        await (engine.abort("r1") if stop == "abort" else engine.close())
        deltas = await task
        assert (text_of(deltas), deltas[-1].finish_reason) == ("a", "abort")
        assert engine.closed == ["r1"]
        assert (engine.aborts, engine.stopped) == ((["r1"], False) if stop == "abort" else ([], True))

    run(test)


def test_abort_of_an_unknown_id_is_recorded_and_no_error() -> None:
    engine = ScriptedEngine()
    asyncio.run(engine.abort("nobody"))
    assert engine.aborts == ["nobody"]


def test_an_abort_can_be_ignored() -> None:
    async def test() -> None:
        gate = asyncio.Event()
        engine = ScriptedEngine([gate, *text_reply("still ", "here")], ignore_abort=True)
        task = asyncio.create_task(collect(engine))
        await until(lambda: bool(engine.running))
        await engine.abort("r1")
        gate.set()
        assert text_of(await task) == "still here"
        assert engine.aborts == ["r1"]

    run(test)


def test_one_cancellation_can_be_swallowed_and_no_second() -> None:
    async def test() -> None:
        engine = ScriptedEngine([asyncio.Event(), ChatDelta(text="deaf"), asyncio.Event()], swallow_cancel=True)
        seen: list[ChatDelta] = []
        task = asyncio.create_task(read(engine, seen))
        await until(lambda: bool(engine.running))
        await asyncio.sleep(0)
        task.cancel()
        await until(lambda: text_of(seen) == "deaf")
        await asyncio.sleep(0)
        assert engine.running == ("r1",)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.closed == ["r1"]

    run(test)


def test_cancelling_or_closing_early_frees_the_work() -> None:
    async def test() -> None:
        engine = ScriptedEngine([ChatDelta(text="a"), asyncio.Event()])
        generator = engine.generate(request("closed"))
        await anext(generator)
        await generator.aclose()
        task = asyncio.create_task(collect(engine, "cancelled"))
        await until(lambda: engine.running == ("cancelled",))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.closed == ["closed", "cancelled"]
        assert engine.running == ()

    run(test)


@pytest.mark.parametrize("by", ["step", "call"])
def test_a_dead_engine_stays_dead(by: str) -> None:
    async def test() -> None:
        last_words = EngineDeadError("out of memory")
        engine = ScriptedEngine([ChatDelta(text="a"), asyncio.Event()], [last_words])
        waiting = asyncio.create_task(collect(engine, "waiting"))
        await until(lambda: bool(engine.running))
        await engine.check_health()
        if by == "step":
            with pytest.raises(EngineDeadError):
                await collect(engine, "dying")
        else:
            engine.die(last_words)
        for attempt in (waiting, engine.check_health(), collect(engine, "later")):
            with pytest.raises(EngineDeadError, match="out of memory"):
                await attempt
        assert engine.running == ()

    run(test)


def test_a_slow_start() -> None:
    async def test() -> None:
        engine = ScriptedEngine(start_seconds=0.01)
        starting = asyncio.create_task(engine.start())
        await asyncio.sleep(0)
        assert not engine.started
        await starting
        assert engine.started

    run(test)


def test_tokens_are_words_and_tenths_of_seconds() -> None:
    audio = AudioPart(samples=tone(1.0, rate=16000), rate=16000, key="a")
    prompt = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="one two  three"), audio)),))
    assert count_words(prompt) == 13
    assert asyncio.run(ScriptedEngine().count_tokens(prompt)) == 13
    assert asyncio.run(ScriptedEngine(count=lambda _: 7).count_tokens(prompt)) == 7


@given(st.integers(0, 500), st.lists(st.integers(1, 90), min_size=1, max_size=5))
def test_chunks_join_to_the_whole(length: int, sizes: list[int]) -> None:
    samples = np.arange(length, dtype=np.float32)
    chunks = chunked(samples, sizes)
    assert all(len(chunk) for chunk in chunks)
    assert [len(chunk) for chunk in chunks[:-1]] == [sizes[index % len(sizes)] for index in range(len(chunks) - 1)]
    assert np.array_equal(np.concatenate([samples[:0], *chunks]), samples)


@pytest.mark.parametrize("sizes", [[], [3, 0], [-1]])
def test_chunks_without_a_size_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        chunked(tone(0.1), sizes)


@given(
    st.lists(st.sampled_from(["Paris", "is", "the", "capital."]), min_size=1, max_size=12),
    st.lists(st.integers(1, 4000), min_size=1, max_size=4),
)
def test_a_spoken_reply_is_whole(words: list[str], sizes: list[int]) -> None:
    samples = tone(0.2)
    steps = [step for step in spoken_reply(" ".join(words), samples, sizes=sizes) if isinstance(step, ChatDelta)]
    assert text_of(steps) == "".join(step.spoken for step in steps) == " ".join(words)
    assert np.array_equal(np.concatenate([step.audio for step in steps if step.audio is not None]), samples)
    assert {step.rate for step in steps[:-1]} == {24000}
    assert [step.finish_reason for step in steps] == [None] * (len(steps) - 1) + ["stop"]


def test_a_call_comes_in_pieces() -> None:
    steps = [step for step in call_reply("look", '{"at":', '"it"}') if isinstance(step, ChatDelta)]
    assert [step.tool_call for step in steps] == [
        ToolCallDelta(name="look"),
        ToolCallDelta(arguments='{"at":'),
        ToolCallDelta(arguments='"it"}'),
        None,
    ]
    assert steps[-1].finish_reason == "tool_calls"


def test_the_detector_hears_what_is_loud_in_every_stream() -> None:
    detector = ScriptedDetector()
    loud, silent = tone(512 / 16000, rate=16000), np.zeros(512, np.float32)
    probabilities, states = detector.score(np.stack([loud, silent]), [detector.initial_state(), 4])
    assert (probabilities, states, detector.batches) == ([0.99, 0.01], [1, 5], [2])
    with pytest.raises(ValueError, match="shape"):
        detector.score(np.zeros((1, 100), np.float32), [0])


def test_the_transcriber_says_what_it_is_told() -> None:
    asked = TranscriptionRequest(samples=tone(0.1), rate=24000, key="k", language="en")

    async def test() -> None:
        transcriber = ScriptedTranscriber(lambda request: f"{request.key} in {request.language}", seconds=0.001)
        await transcriber.start()
        assert await transcriber.transcribe(asked) == Transcript(text="k in en")
        sure = Transcript(text="Hi.", logprobs=(TokenLogprob(token="Hi.", logprob=-0.5),))
        assert await ScriptedTranscriber(sure).transcribe(asked) is sure
        assert transcriber.requests == [asked]
        with pytest.raises(EngineError):
            await ScriptedTranscriber(EngineError("deaf")).transcribe(asked)

    run(test)
