"""Runs a client's driver in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from serving import ROOT

DRIVER_S = 480


def run_driver(command: Sequence[str | Path], env: Mapping[str, str]) -> list[dict[str, Any]]:
    """Run a driver to its end, which must be a good one, and return its reports: a JSON object a line."""
    environment = {**os.environ, **env, "AUDIO": str(ROOT / "examples" / "audio"), "PYTHONPATH": str(Path(__file__).parent)}
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=DRIVER_S)
    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
    return [json.loads(line) for line in ran.stdout.splitlines()]
