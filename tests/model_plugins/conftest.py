"""What the adapters of omni models are tested against where no engine is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omni_realtime.audio import write_wav
from omni_realtime.chat import AudioPart

DEPLOY_CONFIGS = {
    "minicpmo_4_5.yaml": "session_mode: duplex\nstages: [{stage_id: 0, limit_mm_per_prompt: {audio: 64}}, {stage_id: 1}, {stage_id: 2}]",
    "minicpmo_4_5_turn.yaml": "base_config: minicpmo_4_5.yaml\nsession_mode: turn",
    "mimo_audio.yaml": "async_chunk: true\nstages: [{stage_id: 0, max_num_seqs: 1}, {stage_id: 1, max_num_seqs: 1}]",
}
"""What matters here of the deploy configs that vLLM-Omni 0.30 ships."""


@pytest.fixture
def vllm_omni(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with vLLM-Omni's name and its deploy configs, which nothing imports; the folder of the deploy configs."""
    package = tmp_path / "site" / "vllm_omni"
    deploy = package / "deploy"
    deploy.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('a check imports the engine')\n")
    for name, text in DEPLOY_CONFIGS.items():
        (deploy / name).write_text(text)
    monkeypatch.syspath_prepend(str(package.parent))
    return deploy


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[..., str]:
    """Makes the folder of a checkpoint: ``config.json`` of the arguments, and a chat template."""

    def make(*, template: bool = True, **config: Any) -> str:
        folder = tmp_path / "checkpoint"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"} if template else {}))
        return str(folder)

    return make


def tone(seconds: float, rate: int, hertz: float = 437) -> Any:
    """A sine wave."""
    return (0.3 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    """A recording of a voice: one second at 16 kHz."""
    file = tmp_path / "voice.wav"
    file.write_bytes(write_wav(tone(1, 16000), 16000))
    return file


@pytest.fixture
def spoken() -> Callable[[str], AudioPart]:
    """Makes a user's audio by its key."""
    return lambda key: AudioPart(samples=tone(0.2, 16000), rate=16000, key=key)
