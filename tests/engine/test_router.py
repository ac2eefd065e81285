"""A host in front of two ``vllm serve`` processes behind vllm-router: how a deployment outgrows one machine (docs/scaling.md)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pluggy
import pytest
from omni_models import QWEN3_OMNI
from openai import AsyncOpenAI
from server_process import Process, command_line_path, free_port, process, wait_until_up

from omni_realtime import defaults, hookspecs
from omni_realtime.adapter import Adapter, resolve
from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, GenerateRequest, TextPart
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import EngineError
from omni_realtime.plugins import Plugin
from omni_realtime.protocol import Capabilities
from omni_realtime_host.config_schema import Server
from omni_realtime_host.host import Host
from omni_realtime_host.served_model import ServedModel
from omni_realtime_host.server import listening, open_socket

pytestmark = pytest.mark.slow

LATEST_S = 60
WEATHER = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
WORDS = r"([a-z ]{50}\n){40}"
"""More than any response is allowed, so that each ends by its limit; the random model alone may write what cannot be seen."""
CALL = r'<tool_call>\n\{"name": "get_weather", "arguments": \{"city": "Bern"\}\}\n</tool_call>'


class TextModel:
    """The plugin: an omni model of which only the text is served."""

    @hookspecs.hookimpl
    def realtime_capabilities(self) -> Capabilities:
        return Capabilities(audio_input=True, tools=True)


@dataclass
class Stack:
    """Two servers and the router in front of them."""

    servers: list[Process]
    router: Process

    def total(self, metric: str) -> float:
        return sum(server.total(metric) for server in self.servers if server.process.poll() is None)


def vllm_serve(model: Path) -> Callable[[int], list[str]]:
    options = {
        "--served-model-name": "tiny",
        "--max-model-len": "2048",
        "--max-num-seqs": "8",
        "--limit-mm-per-prompt": json.dumps({"audio": 4, "image": 0, "video": 0}),
        "--distributed-executor-backend": "uni",
        "--kv-cache-memory-bytes": str(64 << 20),
        "--tool-call-parser": "hermes",
    }
    flags = ["--enforce-eager", "--enable-auto-tool-choice", "--enable-prompt-tokens-details"]
    pairs = [word for pair in options.items() for word in pair]
    module = "vllm.entrypoints.cli.main"
    return lambda port: [sys.executable, "-m", module, "serve", str(model), "--port", str(port), *flags, *pairs]


def vllm_router(servers: list[Process]) -> Callable[[int], list[str]]:
    command = str(Path(sys.executable).with_name("vllm-router"))
    urls = [server.url for server in servers]
    options = ["--policy", "sticky_least_loaded", "--cb-failure-threshold", "1", "--prometheus-port", str(free_port())]
    return lambda port: [command, "--port", str(port), *options, "--worker-urls", *urls]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, checkpoints: Path) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("router")
    model, paths = QWEN3_OMNI.make_checkpoint(checkpoints), command_line_path()
    with contextlib.ExitStack() as running:
        logs = [folder / f"{name}.log" for name in ("first", "second", "router")]
        servers = [running.enter_context(process(vllm_serve(model), log, PYTHONPATH=paths, VLLM_PLUGINS="none")) for log in logs[:2]]
        for server, log in zip(servers, logs, strict=False):
            wait_until_up(server, log)
        router = running.enter_context(process(vllm_router(servers), logs[2]))
        wait_until_up(router, logs[2])
        yield Stack(servers, router)


def make_adapter(router: Process, name: str, **extra_body: Any) -> Adapter:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(defaults)
    manager.register(TextModel())
    engine = {"type": "chat_completions", "base_url": f"{router.url}/v1", "model": "tiny", "extra_body": {"temperature": 0, **extra_body}}
    deployment = Deployment(name=name, plugin="text-model", settings={"engine": engine})
    return resolve(deployment, Plugin(name="text-model", distribution="text-model", version="1", hooks=(), hook=manager.hook))


@contextlib.asynccontextmanager
async def host(router: Process) -> AsyncIterator[tuple[AsyncOpenAI, str, Adapter]]:
    """The SDK of a client, the host's address, and the deployment ``talker``; ``caller`` always calls the function."""
    talker = make_adapter(router, "talker", structured_outputs={"regex": WORDS})
    caller = make_adapter(router, "caller", structured_outputs={"regex": CALL})
    settings = Server.model_validate({"port": 0})
    serving = Host([ServedModel(adapter, settings.limits) for adapter in (talker, caller)], settings)
    listener = open_socket(settings)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        await serving.start()
        async with listening(settings, serving, listener):
            try:
                yield AsyncOpenAI(base_url=f"{address}/v1", api_key="unused"), address, talker
            finally:
                await serving.drain()
                await serving.end()
    finally:
        await serving.close()


async def until(connection: Any, kind: str) -> Any:
    async with asyncio.timeout(LATEST_S):
        async for event in connection:
            assert event.type != "error", event
            if event.type == kind:
                return event
    raise AssertionError(f"the connection closed before {kind}")


async def say(connection: Any, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    await connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})


async def ask(connection: Any, text: str, tokens: int = 8) -> Any:
    await say(connection, text)
    await connection.response.create(response={"max_output_tokens": tokens})
    return (await until(connection, "response.done")).response


async def eventually(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.05)


def run(test: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(test(), 4 * LATEST_S))


