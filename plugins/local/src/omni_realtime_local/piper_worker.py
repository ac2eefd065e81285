"""The speech worker: ``python -m omni_realtime_local.piper_worker VOICE.onnx VOICE.onnx.json THREADS``.

Piper is licensed GPL-3.0-or-later. It is imported here and nowhere else, in a process of its own that takes sentences on its standard
input and gives PCM on its standard output (:mod:`omni_realtime_local.frames`). It ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from omni_realtime_local import runtime
from omni_realtime_local.frames import HEADER, Frame, Kind

Speak = Callable[[str], Iterator[bytes]]


def load_voice(model: Path, config: Path, threads: int) -> tuple[Speak, int]:
    """Load and warm a voice.

    Returns:
        A function from a sentence to chunks of 16-bit PCM, and their rate in Hz.
    """
    piper, onnxruntime = runtime.load("piper"), runtime.load("onnxruntime")
    piper_config = runtime.load("piper.config")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    voice = piper.PiperVoice(session=session, config=piper_config.PiperConfig.from_dict(json.loads(config.read_text("utf-8"))))

    def speak(text: str) -> Iterator[bytes]:
        for chunk in voice.synthesize(text):
            yield chunk.audio_int16_bytes

    for _ in speak("Ready."):
        pass
    return speak, int(voice.config.sample_rate)


def serve(requests: BinaryIO, answers: BinaryIO, speak: Speak, rate: int) -> None:
    """Answer requests, in their order, until the input ends."""
    _send(answers, Frame(Kind.READY, 0, str(rate).encode()))
    while request := _read(requests):
        try:
            for pcm in speak(request.payload.decode()):
                _send(answers, Frame(Kind.AUDIO, request.number, pcm))
            _send(answers, Frame(Kind.DONE, request.number))
        except (ValueError, RuntimeError) as error:
            _send(answers, Frame(Kind.FAILED, request.number, type(error).__name__.encode()))


def _read(pipe: BinaryIO) -> Frame | None:
    header = pipe.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, number, length = HEADER.unpack(header)
    return Frame(Kind(kind), number, pipe.read(length))


def _send(pipe: BinaryIO, frame: Frame) -> None:
    pipe.write(frame.encode())
    pipe.flush()


def main() -> None:
    """Serve on the standard streams; what libraries print goes to the standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    model, config, threads = sys.argv[1:]
    speak, rate = load_voice(Path(model), Path(config), int(threads))
    try:
        serve(sys.stdin.buffer, answers, speak, rate)
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
