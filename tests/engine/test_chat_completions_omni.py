"""The chat_completions engine against a real vLLM-Omni server."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omni_models import QWEN3_OMNI
from server_process import SUPPORT, Process, command_line_path, process, wait_until_up

from omni_realtime.chat import AudioPart, ChatDelta, ChatMessage, ChatPrompt, GenerateRequest, ImagePart, Samples, TextPart
from omni_realtime.engine.chat_completions import ChatCompletionsEngine, read_settings
from omni_realtime.engine.chat_completions.client import Client
from omni_realtime.engine.port import EngineError
from pictures import png

pytestmark = pytest.mark.slow

PROMPT = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="Say something."),)),))


@pytest.fixture(scope="module")
def omni_server(tmp_path_factory: pytest.TempPathFactory, checkpoints: Path) -> Iterator[Process]:
    log = tmp_path_factory.mktemp("omni") / "log"
    with process(vllm_omni_serve(QWEN3_OMNI.make_checkpoint(checkpoints)), log, PYTHONPATH=command_line_path()) as server:
        wait_until_up(server, log)
        yield server


def vllm_omni_serve(model: Path) -> Callable[[int], list[str]]:
    options = ["--omni", "--served-model-name", "tiny", "--deploy-config", str(SUPPORT / "deploy" / QWEN3_OMNI.deploy_config)]
    return lambda port: [sys.executable, "-m", "vllm_omni.entrypoints.cli.main", "serve", str(model), "--port", str(port), *options]


def run(server: Process, test: Callable[[ChatCompletionsEngine], Awaitable[None]]) -> None:
    async def with_engine() -> None:
        settings = read_settings({"type": "chat_completions", "base_url": f"{server.url}/v1", "model": "tiny"})
        engine = ChatCompletionsEngine(settings)
        await engine.start()
        try:
            await test(engine)
        finally:
            await engine.close()

    asyncio.run(asyncio.wait_for(with_engine(), 240))


async def collect(engine: ChatCompletionsEngine, prompt: ChatPrompt = PROMPT, **fields) -> list[ChatDelta]:
    async with aclosing(engine.generate(GenerateRequest(request_id="r", prompt=prompt, **fields))) as deltas:
        return [delta async for delta in deltas]


def heard(deltas: list[ChatDelta]) -> Samples:
    return np.concatenate([delta.audio for delta in deltas if delta.audio is not None] or [np.zeros(0, np.float32)])


class Tee:
    """Counts the samples of an answer by what the server says of each chunk."""

    def __init__(self, client: Client) -> None:
        self.frames: list[int] = []
        self._client = client

    async def stream(self, *request: Any) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._client.stream(*request)) as events:
            async for data in events:
                choices = json.loads(data)["choices"]
                self.frames += [choice["audio_metadata"]["frame_count"] for choice in choices if choice.get("audio_metadata")]
                yield data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_a_spoken_answer_has_every_sample_that_the_server_sent(omni_server):
    async def test(engine):
        engine._client = tee = Tee(engine._client)
        deltas = await collect(engine)
        assert [len(delta.audio) for delta in deltas if delta.audio is not None] == tee.frames
        assert len(heard(deltas)) > 24000
        assert np.abs(heard(deltas)).max() > 0.01
        assert {delta.rate for delta in deltas if delta.audio is not None} == {24000}
        assert "".join(delta.text for delta in deltas)
        assert deltas[-1].finish_reason in {"stop", "length"}
        assert deltas[-1].usage.output_text_tokens > 0

    run(omni_server, test)


def test_a_text_answer_has_no_audio_and_keeps_its_limit(omni_server):
    async def test(engine):
        deltas = await collect(engine, modalities=("text",), max_output_tokens=3)
        assert not len(heard(deltas))
        assert deltas[-1].finish_reason == "length"
        assert deltas[-1].usage.output_text_tokens == 3

    run(omni_server, test)


def test_the_user_is_heard_and_tokens_are_counted_as_rendered(omni_server):
    async def test(engine):
        for tone in (20, 40):
            part = AudioPart(samples=np.sin(np.arange(16000, dtype=np.float32) / tone) / 4, rate=16000, key=f"{tone}")
            prompt = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="Listen: "), part)),))
            usage = (await collect(engine, prompt, modalities=("text",), max_output_tokens=4))[-1].usage
            assert await engine.count_tokens(prompt) == usage.input_text_tokens + usage.input_audio_tokens

    run(omni_server, test)


def test_an_image_is_seen_and_counted_as_rendered(omni_server):
    async def test(engine):
        lengths = []
        for images in ((), (ImagePart(data=png(64, 64), media_type="image/png", key="i"),)):
            prompt = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="Look: "), *images)),))
            usage = (await collect(engine, prompt, modalities=("text",), max_output_tokens=4))[-1].usage
            assert await engine.count_tokens(prompt) == usage.input_tokens
            lengths.append(usage.input_tokens)
        assert lengths[1] - lengths[0] == 2 * 2 + 2, "a token for each 32 x 32 pixels, between two marks"

    run(omni_server, test)


def test_an_unknown_voice_is_refused_in_the_servers_words(omni_server):
    async def test(engine):
        with pytest.raises(EngineError, match="nobody") as caught:
            await collect(engine, voice="nobody")
        assert caught.value.code == "engine_refused"

    run(omni_server, test)


def test_an_answer_that_is_closed_amid_audio_frees_the_server(omni_server):
    async def test(engine):
        for _ in range(3):
            async with aclosing(engine.generate(GenerateRequest(request_id="r", prompt=PROMPT))) as deltas:
                async for delta in deltas:
                    if delta.audio is not None:
                        break
            deadline = time.monotonic() + 5
            while await asyncio.to_thread(omni_server.total, "vllm_omni:num_requests_running"):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
        assert len(heard(await collect(engine)))

    run(omni_server, test)
