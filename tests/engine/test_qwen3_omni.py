"""What the adapter of engines in process promises, on the real engine with Qwen3-Omni."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine_host import EngineHost
from omni_models import QWEN3_OMNI
from realtime_client import Answer, RealtimeClient, tone
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

from omni_realtime.audio import encode_pcm16
from omni_realtime.chat import AudioPart, ChatDelta, ChatMessage, ChatPrompt, GenerateRequest, TextPart, Tool, Usage
from omni_realtime.engine.port import EngineError

Run = Callable[[Coroutine[Any, Any, None]], None]

pytestmark = pytest.mark.parametrize("omni_host", [QWEN3_OMNI], indirect=True, ids=str)

RATE = QWEN3_OMNI.input_rate
LAG_S = 0.02
CALL = '<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>'
CLOCK = {
    "type": "function",
    "name": "clock",
    "description": "Tells the time.",
    "parameters": {"type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"], "additionalProperties": False},
}


def audio(key: str, seconds: float = 1.0, hertz: float = 437) -> AudioPart:
    return AudioPart(samples=tone(seconds, hertz, RATE), rate=RATE, key=key)


def asking(*parts: AudioPart | TextPart, **more: Any) -> ChatPrompt:
    return ChatPrompt(messages=(ChatMessage(role="user", content=parts or (TextPart(text="hello"),)),), **more)


class Probe:
    """The engine's adapter itself, and what it stands on."""

    def __init__(self, host: EngineHost) -> None:
        self.host = host
        self.engine: Any = host.adapter.engine
        self.requests = 0

    def request(self, prompt: ChatPrompt, *modalities: str, **more: Any) -> GenerateRequest:
        self.requests += 1
        chosen: Any = modalities or ("text",)
        return GenerateRequest(request_id=f"probe-{id(self)}-{self.requests}", prompt=prompt, modalities=chosen, **more)

    def generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        return self.engine.generate(request)

    async def answer(self, prompt: ChatPrompt, *modalities: str, **more: Any) -> list[ChatDelta]:
        async with aclosing(self.generate(self.request(prompt, *modalities, **more))) as deltas:
            return [delta async for delta in deltas]

    async def usage(self, prompt: ChatPrompt, *modalities: str, **more: Any) -> Usage:
        usage = (await self.answer(prompt, *modalities, **more))[-1].usage
        assert usage is not None
        return usage

    async def refused(self, prompt: ChatPrompt) -> str:
        with pytest.raises(EngineError) as caught:
            await self.answer(prompt)
        return caught.value.code

    async def render_and_forget(self, prompt: ChatPrompt) -> None:
        """Does what the adapter never does: render through the sender cache, and not submit."""
        await self.engine._thread.run(self.engine._renderer.render(prompt))

    @property
    def sender_cache(self) -> tuple[int, int]:
        """How often audio was looked up in the sender cache since it was last emptied, and how often it was there."""
        stats = self.engine._client.renderer.mm_processor_cache.make_stats()
        return stats.total, stats.hits

    @contextmanager
    def fixed(self, fix: Callable[[list[Any]], None]) -> Iterator[None]:
        """Has another hook fix the sampling parameters, in place."""
        own = self.engine._hook

        def hook(*, params: list[Any], **_: Any) -> list[Any]:
            fix(params)
            return params

        self.engine._hook = SimpleNamespace(realtime_fix_sampling_params=hook)
        try:
            yield
        finally:
            self.engine._hook = own

    def scripted(self, text: str) -> Any:
        """Has the model write just this."""
        regex = "".join(f"\\{char}" if char in ".?*+()[]{}|\\" else char for char in text)

        def fix(params: list[Any]) -> None:
            params[0].structured_outputs = StructuredOutputsParams(regex=regex)
            params[0].max_tokens = 200

        return self.fixed(fix)

    def at_length(self) -> Any:
        """Has the model write and speak for many seconds."""

        def fix(params: list[Any]) -> None:
            params[0].max_tokens, params[0].ignore_eos, params[1].max_tokens = 300, True, 900

        return self.fixed(fix)


@pytest.fixture
def probe(omni_host: EngineHost) -> Probe:
    return Probe(omni_host)


def texts(deltas: list[ChatDelta]) -> str:
    return "".join(delta.text for delta in deltas)


def samples(deltas: list[ChatDelta]) -> int:
    return sum(len(delta.audio) for delta in deltas if delta.audio is not None)


