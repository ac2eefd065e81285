from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.chat import ChatDelta, Samples
from omni_realtime.engine.port import EngineDeadError, EngineError
from omni_realtime_local import piper_worker, tts
from omni_realtime_local.frames import HEADER, Frame, Kind
from omni_realtime_local.settings import PiperSettings
from omni_realtime_local.speech import write_and_speak
from omni_realtime_local.tts import PiperSpeaker
from omni_realtime_local.worker import Worker, WorkerDiedError

FAKE = """
    import os, sys, time
    from omni_realtime_local.piper_worker import serve

    def speak(text):
        if text == "die":
            os._exit(3)
        if text == "fail":
            raise ValueError(text)
        for i in range(3):
            yield bytes([i, 0]) * 4
            time.sleep(0.05 if text == "slow" else 0)

    serve(sys.stdin.buffer, sys.stdout.buffer, speak, 22050)
"""


def within(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 30))


async def fake_worker() -> Worker:
    return await Worker.start(sys.executable, "-c", textwrap.dedent(FAKE))


async def speaker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str = FAKE) -> PiperSpeaker:
    async def spawn(self: PiperSpeaker, model: Path) -> Worker:
        return await Worker.start(sys.executable, "-c", textwrap.dedent(code))

    monkeypatch.setattr(PiperSpeaker, "_spawn", spawn)
    speaker = PiperSpeaker(PiperSettings(model_file=tmp_path / "v.onnx"))
    await speaker.start()
    return speaker


async def spoken(speaker: PiperSpeaker, text: str) -> list[Samples]:
    return [samples async for samples in speaker.speak(text)]


def frames(data: bytes) -> Iterator[Frame]:
    while data:
        kind, number, length = HEADER.unpack(data[: HEADER.size])
        yield Frame(Kind(kind), number, data[HEADER.size : HEADER.size + length])
        data = data[HEADER.size + length :]


@given(st.sampled_from(Kind), st.integers(0, 2**32 - 1), st.binary(max_size=99))
def test_a_frame_survives_the_pipe(kind: Kind, number: int, payload: bytes) -> None:
    frame = Frame(kind, number, payload)
    assert list(frames(frame.encode() * 2)) == [frame, frame]


def test_the_worker_answers_in_order_and_ends_with_its_input() -> None:
    def speak(text: str) -> Iterator[bytes]:
        if text == "bad":
            raise ValueError(text)
        yield text.encode()
        yield b"!"

    requests = io.BytesIO(b"".join(Frame(Kind.SPEAK, i, text).encode() for i, text in enumerate((b"a", b"bad", b"b"), 1)))
    answers = io.BytesIO()
    piper_worker.serve(requests, answers, speak, 22_050)
    assert list(frames(answers.getvalue())) == [
        Frame(Kind.READY, 0, b"22050"),
        Frame(Kind.AUDIO, 1, b"a"),
        Frame(Kind.AUDIO, 1, b"!"),
        Frame(Kind.DONE, 1),
        Frame(Kind.FAILED, 2, b"ValueError"),
        Frame(Kind.AUDIO, 3, b"b"),
        Frame(Kind.AUDIO, 3, b"!"),
        Frame(Kind.DONE, 3),
    ]


def test_a_sentence_goes_in_and_pcm_comes_out() -> None:
    async def go() -> None:
        worker = await fake_worker()
        assert worker.rate == 22_050
        assert [pcm async for pcm in worker.speak("hello")] == [bytes([i, 0]) * 4 for i in range(3)]
        await worker.close()
        assert not worker.alive

    within(go())


def test_a_sentence_closed_early_does_not_leak_into_the_next() -> None:
    async def go() -> None:
        worker = await fake_worker()
        early = worker.speak("slow")
        await anext(early)
        await early.aclose()
        assert len([pcm async for pcm in worker.speak("hello")]) == 3
        await worker.close()

    within(go())


def test_a_worker_that_does_not_start_is_reported() -> None:
    with pytest.raises(WorkerDiedError):
        within(Worker.start(sys.executable, "-c", "raise SystemExit(1)"))


def test_the_worker_ends_when_its_parent_dies(tmp_path: Path) -> None:
    child = (
        "import asyncio, os, sys\n"
        "from omni_realtime_local.worker import Worker\n"
        "async def go():\n"
        f"    worker = await Worker.start(sys.executable, '-c', {textwrap.dedent(FAKE)!r})\n"
        "    print(worker._process.pid, flush=True)\n"
        "    os._exit(1)\n"
        "asyncio.run(go())\n"
    )

    parent = subprocess.run([sys.executable, "-c", child], capture_output=True, timeout=30)
    command = Path(f"/proc/{int(parent.stdout)}/cmdline")
    deadline = time.monotonic() + 10
    while command.exists() and command.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not command.exists() or not command.read_bytes()


