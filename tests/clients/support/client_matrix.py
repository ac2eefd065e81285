"""What the clients of the matrix have to do, and the record of what they did."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving import ROOT, likeness

RESULTS = Path(__file__).parent.parent / "results"
WORD_MS = 200
"""The scripted story has a word every so many milliseconds of its audio."""


@dataclass(frozen=True)
class Client:
    """A client of the matrix."""

    name: str
    """Of the file in ``results``."""
    package: str
    version: str
    command: tuple[str, ...]
    """Runs its driver."""
    deaf_model: str
    """The deployment whose detector this client may break."""


def python_client(name: str, script: str, requirement: str, *, deaf: int) -> Client:
    """A client whose driver ``script`` runs in ``.venv-clients/<its folder>``."""
    folder = Path(script).parent
    package, _, version = requirement.partition("==")
    python = ROOT / ".venv-clients" / folder / "bin" / "python"
    return Client(name, package, version, (str(python), str(ROOT / "tests" / "clients" / script)), f"deaf-{deaf}")


def record(client: Client, check: str, outcome: str = "yes") -> None:
    """Write down that ``client`` does ``check``; the table in the README is made of these files."""
    file = RESULTS / f"{client.name}.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    checks = known.get("checks", {}) if known.get("version") == client.version else {}
    checks[check] = outcome
    RESULTS.mkdir(exist_ok=True)
    entry = {"client": client.name, "package": client.package, "version": client.version, "checks": dict(sorted(checks.items()))}
    file.write_text(json.dumps(entry, indent=2) + "\n")


def assert_conversation(turns: list[dict[str, Any]]) -> None:
    """Two turns: the recordings of capital.wav and interrupt.wav, heard, and answered aloud."""
    for turn, asked, answer in zip(
        turns, ("What is the capital of France?", "Stop. What is the capital of Italy?"), ("paris", "rome"), strict=True
    ):
        assert likeness(turn["heard"], asked) > 0.8, turn
        assert answer in turn["said"].lower(), turn
        assert turn["seconds"] > 0.05 * len(turn["said"]) / 2, turn


def assert_heard_story(said: str, audio_end_ms: int) -> None:
    """The answer to "What did you say?": the story as far as it was heard."""
    words = said.removeprefix("I said: ").split()
    assert words == [f"word{n}" for n in range(1, len(words) + 1)], said
    assert abs(len(words) - audio_end_ms / WORD_MS) <= 1, (said, audio_end_ms)
