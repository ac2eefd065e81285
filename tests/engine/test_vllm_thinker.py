"""The engine over vLLM itself, with the thinker of Qwen3-Omni."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from omni_models import QWEN3_OMNI, SUPPORT

START_S = 300


@pytest.fixture(scope="module")
def seen(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a thinker in a process of its own did: in this one vLLM-Omni has put its classes into vLLM."""
    output = tmp_path_factory.mktemp("thinker") / "seen.json"
    arguments = [sys.executable, SUPPORT / "thinker_alone.py", QWEN3_OMNI.make_checkpoint(checkpoints), output]
    ended = subprocess.run(arguments, env={**os.environ, "VLLM_PLUGINS": "none"}, timeout=START_S, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return dict(json.loads(output.read_text()))


def test_the_user_is_heard_and_answered_in_writing(seen: dict[str, Any]) -> None:
    answer = seen["heard"]
    assert answer["text"]
    assert (answer["audio"], answer["finish_reason"]) == (False, "length")
    assert answer["deltas"] > 3
    assert answer["usage"]["output_text_tokens"] == 16
    assert answer["usage"]["input_audio_tokens"] == 260


def test_counting_equals_rendering_and_leaves_the_sender_cache_untouched(seen: dict[str, Any]) -> None:
    usage = seen["heard"]["usage"]
    assert seen["counted"] == [usage["input_text_tokens"] + usage["input_audio_tokens"], 0]


def test_usage_tells_what_the_prefix_cache_had(seen: dict[str, Any]) -> None:
    first, again = seen["heard"]["usage"], seen["again"]["usage"]
    assert first["cached_text_tokens"] + first["cached_audio_tokens"] == 0
    assert 0 < again["cached_text_tokens"] <= again["input_text_tokens"]
    assert 0 < again["cached_audio_tokens"] <= again["input_audio_tokens"]


def test_two_at_once(seen: dict[str, Any]) -> None:
    assert [answer["usage"]["output_text_tokens"] for answer in seen["together"]] == [16, 16]


def test_what_does_not_fit_is_refused_without_a_trace(seen: dict[str, Any]) -> None:
    assert seen["too long"] == ["context_length_exceeded", "none"]
    assert seen["too many"][0] > seen["window"] == 2048
    assert seen["too many"][1] == "context_length_exceeded"


def test_a_render_that_is_never_submitted_fails_one_response_and_no_more(seen: dict[str, Any]) -> None:
    assert seen["lost"] == ["server_error", "none"]


def test_closing_early_frees_the_engine(seen: dict[str, Any]) -> None:
    assert (seen["during"], seen["closed"]) == (1, 0)


def test_a_tool_is_called(seen: dict[str, Any]) -> None:
    assert (seen["called"]["calls"], seen["called"]["finish_reason"]) == ('clock{"zone": "UTC"}', "tool_calls")
    assert not seen["called"]["text"]


def test_an_engine_that_is_killed_fails_what_runs_and_refuses_what_comes(seen: dict[str, Any]) -> None:
    assert seen["killed"] == ["dead", "dead", "dead"]
