"""An adapter that is not ours, installed as anybody's package, serves its model on the real engine through the command line."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from realtime_client import RATE, RealtimeClient, tone
from server_process import UP_S, process

from omni_realtime.audio import encode_pcm16

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party_adapter"
ENGINE_ARGS = {
    "enforce_eager": True,
    "max_model_len": 2048,
    "kv_cache_memory_bytes": 64 << 20,
    "distributed_executor_backend": "uni",
    "limit_mm_per_prompt": {"audio": 8},
}


def run_python(*arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("third-party")
    run_python(Path(__file__).parent / "support" / "checkpoints" / "make_tiny_qwen2_audio.py", folder / "model")
    run_python("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site"), str(EXAMPLE))
    config = yaml.safe_load((EXAMPLE / "qwen2-audio.yaml").read_text())
    (deployment,) = config["deployments"]
    del deployment["detector"]
    deployment["settings"]["engine"] |= {"model": str(folder / "model"), "engine_args": ENGINE_ARGS}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    log = folder / "log"

    def command(port: int) -> list[str]:
        return [sys.executable, "-m", "omni_realtime_host", "serve", str(folder / "config.yaml"), "--port", str(port)]

    path = os.pathsep.join([str(folder / "site"), os.environ["PYTHONPATH"]])
    with process(command, log, PYTHONPATH=path, VLLM_PLUGINS="none") as server:
        deadline = time.monotonic() + UP_S
        while not _ready(server.url):
            assert server.process.poll() is None, log.read_text(errors="replace")[-4000:]
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
            time.sleep(0.5)
        yield server.url


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready").is_success
    except httpx.TransportError:
        return False


def test_it_hears_and_writes(served: str, run: Callable[[Coroutine[Any, Any, None]], None]):
    async def conversation() -> None:
        async with RealtimeClient.connect(f"{served}/v1", "qwen2-audio") as client:
            await client.update({"output_modalities": ["text"], "audio": {"input": {"turn_detection": None}}, "max_output_tokens": 24})
            await client.speak(encode_pcm16(tone(1.0, 440, RATE)))
            spoken = await client.respond("text")
            await client.say("And now?")
            written = await client.respond("text")
        assert spoken.status in {"completed", "incomplete"}
        assert spoken.usage["output_tokens"] > 0
        assert spoken.usage["input_token_details"]["audio_tokens"] == 25
        assert written.usage["input_tokens"] > spoken.usage["input_tokens"]

    run(conversation())


def test_what_it_does_not_serve_is_refused_by_name(served: str, run: Callable[[Coroutine[Any, Any, None]], None]):
    async def ask_for_speech() -> None:
        async with RealtimeClient.connect(f"{served}/v1", "qwen2-audio") as client:
            await client.connection.session.update(session={"type": "realtime", "output_modalities": ["audio"]})
            refused = await asyncio.wait_for(client.receive(), 30)
        assert refused["type"] == "error"
        assert "text" in refused["error"]["message"]

    run(ask_for_speech())
