"""Renders and seconds of a turn that fits and of one that overflows: the ledger's way and the bisecting way.

The renderer is vLLM's own, on a tiny Qwen3-Omni checkpoint; no engine runs. The bisecting way is what vLLM-Omni's connection does: render
the whole history, then halve the range of first items until the smallest fitting suffix is found, then render once more for submission.

Run it in the environment of the engine tests: make benchmark-truncation
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pybase64
from omni_models import MODELS
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.renderers import renderer_from_config

from omni_realtime.adapter import resolve
from omni_realtime.chat import AudioPart, ChatDelta, ChatMessage, ChatPrompt, GenerateRequest, Turn, Usage
from omni_realtime.engine.vllm_common.rendering import PromptRenderer
from omni_realtime.plugins import load_plugin
from omni_realtime.session import SessionLimits, SessionSettings
from omni_realtime.session.messages import to_messages
from omni_realtime.testing import MemoryClient

os.environ["VLLM_ALLOW_LONG_MAX_MODEL_LEN"] = "1"

REPLY = "It is late, and the rain has stopped. The shops are closed, but the trains still run until midnight."
SECONDS = 1.0
RECORDINGS = 20
ANSWER_TOKENS = 100
LONGEST = 131_072


@dataclass
class Renders:
    """Renders so far, and how long they took."""

    count: int = 0
    seconds: float = 0.0


class Bench:
    """The real renderer, and the adapter that makes its prompts."""

    def __init__(self, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        model = next(model for model in MODELS if model.plugin == "qwen3-omni")
        checkpoint = model.make_checkpoint(Path(sys.prefix) / "checkpoints")
        deployment = model.deployment(checkpoint)
        self.adapter = resolve(deployment, load_plugin(deployment.plugin))
        arguments = AsyncEngineArgs(
            model=str(checkpoint), enforce_eager=True, max_model_len=LONGEST, limit_mm_per_prompt={"audio": 2000, "image": 0, "video": 0}
        )
        self._run = run
        self._renderer = PromptRenderer(renderer_from_config(arguments.create_engine_config()), None)
        self.renders = Renders()

    def prompt(self, turn: Turn) -> ChatPrompt:
        """Make the prompt; equal recordings have one key, so that the first render of each is not what is measured."""
        prompt = self.adapter.build_prompt(turn)
        return replace(prompt, messages=tuple(map(_with_recording_keys, prompt.messages)))

    def measure(self, prompt: ChatPrompt) -> int:
        """Render speculatively."""
        return self._timed(self._renderer.measure(prompt))

    def render(self, prompt: ChatPrompt) -> int:
        """Render for submission."""
        return self._timed(self._renderer.render(prompt)).tokens

    def _timed(self, work: Coroutine[Any, Any, Any]) -> Any:
        begun = time.perf_counter()
        result = self._run(work)
        self.renders.count += 1
        self.renders.seconds += time.perf_counter() - begun
        return result

    def taken(self) -> Renders:
        """Return the renders so far, and begin anew."""
        renders, self.renders = self.renders, Renders()
        return renders


def _with_recording_keys(message: ChatMessage) -> ChatMessage:
    parts = (replace(part, key=str(hash(part.samples.tobytes()))) if isinstance(part, AudioPart) else part for part in message.content)
    return replace(message, content=tuple(parts))


class Conversation(MemoryClient):
    """A session whose replies cost what the renderer says; ``timed`` turns are rendered for real."""

    def __init__(self, bench: Bench, window: int, tokens: Callable[[int], int]) -> None:
        capabilities = replace(bench.adapter.capabilities, turn_detection=())
        settings = SessionSettings(
            model="qwen3-omni",
            capabilities=capabilities,
            defaults={"output_modalities": ["text"], "max_output_tokens": ANSWER_TOKENS},
            context_window=window,
            limits=SessionLimits(conversation_audio_bytes=1 << 31),
        )
        self.bench = bench
        self.timed = False
        self._tokens = tokens
        super().__init__(settings, self.reply, count=lambda turn: bench.measure(bench.prompt(turn)))

    def reply(self, _request: GenerateRequest) -> list[ChatDelta]:
        """Reply to a turn, and tell what its prompt cost."""
        prompt = self.bench.prompt(self.turns[-1])
        cost = self.bench.render(prompt) if self.timed else self._tokens(len(prompt.messages))
        usage = Usage(input_text_tokens=cost, output_text_tokens=len(REPLY.split()) + 4)
        return [ChatDelta(text=REPLY), ChatDelta(finish_reason="stop", usage=usage)]

    def turn(self, number: int) -> None:
        """Speak, and be answered."""
        self.send({"type": "input_audio_buffer.append", "audio": speech(number)})
        self.send({"type": "input_audio_buffer.commit"})
        self.send({"type": "response.create"})


def speech(number: int) -> str:
    tone = np.sin(2 * np.pi * (200 + number % RECORDINGS) * np.arange(int(24000 * SECONDS)) / 24000)
    return pybase64.b64encode_as_string((tone * 8000).astype("<i2").tobytes())


def bisect(bench: Bench, turn: Turn, limit: int) -> None:
    """Find the longest suffix within half of the limit as vLLM-Omni's connection does, and render it for submission."""

    def measure(messages: tuple[ChatMessage, ...]) -> int:
        return bench.measure(bench.prompt(replace(turn, messages=messages)))

    start, end = 0, len(turn.messages)
    if measure(turn.messages) > limit * 0.8:
        start += 1
        while start < end:
            middle = (start + end) // 2
            if measure(turn.messages[middle:]) <= limit * 0.5:
                end = middle
            else:
                start = middle + 1
    bench.render(bench.prompt(replace(turn, messages=turn.messages[start:])))


def compare(bench: Bench, turns: int, tokens: Callable[[int], int]) -> None:
    limit = tokens(2 * turns - 1)
    conversation = Conversation(bench, limit + ANSWER_TOKENS, tokens)
    for number in range(turns - 1):
        conversation.turn(number)
    for warm in (bench.measure, bench.render):
        warm(bench.prompt(conversation.turns[-1]))
    bench.taken()
    conversation.timed = True
    for label in ("fits", "overflows"):
        conversation.turn(turns + (label == "overflows"))
        ours = bench.taken()
        whole = replace(conversation.turns[-1], messages=history(conversation))
        bisect(bench, whole, limit if label == "overflows" else 2 * limit)
        theirs = bench.taken()
        print(
            f"{turns:5d} turns, {label:9s}: ledger {ours.count} renders {ours.seconds * 1000:8.1f} ms, "
            f"bisecting {theirs.count:2d} renders {theirs.seconds * 1000:9.1f} ms, ratio {theirs.seconds / ours.seconds:6.1f}"
        )


def history(conversation: Conversation) -> tuple[ChatMessage, ...]:
    """Return the messages of the whole conversation up to the last question."""
    return to_messages(list(conversation.session._conversation)[:-1], 16000)  # noqa: SLF001


def main() -> None:
    with asyncio.Runner() as runner:
        bench = Bench(runner.run)
        probe = Conversation(bench, LONGEST, lambda _: 0)
        probe.timed = True
        costs = []
        for number in range(RECORDINGS):
            probe.turn(number)
            costs.append(bench.measure(bench.prompt(probe.turns[-1])))
        first, per_turn = costs[0], costs[2] - costs[1]
        assert set(np.diff(costs)) == {per_turn}, costs
        for turns in (10, 100, 1000):
            compare(bench, turns, lambda messages: first + (messages - 1) // 2 * per_turn)


if __name__ == "__main__":
    main()