def test_a_dead_worker_fails_the_sentence_and_the_next_gets_a_new_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def go() -> None:
        voice = await speaker(monkeypatch, tmp_path)
        with pytest.raises(EngineError, match="died"):
            await spoken(voice, "die")
        voice.check_health()
        assert len(await spoken(voice, "hello")) == 3
        await voice.close()

    within(go())


def test_workers_that_die_again_and_again_end_the_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def go() -> None:
        voice = await speaker(monkeypatch, tmp_path)
        for _ in range(tts.DEATHS):
            with pytest.raises(EngineError, match="died"):
                await spoken(voice, "die")
        with pytest.raises(EngineDeadError):
            voice.check_health()
        with pytest.raises(EngineDeadError):
            await spoken(voice, "hello")
        await voice.close()

    within(go())


def test_a_sentence_that_cannot_be_spoken_leaves_the_worker_alive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def go() -> None:
        voice = await speaker(monkeypatch, tmp_path)
        with pytest.raises(EngineError, match="ValueError"):
            await spoken(voice, "fail")
        samples = await spoken(voice, "hello")
        assert samples[1].dtype == np.float32
        assert samples[1].tolist() == [1 / 32768] * 4
        await voice.close()

    within(go())


class Voice:
    """Speaks a sample a letter; nothing for what has no letters."""

    rate = 10

    def __init__(self, wait: Callable[[], Coroutine[Any, Any, Any]] | None = None) -> None:
        self._wait = wait

    async def speak(self, text: str) -> AsyncGenerator[Samples, None]:
        if text == "Fail.":
            raise EngineError("no voice")
        if self._wait is not None:
            await self._wait()
        for letter in filter(str.isalpha, text):
            yield np.full(1, ord(letter), np.float32)


async def written(*texts: str) -> AsyncGenerator[ChatDelta, None]:
    for text in texts:
        yield ChatDelta(text=text)
    yield ChatDelta(finish_reason="stop")


def test_each_sentence_is_named_on_its_first_audio() -> None:
    deltas: list[ChatDelta] = []
    last = within(write_and_speak(written("Ab. ", "Cd"), Voice(), deltas.append))  # type: ignore[arg-type]
    assert last.finish_reason == "stop"
    assert [delta.spoken for delta in deltas if delta.audio is not None] == ["Ab.", "", "Cd", ""]
    assert {delta.rate for delta in deltas if delta.audio is not None} == {10}


def test_a_sentence_without_sound_is_named_with_the_next() -> None:
    deltas: list[ChatDelta] = []
    within(write_and_speak(written("1 2! ", "Cd. ", "3"), Voice(), deltas.append))  # type: ignore[arg-type]
    assert [delta.spoken for delta in deltas if delta.audio is not None] == ["1 2! Cd.", ""]


def test_speech_starts_before_the_text_ends() -> None:
    async def go() -> None:
        heard = asyncio.Event()

        async def waiting() -> AsyncGenerator[ChatDelta, None]:
            yield ChatDelta(text="Ab. C")
            await heard.wait()
            yield ChatDelta(finish_reason="stop")

        def emit(delta: ChatDelta) -> None:
            if delta.audio is not None:
                heard.set()

        await write_and_speak(waiting(), Voice(), emit)  # type: ignore[arg-type]

    within(go())


def test_a_voice_that_fails_stops_the_writing() -> None:
    async def endless() -> AsyncGenerator[ChatDelta, None]:
        while True:
            yield ChatDelta(text="Fail. ")
            await asyncio.sleep(0)

    with pytest.raises(EngineError, match="no voice"):
        within(write_and_speak(endless(), Voice(), lambda _: None))  # type: ignore[arg-type]


def test_a_writing_that_fails_stops_the_voice() -> None:
    async def failing() -> AsyncGenerator[ChatDelta, None]:
        yield ChatDelta(text="Ab. C")
        raise EngineError("no words")

    with pytest.raises(EngineError, match="no words"):
        within(write_and_speak(failing(), Voice(asyncio.Event().wait), lambda _: None))  # type: ignore[arg-type]


WHILE_MULTIPLYING = """
import asyncio, sys, threading
import numpy as np, uvloop
from omni_realtime_local.worker import Worker, WorkerDiedError

done = threading.Event()

def multiply():
    square = np.ones((400, 400), np.float32)
    while not done.is_set():
        square @ square

async def main():
    thread = threading.Thread(target=multiply, daemon=True)
    thread.start()
    for _ in range(40):
        try:
            await Worker.start("true")
        except WorkerDiedError:
            pass
    done.set()
    thread.join(10)
    sys.exit(thread.is_alive())

uvloop.run(main())
"""


def test_a_worker_that_starts_amid_a_matrix_product_of_another_thread_does_not_stop_it():
    assert subprocess.run([sys.executable, "-c", WHILE_MULTIPLYING], timeout=120).returncode == 0
