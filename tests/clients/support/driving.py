"""What the drivers share; they run in the clients' environments, so this needs nothing but Python."""

from __future__ import annotations

import array
import asyncio
import json
import math
import os
import sys
import traceback
import wave
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Event = dict[str, Any]

LOCAL_URL, SCRIPTED_URL, EXPIRING_URL = (os.environ[f"{name}_URL"] for name in ("LOCAL", "SCRIPTED", "EXPIRING"))
"""``http://host:port`` of each server."""
LOCAL, SCRIPTED, DEAF = (os.environ[f"{name}_MODEL"] for name in ("LOCAL", "SCRIPTED", "DEAF"))
"""Their models; of ``DEAF`` the detector fails at the first speech."""
KEY = os.environ["KEY"]

RATE = 24000
SILENCE = bytes(2 * RATE)
STORY, REPEAT, WEATHER, HELLO = 400, 700, 1000, 1300
"""The tones in Hz that say "Tell me a long story.", "What did you say?", "What is the weather in Paris?" and "Hello."."""
CHECK_S = 150.0


def ws(url: str) -> str:
    return f"ws{url.removeprefix('http')}/v1/realtime"


def recording(name: str) -> bytes:
    """PCM16 at 24 kHz of a recording in examples/audio."""
    with wave.open(str(Path(os.environ["AUDIO"], f"{name}.wav"))) as file:
        return file.readframes(file.getnframes())


def tone(hertz: int) -> bytes:
    """A second of a sine, as PCM16 at 24 kHz."""
    samples = (round(9000 * math.sin(2 * math.pi * hertz * n / RATE)) for n in range(RATE))
    return array.array("h", samples).tobytes()


def chunks(pcm: bytes, size: int = 4800) -> list[bytes]:
    return [pcm[start : start + size] for start in range(0, len(pcm), size)]


def provocations() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(Path(os.environ["PROVOCATIONS"]).read_text())
    return listed


def report(check: str, **fields: Any) -> None:
    print(json.dumps({"check": check, **fields}), flush=True)  # noqa: T201 - a driver's report is what it prints


async def run_checks(package: str, *checks: Callable[[], Awaitable[Event]]) -> None:
    """Report the package's version, and of every check what it saw, or how it failed."""
    report("version", version=version(package))
    for check in checks:
        if sys.argv[1:] and check.__name__ not in sys.argv[1:]:
            continue
        try:
            report(check.__name__, **await asyncio.wait_for(check(), CHECK_S))
        except Exception:  # noqa: BLE001 - the test shows it
            report(check.__name__, failure=traceback.format_exc())
