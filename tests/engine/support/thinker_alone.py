"""Drives the engine over vLLM, in a process that vLLM-Omni's plugins have not changed, and writes what it saw as JSON.

Usage: VLLM_PLUGINS=none python thinker_alone.py CHECKPOINT OUTPUT
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
from realtime_client import tone
from vllm.sampling_params import StructuredOutputsParams

from omni_realtime.adapter import check_deployment, resolve
from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, GenerateRequest, TextPart, Tool, Turn
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import EngineDeadError, EngineError
from omni_realtime.plugins import load_plugin

ENGINE_ARGS = {
    "enforce_eager": True,
    "max_model_len": 2048,
    "max_num_seqs": 4,
    "limit_mm_per_prompt": {"audio": 4, "image": 0, "video": 0},
    "distributed_executor_backend": "uni",
    "kv_cache_memory_bytes": 64 << 20,
    "enable_prefix_caching": True,
}
CALL = '<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>'
RATE = 16000


class Script:
    """Has the model write a given text."""

    regex: str | None = None

    def realtime_fix_sampling_params(self, *, params: list[Any], **_: Any) -> list[Any]:
        if self.regex:
            params[0].structured_outputs = StructuredOutputsParams(regex=self.regex)
        return params


class Thinker:
    def __init__(self, checkpoint: str) -> None:
        engine = {"type": "vllm", "model": checkpoint, "engine_args": ENGINE_ARGS}
        deployment = Deployment(name="thinker", plugin="qwen3-omni", settings={"engine": engine})
        assert not check_deployment(deployment)
        self.adapter = resolve(deployment, load_plugin("qwen3-omni"))
        self.engine: Any = self.adapter.engine
        self.script = Script()
        self.engine._hook = self.script
        self.requests = 0

    def prompt(self, *parts: AudioPart | TextPart, **more: Any) -> ChatPrompt:
        messages = (ChatMessage(role="user", content=parts),)
        return self.adapter.build_prompt(Turn(messages=messages, instructions="Be brief.", modalities=("text",), **more))

    def generate(self, prompt: ChatPrompt, limit: int = 16) -> Any:
        self.requests += 1
        request = GenerateRequest(request_id=f"r{self.requests}", prompt=prompt, modalities=("text",), max_output_tokens=limit)
        return self.engine.generate(request)

    async def answer(self, prompt: ChatPrompt, limit: int = 16) -> dict[str, Any]:
        async with aclosing(self.generate(prompt, limit)) as deltas:
            made = [delta async for delta in deltas]
        usage = made[-1].usage
        assert usage is not None
        return {
            "text": "".join(delta.text for delta in made),
            "audio": any(delta.audio is not None for delta in made),
            "deltas": len(made),
            "calls": "".join((delta.tool_call.name or "") + delta.tool_call.arguments for delta in made if delta.tool_call),
            "finish_reason": made[-1].finish_reason,
            "usage": asdict(usage),
        }

    async def error(self, prompt: ChatPrompt) -> str:
        try:
            await self.answer(prompt)
        except EngineDeadError:
            return "dead"
        except EngineError as error:
            return error.code
        return "none"

    def running(self) -> int:
        unfinished: int = self.engine._client.output_processor.get_num_unfinished_requests()
        return unfinished


def audio(key: str, seconds: float = 1.0, hertz: float = 437) -> AudioPart:
    return AudioPart(samples=tone(seconds, hertz, RATE), rate=RATE, key=key)


async def seen(thinker: Thinker) -> dict[str, Any]:
    engine, results = thinker.engine, dict[str, Any]()
    await engine.start()
    results["window"] = engine.context_window
    heard = thinker.prompt(audio("heard", 20.0), TextPart(text="what?"))
    results["counted"] = [await engine.count_tokens(heard), engine._client.renderer.mm_processor_cache.make_stats().total]
    results["heard"], results["again"] = await thinker.answer(heard), await thinker.answer(heard)
    results["together"] = await asyncio.gather(*(thinker.answer(thinker.prompt(TextPart(text=word))) for word in ("one", "two")))
    minutes = [audio(f"minute {number}", 60, 200 + number) for number in range(3)]
    results["too long"] = [await thinker.error(thinker.prompt(*minutes)), await thinker.error(thinker.prompt(minutes[0]))]
    many = thinker.prompt(*(audio(f"part {number}") for number in range(5)))
    results["too many"] = [await engine.count_tokens(many), await thinker.error(many)]
    lost = thinker.prompt(audio("lost"))
    await engine._thread.run(engine._renderer.render(lost))
    results["lost"] = [await thinker.error(lost), await thinker.error(lost)]
    async with aclosing(thinker.generate(thinker.prompt(TextPart(text="go on")), 500)) as deltas:
        await anext(deltas)
        results["during"] = thinker.running()
    results["closed"] = thinker.running()
    thinker.script.regex = CALL.replace("{", r"\{").replace("}", r"\}")
    results["called"] = await thinker.answer(thinker.prompt(TextPart(text="time?"), tools=(Tool(name="clock"),)), 200)
    thinker.script.regex = None
    results["killed"] = await killed(thinker)
    await engine.close()
    return results


async def killed(thinker: Thinker) -> list[str]:
    running = asyncio.create_task(thinker.error(thinker.prompt(TextPart(text="go on"))))
    await asyncio.sleep(0)
    for process in psutil.Process().children(recursive=True):
        if "EngineCore" in process.name():
            process.kill()
    found = [await asyncio.wait_for(running, 60), await asyncio.wait_for(thinker.error(thinker.prompt(TextPart(text="anew"))), 60)]
    try:
        await thinker.engine.check_health()
    except EngineDeadError:
        found.append("dead")
    return found


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(asyncio.run(seen(Thinker(sys.argv[1])))))