def test_the_stages_are_known(probe: Probe) -> None:
    stages = [(stage.model_stage, stage.final_output_type) for stage in probe.engine._stages]
    assert stages == [("thinker", "text"), ("talker", None), ("code2wav", "audio")]
    assert {stage.model_arch for stage in probe.engine._stages} == {"Qwen3OmniMoeForConditionalGeneration"}
    assert {given.output_kind for given in probe.engine._default_params()} == {RequestOutputKind.DELTA}


def test_sampling_parameters_of_one_response_do_not_reach_the_next(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        assert (await probe.usage(asking(), max_output_tokens=3)).output_text_tokens == 3
        with probe.scripted("Hello there."):
            await probe.answer(asking())
        assert (await probe.usage(asking())).output_text_tokens == 32

    run(scenario())


def test_counting_equals_rendering_and_leaves_the_sender_cache_untouched(probe: Probe, run: Run) -> None:
    prompt = asking(audio("count", 2.0), TextPart(text="what?"))

    async def scenario() -> None:
        before = probe.sender_cache
        assert await probe.engine.count_tokens(prompt) == await probe.engine.count_tokens(prompt)
        assert probe.sender_cache == before
        usage = await probe.usage(prompt)
        assert await probe.engine.count_tokens(prompt) == usage.input_text_tokens + usage.input_audio_tokens

    run(scenario())


def test_usage_tells_text_and_audio(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        usage = await probe.usage(asking(audio("usage", 3.0), TextPart(text="what?")), "audio", max_output_tokens=7)
        assert (usage.input_audio_tokens, usage.output_text_tokens, usage.output_audio_tokens) == (39, 7, 64)
        assert usage.input_text_tokens > 0
        assert (await probe.usage(asking(), "text")).output_audio_tokens == 0

    run(scenario())


def test_audio_of_earlier_turns_is_neither_decoded_hashed_nor_processed_again(probe: Probe, run: Run) -> None:
    first, second = audio("turn one", 2.0), audio("turn two", 1.0)
    # The same key with other samples shows it: nothing looks at them any more.
    unread = replace(first, samples=np.full(10 * RATE, np.nan, np.float32))

    async def scenario() -> None:
        counted = await probe.engine.count_tokens(asking(first, second))
        await probe.usage(asking(first))
        total, hits = probe.sender_cache
        usage = await probe.usage(asking(unread, second))
        assert usage.input_audio_tokens == 26 + 13
        assert probe.sender_cache == (total + 2, hits + 1)
        assert await probe.engine.count_tokens(asking(unread, second)) == counted

    run(scenario())


def test_a_render_that_is_never_submitted_fails_one_response_and_no_more(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        lost = asking(audio("lost", 1.3))
        await probe.render_and_forget(lost)
        assert await probe.refused(lost) == "server_error"
        assert texts(await probe.answer(lost))
        await probe.host.freed()

    run(scenario())


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.01, 0.03])
def test_a_response_that_is_cancelled_while_it_is_rendered_leaves_no_trace(probe: Probe, run: Run, delay: float) -> None:
    prompt = asking(*(audio(f"cancelled {delay} {part}", 4.0) for part in range(3)))

    async def scenario() -> None:
        task = asyncio.create_task(probe.answer(prompt, "audio"))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await probe.host.freed()
        assert texts(await probe.answer(prompt))

    run(scenario())


def test_a_prompt_beyond_the_context_is_refused_without_a_trace(probe: Probe, run: Run) -> None:
    known = audio("known", 5.0)
    parts = [audio(f"minute {minute}", 60, 200 + minute) for minute in range(3)]

    async def scenario() -> None:
        await probe.answer(asking(known))
        tokens = await probe.engine.count_tokens(asking(known, *parts))
        assert tokens > probe.engine.context_window == 2048
        for _ in range(2):
            assert await probe.refused(asking(known, *parts)) == "context_length_exceeded"
            for part in (known, *parts):
                assert (await probe.answer(asking(part)))[-1].finish_reason == "length"

    run(scenario())


@pytest.mark.parametrize("words", [1500, 3000, 400_000])
def test_text_beyond_the_context_is_counted_and_refused_and_the_sender_cache_kept(probe: Probe, run: Run, words: int) -> None:
    prompt = asking(audio("short", 1.0), TextPart(text="word " * words))

    async def scenario() -> None:
        await probe.answer(asking(audio("kept")))
        before = probe.sender_cache
        assert await probe.engine.count_tokens(prompt) > max(2048, words)
        assert await probe.refused(prompt) == "context_length_exceeded"
        assert probe.sender_cache == before

    run(scenario())


def test_abort_ends_a_response_and_repeats_nothing(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        with probe.at_length():
            request = probe.request(asking(), "audio")
            after: list[ChatDelta] | None = None
            async with aclosing(probe.generate(request)) as deltas:
                async for delta in deltas:
                    if after is not None:
                        after.append(delta)
                    elif delta.audio is not None:
                        await probe.engine.abort(request.request_id)
                        after = []
        await probe.host.freed()
        assert after
        assert (texts(after), after[-1].finish_reason) == ("", "abort")
        await probe.engine.abort(request.request_id)

    run(scenario())


def test_cumulative_output_is_refused(probe: Probe, run: Run) -> None:
    def fix(params: list[Any]) -> None:
        params[2].output_kind = RequestOutputKind.CUMULATIVE

    async def scenario() -> None:
        with probe.fixed(fix), pytest.raises(EngineError, match="cumulative"):
            await probe.answer(asking(), "audio")
        await probe.host.freed()

    run(scenario())


def test_a_text_that_ends_by_itself_is_completed(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        with probe.scripted("Hello there, how are you?"):
            deltas = await probe.answer(asking(), "audio")
        assert (texts(deltas), deltas[-1].finish_reason) == ("Hello there, how are you?", "stop")
        assert samples(deltas) > RATE / 2

    run(scenario())


def test_the_sessions_loop_is_not_held_up_by_a_long_prompt(probe: Probe, run: Run) -> None:
    async def longest_gap(work: Coroutine[Any, Any, Any]) -> float:
        task = asyncio.ensure_future(work)
        longest = 0.0
        while not task.done():
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before)
        await task
        return longest

    async def scenario() -> None:
        gaps = []
        for attempt in range(6):
            prompt = asking(audio(f"lag {attempt}", 60, 200 + attempt))
            gaps.append(await longest_gap(probe.engine.count_tokens(prompt)) + await longest_gap(probe.answer(prompt)))
        # The machine itself may be busy at one moment; the adapter must not be the reason at every one.
        assert min(gaps) < LAG_S, gaps

    run(scenario())


async def called(client: RealtimeClient, **response: Any) -> tuple[Answer, list[dict[str, Any]]]:
    """A response and the function calls in it, whose deltas join to their arguments."""
    since = len(client.events)
    await client.speak(encode_pcm16(tone(1.0, 437)))
    answer = await client.respond(**response)
    events = client.events[since:]
    calls = [item for item in answer.done["output"] if item["type"] == "function_call"]
    for call in calls:
        deltas = [event for event in events if event["type"] == "response.function_call_arguments.delta" and event["item_id"] == call["id"]]
        assert "".join(event["delta"] for event in deltas) == call["arguments"]
    return answer, calls


@pytest.mark.parametrize("words", ["", "Let me see. "])
def test_a_tool_is_called_there_and_back_and_its_markup_is_neither_spoken_nor_text(probe: Probe, run: Run, words: str) -> None:
    async def scenario() -> None:
        async with probe.host.connect(tools=[CLOCK]) as client:
            with probe.scripted(words + CALL):
                answer, (call,) = await called(client)
            raw = probe.host.raw(answer.id)
            assert (answer.status, answer.text, raw.text) == ("completed", words, words + CALL)
            # Of words before a call, as much is heard as came before the call was begun.
            assert len(answer.audio) < len(encode_pcm16(raw.samples)) if words else not answer.audio
            assert (call["name"], json.loads(call["arguments"])) == ("clock", {"zone": "UTC"})
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "12:00"}
            await client.connection.conversation.item.create(item=output)
            await client.until("conversation.item.done")
            with probe.scripted("It is noon."):
                following = await client.respond()
            assert (following.status, following.text) == ("completed", "It is noon.")
            assert following.audio
            assert following.usage["input_tokens"] > answer.usage["input_tokens"]
        await probe.host.freed()

    run(scenario())


def test_the_arguments_of_a_call_stream(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        with probe.scripted(CALL):
            deltas = await probe.answer(asking(tools=(Tool(name="clock"),)), "audio")
        calls = [delta.tool_call for delta in deltas if delta.tool_call]
        assert [call.name for call in calls if call.name] == ["clock"]
        assert len([call for call in calls if call.arguments]) > 3
        assert "".join(call.arguments for call in calls) == '{"zone": "UTC"}'
        assert deltas[-1].finish_reason == "tool_calls"

    run(scenario())


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "clock"}])
def test_a_forced_call_is_made_and_the_talker_does_not_run(probe: Probe, run: Run, choice: Any) -> None:
    async def scenario() -> None:
        async with probe.host.connect(tools=[CLOCK], tool_choice=choice) as client:
            answer, (call,) = await called(client, max_output_tokens=200)
        assert (answer.text, answer.audio, call["name"]) == ("", b"", "clock")
        assert call["arguments"].startswith("{")
        assert probe.host.raw(answer.id).modalities == ("text",)

    run(scenario())


