"""Ends of turns by smart-turn: its features against Whisper's own, and its judgement of real speech within a session."""

from __future__ import annotations

import base64
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import numpy as np
import pytest
import soxr

import omni_realtime_local as plugin
from omni_realtime.adapter import resolve
from omni_realtime.chat import Samples
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import Detector, TurnScorer
from omni_realtime.plugins import load_plugin
from omni_realtime.session import SessionSettings
from omni_realtime.testing import MemoryClient, text_reply
from omni_realtime_local.log_mel import log_mel
from omni_realtime_local.settings import PiperSettings
from omni_realtime_local.tts import PiperSpeaker
from omni_realtime_local.turns import SmartTurnScorer

Run = Callable[[Coroutine[Any, Any, Any]], Any]
Say = Callable[[str], Samples]

HUM = (0.1 * np.sin(np.arange(128_000) * 0.05)).astype(np.float32)


@pytest.fixture(scope="module")
def detector(run: Run, deployment: Deployment) -> Iterator[Detector]:
    detector = plugin.realtime_detector(deployment)
    run(detector.start())
    yield detector
    run(detector.close())


@pytest.fixture(scope="module")
def scorer(run: Run, deployment: Deployment) -> Iterator[TurnScorer]:
    scorer = plugin.realtime_turn_scorer(deployment)
    run(scorer.start())
    yield scorer
    run(scorer.close())


@pytest.fixture(scope="module")
def say(run: Run) -> Iterator[Say]:
    """Speaks a text with Piper, at 16 kHz."""
    speaker = PiperSpeaker(PiperSettings())
    run(speaker.start())

    async def spoken(text: str) -> list[Samples]:
        return [samples async for samples in speaker.speak(text)]

    yield lambda text: soxr.resample(np.concatenate(run(spoken(text))), speaker.rate, 16_000)
    run(speaker.close())


@pytest.fixture
def listen(deployment: Deployment, detector: Detector, scorer: TurnScorer) -> Callable[..., MemoryClient]:
    """A session with semantic VAD on the real detector and scorer."""

    def listen(eagerness: str = "auto") -> MemoryClient:
        state = [detector.initial_state()]

        def probability(frame: Samples) -> float:
            nonlocal state
            probabilities, state = detector.score(frame[None], state)
            return probabilities[0]

        settings = SessionSettings(
            model="local",
            capabilities=plugin.realtime_capabilities(deployment),
            defaults={"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": eagerness}}}},
            detector_rate=detector.rate,
            detector_frame=detector.frame_samples,
            scorer_rate=scorer.rate,
            scorer_window=scorer.window_samples,
        )
        return MemoryClient(settings, text_reply("Yes?"), probability=probability, completeness=scorer.score)

    return listen


def ends_ms(client: MemoryClient, samples: Samples, silence: float) -> list[int]:
    """Say something and then nothing; return where turns ended, in ms after the speech."""
    pcm = (soxr.resample(np.concatenate([samples, np.zeros(int(silence * 16_000))]), 16_000, 24_000) * 32767).astype("<i2").tobytes()
    for start in range(0, len(pcm), 4800):
        client.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm[start : start + 4800]).decode()})
    stopped = [event["audio_end_ms"] for event in client.events if event["type"] == "input_audio_buffer.speech_stopped"]
    return [end - len(samples) // 16 for end in stopped]


@pytest.mark.slow
@pytest.mark.parametrize("silent", [0, 60_000, 127_000])
def test_the_features_are_whispers_own(recording: Callable[[str], Samples], silent: int) -> None:
    from faster_whisper.feature_extractor import FeatureExtractor

    speech = recording("capital")[: 128_000 - silent]
    turn = np.zeros(128_000, np.float32)
    turn[-len(speech) :] = speech
    normal = (turn - turn.mean()) / np.sqrt(turn.var() + 1e-7)
    features = log_mel(turn)
    assert features.shape == (80, 800)
    assert features.dtype == np.float32
    assert np.allclose(features, FeatureExtractor()(normal, padding=0), atol=1e-5)


@pytest.mark.parametrize("samples", [np.zeros(128_000, np.float32), HUM, 0.01 * HUM])
def test_the_features_of_silence_and_of_any_loudness_are_finite_and_alike(samples: Samples) -> None:
    features = log_mel(samples.astype(np.float32))
    assert np.isfinite(features).all()
    if samples.any():
        assert np.allclose(features[:10], log_mel(HUM)[:10], atol=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["capital", "week", "sky", "interrupt"])
def test_a_complete_question_ends_soon(listen: Callable[..., MemoryClient], recording: Callable[[str], Samples], name: str) -> None:
    client = listen("low")
    (end,) = ends_ms(client, recording(name), 1.0)
    assert end < 600
    assert "response.done" in [event["type"] for event in client.events]


@pytest.mark.slow
def test_a_thought_that_is_not_finished_waits(listen: Callable[..., MemoryClient], say: Say) -> None:
    thinking = say("Well, I was thinking that maybe,")
    assert ends_ms(listen(), thinking, 3.0) == []
    (end,) = ends_ms(listen(), thinking, 5.0)
    assert end == pytest.approx(4000, abs=400)
    (end,) = ends_ms(listen("high"), thinking, 3.0)
    assert end < 2400


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 16_000, 128_000])
def test_any_length_is_scored_and_silence_is_nothing_special(scorer: TurnScorer, samples: int) -> None:
    for turn in (np.zeros(samples, np.float32), HUM[:samples]):
        assert 0 <= scorer.score(turn) <= 1


def test_the_local_detector_lends_its_turn_scorer() -> None:
    adapter = resolve(Deployment(name="m", plugin="local", detector="local"), load_plugin("local"))
    assert adapter.capabilities.turn_detection == ("server_vad", "semantic_vad")
    assert isinstance(adapter.turn_scorer, SmartTurnScorer)
