"""docs/writing_a_plugin.md, carried out: its files make a plugin that loads, answers, passes its own tests and installs with pip."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from omni_realtime.adapter import Adapter, check_deployment, resolve
from omni_realtime.chat import AudioPart, ChatDelta, ChatMessage, ContentPart, GenerateRequest, Modality, TextPart, Turn
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import Engine
from omni_realtime.plugins import load_plugin
from omni_realtime.testing import tone

TUTORIAL = Path(__file__).parents[2] / "docs" / "writing_a_plugin.md"
DEPLOYMENT = Deployment(name="parrot-1", plugin="parrot")

Install = Callable[..., None]


def tutorial_files() -> dict[str, str]:
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL))


@pytest.fixture
def adapter(install: Install) -> Adapter:
    files = tutorial_files()
    project = tomllib.loads(files["pyproject.toml"])["project"]
    modules = {"omni_realtime_parrot": files["omni_realtime_parrot.py"]}
    install(project["name"], project["entry-points"]["omni_realtime"], modules, version=project["version"])
    assert check_deployment(DEPLOYMENT) == []
    return resolve(DEPLOYMENT, load_plugin("parrot"))


def answer(adapter: Adapter, *parts: ContentPart, modalities: tuple[Modality, ...] = ("audio",)) -> list[ChatDelta]:
    prompt = adapter.build_prompt(Turn(messages=(ChatMessage(role="user", content=parts),), instructions="Be a parrot."))
    engine: Engine = adapter.engine

    async def collect() -> list[ChatDelta]:
        await engine.start()
        return [delta async for delta in engine.generate(GenerateRequest(request_id="1", prompt=prompt, modalities=modalities))]

    return asyncio.run(collect())


def test_the_tutorial_names_its_files() -> None:
    assert list(tutorial_files()) == ["pyproject.toml", "omni_realtime_parrot.py", "test_parrot.py", "parrot.yaml"]


def test_the_parrot_answers_with_the_users_own_voice(adapter: Adapter) -> None:
    samples = tone(0.55, rate=16000)
    deltas = answer(adapter, AudioPart(samples=samples, rate=16000, key="k", transcript="Good morning"))
    assert np.array_equal(np.concatenate([delta.audio for delta in deltas if delta.audio is not None]), samples)
    assert {delta.rate for delta in deltas if delta.audio is not None} == {adapter.rates.input}
    assert "".join(delta.text for delta in deltas) == "Good morning"
    assert deltas[-1].finish_reason == "stop"


def test_the_parrot_answers_in_writing(adapter: Adapter) -> None:
    deltas = answer(adapter, TextPart(text="Good morning"), modalities=("text",))
    assert ["".join(delta.text for delta in deltas), *(delta.audio for delta in deltas)] == ["Good morning", None, None]


def in_site(site: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, *command], cwd=site, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_parrot_installs_with_pip_and_passes_its_own_tests(tmp_path: Path) -> None:
    source, site = tmp_path / "parrot", tmp_path / "site"
    source.mkdir()
    for name, text in tutorial_files().items():
        (source / name).write_text(text, encoding="utf-8")
    in_site(source, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(site), str(source))
    assert not (site / "test_parrot.py").exists()
    report = in_site(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(source / "test_parrot.py"))
    assert re.search(r"\d{2} passed", report)
    assert "failed" not in report
    assert "omni-realtime-parrot" in in_site(site, "-m", "omni_realtime_host", "plugins")
    in_site(site, "-m", "omni_realtime_host", "check", str(source / "parrot.yaml"))