def test_no_call_is_made_where_the_choice_is_none(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        async with probe.host.connect(tools=[CLOCK], tool_choice="none") as client:
            with probe.scripted("Noon."):
                answer, calls = await called(client)
        assert (answer.text, calls) == ("Noon.", [])
        assert answer.audio

    run(scenario())


@pytest.mark.parametrize(
    ("written", "failed"),
    [
        ("<tool_call>\nwhat is this\n</tool_call>", False),
        ('<tool_call>\n{"name": "clock", "arguments": {"zone": UTC}}\n</tool_call>', True),
    ],
)
def test_broken_markup_of_a_call_is_neither_spoken_nor_text_nor_a_call(probe: Probe, run: Run, written: str, *, failed: bool) -> None:
    async def scenario() -> None:
        async with probe.host.connect(tools=[CLOCK]) as client:
            with probe.scripted(written):
                await client.speak(encode_pcm16(tone(1.0, 437)))
                answer = await client.respond()
            assert (answer.status, answer.text, answer.audio) == ("failed" if failed else "completed", "", b"")
            assert not [item for item in answer.done["output"] if item["type"] == "function_call" and item["status"] == "completed"]
            with probe.scripted("Sorry."):
                assert (await client.respond()).text == "Sorry."

    run(scenario())


def test_words_that_look_like_the_beginning_of_a_call_are_text(probe: Probe, run: Run) -> None:
    async def scenario() -> None:
        with probe.scripted("One is <"):
            assert texts(await probe.answer(asking(tools=(Tool(name="clock"),)))) == "One is <"

    run(scenario())


@pytest.mark.parametrize("voice", ["ethan", "marin"])
def test_the_talker_gets_the_voice(probe: Probe, run: Run, monkeypatch: pytest.MonkeyPatch, voice: str) -> None:
    voices = probe.host.adapter.capabilities.voices
    assert sorted(voices) == ["aiden", "chelsie", "ethan"]
    spoken = voice if voice in voices else voices[0]
    inputs: list[Any] = []
    own = probe.host.omni.generate

    def generate(prompt: Any, **more: Any) -> Any:
        inputs.append(prompt)
        return own(prompt, **more)

    monkeypatch.setattr(probe.host.omni, "generate", generate)

    async def scenario() -> None:
        async with probe.host.connect(audio={"output": {"voice": voice}}) as client:
            await client.say("hello")
            assert (await client.respond()).audio
        assert inputs[-1]["additional_information"]["speaker"] == [spoken]

    run(scenario())


def test_a_response_that_is_replaced_or_not_leaves_no_trace_in_the_sender_cache(
    probe: Probe, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (served,) = probe.host.host.models
    monkeypatch.setattr(served, "settings", replace(served.settings, on_active_response="replace"))

    async def begun(client: RealtimeClient) -> None:
        await client.ask()
        while (await client.receive())["type"] != "response.output_audio.delta":
            pass

    async def scenario() -> None:
        async with probe.host.connect(truncation="disabled") as client:
            with probe.at_length():
                await client.speak(encode_pcm16(tone(1.0, 437)))
                await begun(client)
                running = next(event["response"]["id"] for event in client.events if event["type"] == "response.created")

                await client.say("word " * 3000)
                before = probe.sender_cache
                await client.ask()
                while (event := await client.receive())["type"] != "error":
                    assert event["type"] != "response.done"
                assert event["error"]["code"] == "context_length_exceeded"
                assert probe.sender_cache == before

                too_long = next(e["item"]["id"] for e in reversed(client.events) if e["type"] == "conversation.item.done")
                await client.connection.conversation.item.delete(item_id=too_long)
                await client.until("conversation.item.deleted")
                await client.speak(encode_pcm16(tone(1.0, 600)))
            await client.ask()
            cancelled = await client.until("response.done")
            assert (cancelled["response"]["id"], cancelled["response"]["status"]) == (running, "cancelled")
            answer = await client.answer()
            assert answer.status == "completed" or answer.done["status_details"]["reason"] == "max_output_tokens"
            assert answer.audio
        await probe.host.freed()

    run(scenario())
