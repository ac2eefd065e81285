"""One worker thread scores the pauses of all sessions; a slow or broken scorer stalls nobody."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from omni_realtime.testing import ScriptedDetector, ScriptedTurnScorer, text_reply, tone
from omni_realtime_host import turn_scoring
from omni_realtime_host.turn_scoring import TurnScoringService

SEMANTIC = {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "high"}}}}
SERVER = {"type": "realtime", "audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}}}}
SPEECH = np.concatenate([tone(0.7), np.zeros(12000)]).astype(np.float32)
STOPPED = "input_audio_buffer.speech_stopped"


class Gate:
    """Holds the scorer up until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.scored: list[int] = []

    def __call__(self, samples: np.ndarray) -> float:
        self.opened.wait(10)
        self.scored.append(len(samples))
        return 1.0


def turn(length: int) -> np.ndarray:
    return np.zeros(length, np.float32)


def test_pauses_are_scored_in_their_order(run, eventually):
    async def test():
        service = TurnScoringService(ScriptedTurnScorer(lambda samples: len(samples) / 10))
        answers: list[tuple[int, float]] = []
        for length in (1, 2, 3):
            service.open("s", lambda *answer: answers.append(answer)).score(length, turn(length))
        await eventually(lambda: len(answers) == 3)
        assert answers == [(1, 0.1), (2, 0.2), (3, 0.3)]
        await service.close()

    run(test())


def test_an_older_pause_of_a_session_and_a_closed_session_cost_nothing(run, eventually):
    gate = Gate()

    async def test():
        service = TurnScoringService(ScriptedTurnScorer(gate))
        answers: list[tuple[int, float]] = []
        streams = [service.open("s", lambda *answer: answers.append(answer)) for _ in range(3)]
        streams[0].score(1, turn(1))
        await asyncio.sleep(0.05)
        for pause in range(2, 20):
            streams[1].score(pause, turn(pause))
        streams[2].score(20, turn(20))
        await asyncio.sleep(0)
        streams[0].close()
        streams[2].close()
        await asyncio.sleep(0.01)
        gate.opened.set()
        await eventually(lambda: answers)
        await service.close()
        assert answers == [(19, 1.0)]
        assert gate.scored == [1, 19], "the first was under way"

    run(test())


@pytest.mark.parametrize("fault", [ValueError("a secret"), RuntimeError("a secret")])
def test_a_scorer_that_fails_is_logged_once_and_answers_0(run, eventually, caplog, fault):
    def broken(_samples):
        raise fault

    async def test():
        service = TurnScoringService(ScriptedTurnScorer(broken))
        answers: list[tuple[int, float]] = []
        stream = service.open("sess_1", lambda *answer: answers.append(answer))
        for pause in (1, 2):
            stream.score(pause, turn(9))
            await eventually(lambda pause=pause: len(answers) == pause)
        assert answers == [(1, 0.0), (2, 0.0)]
        await service.close()

    run(test())
    (record,) = caplog.records
    assert "sess_1: the turn scorer failed" in record.message
    assert "secret" not in caplog.text


def test_a_scorer_that_is_late_answers_0(run, eventually, monkeypatch):
    monkeypatch.setattr(turn_scoring, "ANSWER_S", 0.05)
    gate = Gate()

    async def test():
        service = TurnScoringService(ScriptedTurnScorer(gate))
        answers: list[tuple[int, float]] = []
        service.open("s", lambda *answer: answers.append(answer)).score(1, turn(1))
        service.open("s", lambda *answer: answers.append(answer)).score(2, turn(2))
        await eventually(lambda: len(answers) == 2)
        assert answers == [(1, 0.0), (2, 0.0)]
        gate.opened.set()
        await service.close()
        assert gate.scored == [1], "what nobody waits for is not scored"

    run(test())


def test_a_semantic_turn(serve, run):
    async def test():
        scorer = ScriptedTurnScorer()
        async with serve(text_reply("Yes?"), detector=ScriptedDetector(), turn_scorer=scorer, session=SEMANTIC) as running:
            assert scorer.started
            async with running.connect() as client:
                await client.append(SPEECH)
                assert (await client.until(STOPPED))["audio_end_ms"] == pytest.approx(1000, abs=48)
                assert (await client.until("response.done"))["response"]["status"] == "completed"
                assert scorer.lengths[0] == pytest.approx(0.9 * 16000, abs=0.05 * 16000)
        assert scorer.stopped

    run(test())


def test_a_slow_scorer_stalls_no_other_session(serve, run):
    gate = Gate()

    async def test():
        parts = {"detector": ScriptedDetector(), "turn_scorer": ScriptedTurnScorer(gate)}
        async with serve(text_reply("Yes?"), session=SEMANTIC, **parts) as running, running.connect() as slow, running.connect() as quick:
            await slow.append(SPEECH)
            await slow.until("input_audio_buffer.speech_started")
            await quick.send("session.update", session=SERVER)
            for _ in range(3):
                await quick.append(SPEECH)
                await quick.until("response.done")
            assert not gate.scored
            assert STOPPED not in slow.log.types()
            gate.opened.set()
            await slow.until(STOPPED)

    run(test())


def test_a_client_that_leaves_while_its_turn_is_scored_leaves_nothing_behind(serve, run):
    gate = Gate()

    async def test():
        parts = {"detector": ScriptedDetector(), "turn_scorer": ScriptedTurnScorer(gate)}
        async with serve(text_reply("Yes?"), session=SEMANTIC, **parts) as running:
            async with running.connect() as client:
                await client.append(SPEECH)
                await client.until("input_audio_buffer.speech_started")
                await asyncio.sleep(0.1)
            gate.opened.set()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("turn-scorer")]

    run(test())


def test_turns_end_with_a_scorer_that_fails(serve, run):
    def broken(_samples):
        raise ValueError

    async def test():
        parts = {"detector": ScriptedDetector(), "turn_scorer": ScriptedTurnScorer(broken)}
        async with serve(text_reply("Yes?"), session=SEMANTIC, **parts) as running, running.connect() as client:
            await client.append(np.concatenate([SPEECH, np.zeros(48000, np.float32)]))
            assert (await client.until(STOPPED))["audio_end_ms"] == pytest.approx(2700, abs=48)
            await client.until("response.done")
            assert running.host.not_ready() == {}

    run(test())
