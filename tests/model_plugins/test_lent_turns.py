"""Omni models hear turns with the local plugin's detector and scorer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from omni_realtime.adapter import resolve
from omni_realtime.deployment import Deployment
from omni_realtime.plugins import load_plugin

OVER_HTTP = {"type": "chat_completions", "base_url": "http://127.0.0.1:9/v1", "model": "m", "context_window": 4096}


@pytest.mark.parametrize("plugin", ["qwen3-omni", "minicpmo", "mimo-audio"])
def test_with_the_local_detector_turns_end_by_silence_or_by_meaning(plugin: str) -> None:
    alone: Any = Deployment(name="served", plugin=plugin, settings={"engine": OVER_HTTP})
    adapter = resolve(alone, load_plugin(plugin))
    assert (adapter.capabilities.turn_detection, adapter.detector, adapter.turn_scorer) == ((), None, None)
    adapter = resolve(replace(alone, detector="local"), load_plugin(plugin))
    assert adapter.capabilities.turn_detection == ("server_vad", "semantic_vad")
    assert type(adapter.detector).__name__ == "SileroDetector"
    assert type(adapter.turn_scorer).__name__ == "SmartTurnScorer"
