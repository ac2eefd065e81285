"""The page of ``examples/browser`` in a real Chromium, whose microphone plays recordings."""

from __future__ import annotations

import math
import struct
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client_drivers import run_driver
from client_matrix import assert_heard_story
from client_servers import KEY, LOCAL, SCRIPTED
from serving import ROOT, likeness, recording

DRIVER = ROOT / "tests" / "clients" / "node" / "browser_example.mjs"
EXAMPLE = ROOT / "examples" / "browser" / "index.html"
SECOND = bytes(2 * 24000)


def tone(hertz: int) -> bytes:
    """A second of a sine, as the scripted deployment takes it for a sentence."""
    return b"".join(struct.pack("<h", round(9000 * math.sin(2 * math.pi * hertz * n / 24000))) for n in range(24000))


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Talk to a model from the page until it has had so many responses; what the page then shows, and the truncations that it sent."""

    def talk(speech: bytes, url: str, model: str, key: str, *, responses: int) -> dict[str, Any]:
        with wave.open(str(tmp_path / "microphone.wav"), "wb") as file:
            file.setparams((1, 2, 24000, 0, "NONE", "not compressed"))
            file.writeframes(SECOND + speech + 5 * SECOND)
        env = {
            "HOST": f"ws{url.removeprefix('http')}/v1/realtime?model={model}",
            "KEY": key,
            "MICROPHONE": str(tmp_path / "microphone.wav"),
            "PAGE": str(EXAMPLE),
            "RESPONSES": str(responses),
        }
        (shown,) = run_driver(("node", DRIVER), env)
        return shown

    return talk


def test_the_page_asks_the_local_model(local_url: str, page: Callable[..., dict[str, Any]]):
    shown = page(recording("capital"), local_url, LOCAL, "", responses=1)
    (state, _), (who, question), (whom, answer) = shown["said"]
    assert (state, who, whom) == ("connected", "user", "assistant")
    assert likeness(question, "What is the capital of France?") > 0.8
    assert "Paris" in answer


def test_the_page_falls_silent_when_interrupted_and_says_what_was_heard(scripted_url: str, page: Callable[..., dict[str, Any]]):
    shown = page(tone(400) + 5 * SECOND + tone(700), scripted_url, SCRIPTED, KEY, responses=2)
    (audio_end_ms,) = shown["truncated"]
    assert [who for who, _ in shown["said"]] == ["connected", "user", "assistant", "user", "assistant"]
    assert_heard_story(shown["said"][-1][1], audio_end_ms)
