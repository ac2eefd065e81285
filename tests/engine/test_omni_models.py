"""Each omni model on the real engine, through a real socket and the official client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine_host import EngineHost
from realtime_client import RATE, Answer, Event, RealtimeClient, tone
from vllm.sampling_params import StructuredOutputsParams

from omni_realtime.audio.g711 import encode_mulaw
from omni_realtime.audio.pcm import encode_pcm16
from omni_realtime.audio.resample import resample

Run = Callable[[Coroutine[Any, Any, None]], None]

STATUS = {"stop": "completed", "length": "incomplete"}
TELEPHONE = 8000
DISCONNECTS = 50
TURNS = 30
CALL = '<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>'
CLOCK = {"type": "function", "name": "clock", "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}
WRITTEN = 12
"""Tokens of a written answer: a random model may go on for long."""


def spoken(seconds: float = 1.0, hertz: float = 437) -> bytes:
    return encode_pcm16(tone(seconds, hertz))


def collapsed(kinds: list[str]) -> list[str]:
    return [kind for kind, _ in groupby(kinds)]


def check_ended(answer: Answer, omni_host: EngineHost) -> None:
    assert answer.status == STATUS[omni_host.raw(answer.id).finish_reasons[0]]
    assert answer.usage["output_tokens"] > 0
    assert answer.usage["total_tokens"] == answer.usage["input_tokens"] + answer.usage["output_tokens"]


def check_speech(answer: Answer, omni_host: EngineHost) -> None:
    check_ended(answer, omni_host)
    raw = omni_host.raw(answer.id)
    assert len(raw.samples) > omni_host.model.output_rate / 2
    assert answer.audio == encode_pcm16(resample(raw.samples, omni_host.model.output_rate, RATE))
    assert answer.text == raw.text


async def until_audio(client: RealtimeClient) -> Answer:
    async def is_audio(event: Event) -> bool:
        return event["type"] == "response.output_audio.delta"

    return await client.answer(during=is_audio)


def test_a_written_turn_is_answered_in_writing(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await client.say("hello")
            answer = await client.respond("text", max_output_tokens=WRITTEN)
        check_ended(answer, omni_host)
        assert answer.text
        assert answer.text == omni_host.raw(answer.id).text
        assert answer.kinds[0] == "text"
        assert not answer.audio
        await omni_host.freed()

    run(scenario())


def test_a_spoken_turn_gives_exactly_the_samples_that_the_engine_made(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        before = await omni_host.stage_loads()
        async with omni_host.connect() as client:
            await client.speak(spoken())
            answer = await client.respond()
        check_speech(answer, omni_host)
        assert answer.usage["input_token_details"]["audio_tokens"] > 0
        assert [load["ever"] for load in await omni_host.stage_loads()] == [load["ever"] + 1 for load in before]
        await omni_host.freed()

    run(scenario())


def test_other_sound_gets_another_answer(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        noise = np.random.default_rng(1).normal(0, 0.2, RATE).astype(np.float32)
        texts = set()
        for sound in (np.zeros(RATE, np.float32), tone(1.0, 437), noise):
            async with omni_host.connect() as client:
                await client.speak(encode_pcm16(sound))
                texts.add((await client.respond("text", max_output_tokens=2 * WRITTEN)).text)
        assert len(texts) > 1

    run(scenario())


def test_a_turn_for_text_alone_never_reaches_the_talker(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        before = await omni_host.stage_loads()
        async with omni_host.connect() as client:
            await client.speak(spoken())
            answer = await client.respond("text", max_output_tokens=WRITTEN)
        after = await omni_host.stage_loads()
        assert omni_host.raw(answer.id).modalities == ("text",)
        assert len(after) == omni_host.model.stages
        assert after[0]["ever"] == before[0]["ever"] + 1
        assert [load["ever"] for load in after[1:]] == [load["ever"] for load in before[1:]]

    run(scenario())


def test_text_and_audio_come_in_the_models_own_order(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await client.say("hello there")
            answer = await client.respond()
        raw = omni_host.raw(answer.id)
        assert collapsed(answer.kinds) == collapsed(raw.kinds)
        assert set(raw.kinds) == {"text", "audio"}

    run(scenario())


def test_a_cancel_amid_audio_frees_the_engine(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await client.say("tell me a long story")
            await client.ask()
            begun = await until_audio(client)
            await client.connection.response.cancel(response_id=begun.id)
            ended = await client.until("response.done")
            await omni_host.freed()
            assert ended["response"]["status"] == "cancelled"
            check_speech(await client.respond(), omni_host)

    run(scenario())


def test_fifty_clients_that_vanish_amid_audio_leave_nothing_running(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        for _ in range(DISCONNECTS):
            async with omni_host.connect() as client:
                await client.say("hello")
                await client.ask()
                begun = await until_audio(client)
                assert await omni_host.running_requests(), begun.id
                await client.vanish()
                await omni_host.freed()
        async with omni_host.connect() as client:
            await client.say("hello")
            check_speech(await client.respond(), omni_host)

    run(scenario())


def test_a_history_of_thirty_spoken_turns(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        usages = []
        async with omni_host.connect() as client:
            for turn in range(TURNS):
                await client.speak(spoken(0.4, 200 + 40 * turn))
                usages.append((await client.respond("text", max_output_tokens=WRITTEN)).usage)
            check_speech(await client.respond(), omni_host)
        audio = [usage["input_token_details"]["audio_tokens"] for usage in usages]
        assert audio == [audio[0] * (turn + 1) for turn in range(TURNS)]
        tokens = [usage["input_tokens"] for usage in usages]
        assert tokens == sorted(set(tokens))

    run(scenario())


def test_two_sessions_at_once(omni_host: EngineHost, run: Run) -> None:
    async def talk(hertz: float) -> Answer:
        async with omni_host.connect() as client:
            await client.speak(spoken(hertz=hertz))
            return await client.respond()

    async def scenario() -> None:
        answers = await asyncio.gather(talk(300), talk(900))
        for answer in answers:
            check_speech(answer, omni_host)
        await omni_host.freed()

    run(scenario())


def test_a_turn_over_the_telephone(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        g711 = {"format": {"type": "audio/pcmu"}}
        async with omni_host.connect(audio={"input": g711, "output": g711}) as client:
            await client.speak(encode_mulaw(tone(1.0, 437, TELEPHONE)))
            answer = await client.respond()
        check_ended(answer, omni_host)
        raw = omni_host.raw(answer.id).samples
        assert answer.audio == encode_mulaw(resample(raw, omni_host.model.output_rate, TELEPHONE))

    run(scenario())


def test_a_conversation_that_outgrows_the_context_is_rendered_once_a_turn(
    omni_host: EngineHost, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    renders: list[str] = []
    renderer = omni_host.adapter.engine._renderer
    for kind in ("render", "measure"):
        monkeypatch.setattr(renderer, kind, _noted(getattr(renderer, kind), kind, renders))
    window = omni_host.adapter.engine.context_window
    story = "so it went on " * (window // 8 // 14)

    async def scenario() -> None:
        async with omni_host.connect(max_output_tokens=WRITTEN) as client:
            prompts = []
            for turn in range(20):
                await client.speak(spoken(0.5, 300 + 20 * turn))
                await client.say(story)
                renders.clear()
                answer = await client.respond("text")
                assert renders == ["render"], f"turn {turn}"
                prompts.append(answer.usage["input_tokens"])
            assert max(prompts) <= window - WRITTEN
            assert any(after < before for before, after in pairwise(prompts)), prompts
            first_id = next(event["item"]["id"] for event in client.events if event["type"] == "conversation.item.done")
            await client.connection.conversation.item.retrieve(item_id=first_id)
            assert (await client.until("conversation.item.retrieved"))["item"]["id"] == first_id
            assert not [event for event in client.events if event["type"] == "conversation.item.deleted"]

    run(scenario())


def _noted(call: Callable[..., Any], kind: str, calls: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        calls.append(kind)
        return call(*arguments)

    return noted


@contextmanager
def _scripted(omni_host: EngineHost, words: str) -> Iterator[None]:
    """Has the model write just this, under its own plugin's sampling parameters."""
    engine: Any = omni_host.adapter.engine
    own = engine._hook

    def fix(*, params: list[Any], **given: Any) -> list[Any]:
        fixed = own.realtime_fix_sampling_params(params=params, **given)
        fixed[0].structured_outputs = StructuredOutputsParams(regex="".join(f"\\{c}" if c in ".?*+()[]{}|\\" else c for c in words))
        fixed[0].max_tokens = 200
        return fixed

    engine._hook = SimpleNamespace(realtime_fix_sampling_params=fix)
    try:
        yield
    finally:
        engine._hook = own


def test_a_tool_is_called_there_and_back_or_refused_by_name(omni_host: EngineHost, run: Run) -> None:
    async def call() -> None:
        async with omni_host.connect(tools=[CLOCK]) as client:
            await client.speak(spoken())
            with _scripted(omni_host, CALL):
                answer = await client.respond("audio")
            (item,) = [item for item in answer.done["output"] if item["type"] == "function_call"]
            assert (item["name"], json.loads(item["arguments"])) == ("clock", {"zone": "UTC"})
            assert (answer.status, answer.text, answer.audio) == ("completed", "", b"")
            output = {"type": "function_call_output", "call_id": item["call_id"], "output": "12:00"}
            await client.connection.conversation.item.create(item=output)
            await client.until("conversation.item.done")
            with _scripted(omni_host, "It is noon."):
                following = await client.respond("audio")
            assert (following.status, following.text) == ("completed", "It is noon.")
            assert following.audio
        await omni_host.freed()

    async def refusal() -> None:
        async with omni_host.connect() as client:
            await client.connection.session.update(session={"type": "realtime", "tools": [CLOCK]})
            refused = await client.receive()
            assert (refused["type"], refused["error"]["param"]) == ("error", "session.tools")

    run(call() if omni_host.model.has_tools else refusal())
