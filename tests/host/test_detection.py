"""One worker thread scores all sessions' frames, one frame of each a round."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from omni_realtime.testing import ScriptedDetector
from omni_realtime_host.detection import ROUNDS, DetectionService


class Listener:
    def __init__(self) -> None:
        self.answers: list[tuple[int, list[float]]] = []
        self.failures = 0

    def answer(self, epoch, probabilities) -> None:
        self.answers.append((epoch, [round(each, 3) for each in probabilities]))

    def fail(self) -> None:
        self.failures += 1

    def of(self, epoch: int) -> list[float]:
        return [each for number, probabilities in self.answers if number == epoch for each in probabilities]


def frames(*values: float, size: int = 512) -> np.ndarray:
    return np.repeat(np.array(values, np.float32), size)


def first_sample(frame: np.ndarray) -> float:
    return float(frame[0])


def test_every_frame_is_answered_in_order(run, eventually):
    async def test():
        service = DetectionService(ScriptedDetector(first_sample))
        service.start()
        listener = Listener()
        stream = service.open(listener.answer, listener.fail)
        values = [round(i / 100, 3) for i in range(50)]
        stream.score(1, frames(*values[:1]))
        stream.score(1, frames(*values[1:]))
        await eventually(lambda: len(listener.of(1)) == 50)
        assert listener.of(1) == values
        await service.close()

    run(test())


def test_streams_share_a_call_and_a_long_one_does_not_hold_up_the_others(run, eventually):
    async def test():
        detector = ScriptedDetector(first_sample)
        service = DetectionService(detector)
        listener = Listener()
        service.open(listener.answer, listener.fail).score(1, frames(*[0.5] * (20 * ROUNDS)))
        for _ in range(8):
            service.open(listener.answer, listener.fail).score(2, frames(0.25))
        service.start()
        await eventually(lambda: len(listener.of(1)) == 20 * ROUNDS)
        assert listener.of(2) == [0.25] * 8
        assert [epoch for epoch, _ in listener.answers[:9]].count(2) == 8
        assert detector.batches[0] == 9
        await service.close()

    run(test())


def test_a_new_epoch_begins_from_the_initial_state_and_drops_the_old_frames(run, eventually):
    states = []

    class Recording(ScriptedDetector):
        def score(self, frames, states_in):
            states.append(states_in[0])
            return super().score(frames, states_in)

    async def test():
        service = DetectionService(Recording(first_sample))
        listener = Listener()
        stream = service.open(listener.answer, listener.fail)
        stream.score(1, frames(0.1, 0.1))
        stream.score(2, frames(0.2, 0.3))
        service.start()
        await eventually(lambda: len(listener.of(2)) == 2)
        assert listener.answers == [(2, [0.2, 0.3])]
        assert states == [0, 1]
        await service.close()

    run(test())


def test_an_epoch_that_begins_while_the_thread_scores_is_not_answered_with_the_old_ones_frames(run, eventually):
    gate = threading.Event()

    def gated(frame: np.ndarray) -> float:
        gate.wait(5)
        return float(frame[0])

    async def test():
        service = DetectionService(ScriptedDetector(gated))
        service.start()
        listener = Listener()
        stream = service.open(listener.answer, listener.fail)
        stream.score(1, frames(0.1))
        await asyncio.sleep(0.05)
        stream.score(2, frames(0.2))
        gate.set()
        await eventually(lambda: listener.answers)
        assert listener.answers == [(2, [0.2])]
        await service.close()

    run(test())


def test_the_event_loop_goes_on_while_the_thread_scores(run, eventually):
    gate = threading.Event()

    async def test():
        service = DetectionService(ScriptedDetector(lambda _frame: float(gate.wait(5))))
        service.start()
        listener = Listener()
        service.open(listener.answer, listener.fail).score(1, frames(0.0))
        for _ in range(10):
            await asyncio.sleep(0.005)
        assert not listener.answers
        gate.set()
        await eventually(lambda: listener.answers)
        await service.close()

    run(test())


@pytest.mark.parametrize("fault", [ValueError("a"), RuntimeError("b")])
def test_a_detector_that_breaks_ends_its_sessions_with_an_error(serve, run, fault):
    def broken(_frame):
        raise fault

    async def test():
        async with serve(detector=ScriptedDetector(broken)) as running, running.connect() as client:
            await client.append(frames(0.0, size=24000))
            await client.rest()
            assert client.log.events[-1]["error"]["type"] == "server_error"
            assert client.socket.close_code == 1011
            assert running.host.not_ready() == {"scripted": "the speech detector failed"}

    run(test())