def test_sessions_spread_over_both_servers_and_each_stays_on_one(stack):
    def answered() -> list[float]:
        return [server.total("vllm:request_success_total") for server in stack.servers]

    async def test():
        async def session(number: int) -> None:
            async with client.realtime.connect(model="talker") as connection:
                for turn in range(3):
                    response = await ask(connection, f"Session {number}, turn {turn}")
                    assert response.status == "incomplete"
                    assert response.status_details.reason == "max_output_tokens"
                    assert response.usage.output_tokens == 8
                    assert response.output[0].content[0].text

        async with host(stack.router) as (client, _, _talker):
            before = answered()
            await asyncio.gather(*(session(number) for number in range(6)))
            turns = [late - early for early, late in zip(before, answered(), strict=True)]
        assert sum(turns) == 18
        assert min(turns) > 0
        assert [count % 3 for count in turns] == [0, 0]

    run(test)


def test_a_spoken_turn_is_heard_and_counted(stack):
    async def test():
        wave = (np.sin(np.arange(24000) / 20) * 8000).astype("<i2")
        async with host(stack.router) as (client, _, _talker), client.realtime.connect(model="talker") as connection:
            await connection.session.update(session={"type": "realtime", "audio": {"input": {"turn_detection": None}}})
            await connection.input_audio_buffer.append(audio=base64.b64encode(wave.tobytes()).decode())
            await connection.input_audio_buffer.commit()
            await connection.response.create(response={"max_output_tokens": 8})
            usage = (await until(connection, "response.done")).response.usage
        assert usage.input_token_details.audio_tokens == 13
        assert usage.input_token_details.text_tokens > 0
        assert usage.output_tokens == 8

    run(test)


def test_tokens_are_counted_as_the_server_renders_them(stack):
    async def test():
        audio = AudioPart(samples=np.zeros(32000, np.float32), rate=16000, key="silence")
        prompt = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="Listen: "), audio)),))
        async with host(stack.router) as (_, _, talker):
            assert talker.engine.context_window == 2048
            counted = await talker.engine.count_tokens(prompt)
            request = GenerateRequest(request_id="counted", prompt=prompt, modalities=("text",), max_output_tokens=2)
            usage = [delta.usage async for delta in talker.engine.generate(request) if delta.usage][-1]
            assert counted == usage.input_text_tokens + usage.input_audio_tokens
            assert usage.input_audio_tokens == 26
            long = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="x y z " * 2000),)),))
            assert await talker.engine.count_tokens(long) > 2048

    run(test)


def test_a_prompt_beyond_the_context_fails_with_its_code(stack):
    async def test():
        async with host(stack.router) as (_, _, talker):
            prompt = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="x y z " * 2000),)),))
            request = GenerateRequest(request_id="long", prompt=prompt, modalities=("text",))
            with pytest.raises(EngineError) as caught:
                await anext(talker.engine.generate(request))
            assert caught.value.code == "context_length_exceeded"

    run(test)


def test_a_tool_is_called_and_answered(stack):
    async def test():
        async with host(stack.router) as (client, _, _talker), client.realtime.connect(model="caller") as connection:
            await connection.session.update(session={"type": "realtime", "tools": [WEATHER]})
            await say(connection, "How is the weather in Bern?")
            await connection.response.create()
            response = (await until(connection, "response.done")).response
            (call,) = response.output
            assert (response.status, call.type, call.name) == ("completed", "function_call", "get_weather")
            assert json.loads(call.arguments) == {"city": "Bern"}
            output = {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny"}
            await connection.conversation.item.create(item=output)
            await connection.response.create()
            assert (await until(connection, "response.done")).response.status == "completed"

    run(test)


@pytest.mark.parametrize("way", ["cancel", "disconnect"])
def test_a_response_that_is_given_up_frees_the_server(stack, way):
    async def test():
        async with host(stack.router) as (client, _, _talker):
            for _ in range(3):
                async with client.realtime.connect(model="talker") as connection:
                    await say(connection, "Go on and on")
                    await connection.response.create(response={"max_output_tokens": 1500})
                    await until(connection, "response.output_text.delta")
                    assert stack.total("vllm:num_requests_running") == 1
                    if way == "cancel":
                        await connection.response.cancel()
                        assert (await until(connection, "response.done")).response.status == "cancelled"
                    else:
                        connection._connection.transport.abort()
                await eventually(lambda: stack.total("vllm:num_requests_running") == 0, 2)

    run(test)


def test_one_server_dies_and_then_the_other(stack):
    """Last in this file: it leaves no server."""

    async def test():
        async with host(stack.router) as (client, address, _talker), client.realtime.connect(model="talker") as connection:
            first, second = stack.servers
            os.killpg(first.process.pid, 9)
            first.process.wait()
            for turn in range(4):
                assert (await ask(connection, f"Turn {turn}")).status == "incomplete"

            await say(connection, "Go on and on")
            await connection.response.create(response={"max_output_tokens": 1500})
            await until(connection, "response.output_text.delta")
            os.killpg(second.process.pid, 9)
            second.process.wait()
            running = (await until(connection, "response.done")).response
            refused = await ask(connection, "Still there?")
            for response in (running, refused):
                assert response.status == "failed"
                assert response.status_details.error.code == "engine_unavailable"
            assert (await asyncio.to_thread(httpx.get, f"{address}/ready")).is_success

    run(test)
