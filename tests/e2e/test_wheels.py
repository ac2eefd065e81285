"""The wheels of every distribution, in an empty environment: a server starts from them and answers."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from serving import ROOT, served, talk

pytestmark = pytest.mark.slow

DISTRIBUTIONS = {
    "omni-realtime": "core",
    "omni-realtime-host": "hostapp",
    **{f"omni-realtime-{folder.name.replace('_', '-')}": f"plugins/{folder.name}" for folder in sorted((ROOT / "plugins").iterdir())},
}


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for place in DISTRIBUTIONS.values():
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT / place))
    return folder


def test_every_distribution_has_a_wheel_with_types_and_a_readme(wheels: Path):
    for name in DISTRIBUTIONS:
        (wheel,) = wheels.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
        assert any(n.endswith("/py.typed") for n in names), name
        assert "License-Expression: Apache-2.0" in metadata
        assert "Description-Content-Type: text/markdown" in metadata


def test_a_server_starts_from_the_wheels_alone(wheels: Path, tmp_path: Path):
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--find-links", str(wheels), *DISTRIBUTIONS)
    run(python, "-m", "omni_realtime_local.install")
    config = shutil.copy(ROOT / "deployments" / "local.yaml", tmp_path)
    command = str(tmp_path / "venv" / "bin" / "omni-realtime")
    installed = run(command, "plugins", cwd=tmp_path)
    assert all(name in installed for name in ("local", "mimo-audio", "minicpmo", "qwen3-omni")), installed

    async def ask(url: str) -> str:
        async with talk(url) as client:
            await client.until("session.created")
            question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is the capital of France?"}]}
            await client.connection.conversation.item.create(item=question)
            await client.connection.response.create(response={"output_modalities": ["text"]})
            events = await client.until("response.done")
            return events[-1].response.output[0].content[0].text

    with served([command, "serve", str(config)], tmp_path / "log") as url:
        assert "Paris" in asyncio.run(ask(url))
