"""The omni models of the engine tests: what is different about each."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omni_realtime.deployment import Deployment

SUPPORT = Path(__file__).parent
ENGINE_ARGS = {"parallel_stage_init": True, "stage_init_timeout": 300, "init_timeout": 400}
"""The stages load together, and take their time on a busy machine."""


@dataclass(frozen=True, kw_only=True)
class OmniModel:
    """One model: its plugin, and how its tiny checkpoint is made and served."""

    plugin: str
    """The entry point; the deployment has the same name."""
    generator: str
    """The script below ``checkpoints/``."""
    deploy_config: str
    """The file below ``deploy/``."""
    input_rate: int
    output_rate: int = 24000
    has_tools: bool = True
    stages: int = 3
    folder: str = "."
    """Where in the checkpoint the model lies."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """More of ``settings.engine``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """More of ``settings``: paths, by what they mean, within the checkpoint."""

    def __str__(self) -> str:
        return self.plugin

    def make_checkpoint(self, cache: Path) -> Path:
        """Return the folder of the checkpoint; it is made once for each state of the generators."""
        directory = cache / f"{self.plugin}-{_fingerprint()}"
        if not directory.is_dir():
            unfinished = directory.with_suffix(".unfinished")
            subprocess.run([sys.executable, SUPPORT / "checkpoints" / self.generator, unfinished], check=True)
            unfinished.rename(directory)
        return directory

    def deployment(self, checkpoint: Path) -> Deployment:
        """Return the deployment that serves the checkpoint on the CPU."""
        engine = {
            "type": "vllm_omni",
            "model": str(checkpoint / self.folder),
            "deploy_config": str(SUPPORT / "deploy" / self.deploy_config),
            "engine_args": ENGINE_ARGS,
            **self.engine,
        }
        paths = {name: str(checkpoint / path) for name, path in self.settings.items()}
        return Deployment(name=self.plugin, plugin=self.plugin, settings={"engine": engine, **paths})


QWEN3_OMNI = OmniModel(
    plugin="qwen3-omni",
    generator="make_tiny_qwen3_omni.py",
    deploy_config="qwen3_omni.yaml",
    input_rate=16000,
    engine={"tool_parser": "hermes"},
)
MINICPMO = OmniModel(
    plugin="minicpmo",
    generator="make_tiny_minicpmo.py",
    deploy_config="minicpmo.yaml",
    input_rate=16000,
    engine={"tool_parser": "hermes", "engine_args": {**ENGINE_ARGS, "trust_remote_code": True}},
)
MIMO_AUDIO = OmniModel(
    plugin="mimo-audio",
    generator="make_tiny_mimo_audio.py",
    deploy_config="mimo_audio.yaml",
    input_rate=24000,
    has_tools=False,
    stages=2,
    folder="model",
    settings={"audio_tokenizer": "audio_tokenizer"},
)
MODELS = (QWEN3_OMNI, MINICPMO, MIMO_AUDIO)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for source in sorted((SUPPORT / "checkpoints").rglob("*.*")):
        if "__pycache__" not in source.parts:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
