"""The audio path in ratios, which carry over between machines where times do not; best of several interleaved rounds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from omni_realtime.audio import ALAW, MULAW, PCM16, AudioFormat, Resampler, resample
from omni_realtime.chat import Samples

FRAMES_PER_SECOND = 50
ROUNDS = 15
IMPORTS = {"nothing": "pass", "numpy and soxr": "import numpy, soxr", "omni_realtime.audio": "import omni_realtime.audio"}


def noise(rate: int) -> Samples:
    return np.random.default_rng(0).uniform(-0.5, 0.5, rate).astype(np.float32)


def frames(samples: Samples, rate: int) -> list[Samples]:
    return np.split(samples, range(rate // FRAMES_PER_SECOND, len(samples), rate // FRAMES_PER_SECOND))


def streamed(rate_in: int, rate_out: int) -> Callable[[], None]:
    resampler = Resampler(rate_in, rate_out)
    chunks = frames(noise(rate_in), rate_in)

    def run() -> None:
        for chunk in chunks:
            resampler.process(chunk)
        resampler.flush()

    return run


def appended(audio_format: AudioFormat, rate: int) -> Callable[[], None]:
    """One second of 20 ms appends: decoded, and resampled to the model's rate."""
    resampler = Resampler(audio_format.rate, rate)
    appends = [audio_format.encode(frame) for frame in frames(noise(audio_format.rate), audio_format.rate)]

    def run() -> None:
        for append in appends:
            resampler.process(audio_format.decode(append))

    return run


def sent(audio_format: AudioFormat, rate: int) -> Callable[[], None]:
    """One second of the model's audio in 20 ms deltas: resampled to the format's rate, and encoded."""
    resampler = Resampler(rate, audio_format.rate)
    deltas = frames(noise(rate), rate)

    def run() -> None:
        for delta in deltas:
            audio_format.encode(resampler.process(delta))

    return run


def once_for_each(frame_list: list[Samples], call: Callable[[Samples], object]) -> Callable[[], None]:
    def run() -> None:
        for frame in frame_list:
            call(frame)

    return run


def fastest(cases: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds of the fastest run of each case; interleaved, so that a busy moment hits all alike."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, run in cases.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def show(title: str, seconds: dict[str, float], floor: str) -> None:
    print(f"\n{title}")
    for name, value in seconds.items():
        print(f"  {name:40} {value / seconds[floor]:8.2f} x {floor}")


def show_real_time(cases: Mapping[str, Callable[[], object]]) -> None:
    print("\n1 s of audio in frames of 20 ms, relative to real time")
    for name, value in fastest(cases).items():
        print(f"  {name:40} {1 / value:8.0f} x faster ({value / FRAMES_PER_SECOND * 1e6:.1f} us a frame)")


def run_python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    for rate_in, rate_out in ((24000, 16000), (8000, 16000), (22050, 24000), (16000, 8000)):
        cases: dict[str, Callable[[], object]] = {
            "one shot": partial(resample, noise(rate_in), rate_in, rate_out),
            "streamed in 20 ms": streamed(rate_in, rate_out),
        }
        show(f"resampling {rate_in} to {rate_out} Hz, 1 s", fastest(cases), "one shot")

    frame_list = frames(noise(24000), 24000)
    names = {"PCM16": PCM16, "mu-law": MULAW, "A-law": ALAW}
    encoded = [frame.astype("<i2").tobytes() for frame in frame_list]
    show("encoding frames of 480 samples", fastest({name: once_for_each(frame_list, form.encode) for name, form in names.items()}), "PCM16")
    decoders = {
        name: partial(lambda form: [form.decode(data[: 480 * form.bytes_per_sample]) for data in encoded], form)
        for name, form in names.items()
    }
    show("decoding frames of 480 samples", fastest(decoders), "PCM16")

    show_real_time({
        "in, audio/pcm to 16 kHz": appended(PCM16, 16000),
        "in, audio/pcmu to 16 kHz": appended(MULAW, 16000),
        "in, audio/pcma to 16 kHz": appended(ALAW, 16000),
        "out, 24 kHz to audio/pcm": sent(PCM16, 24000),
        "out, 22.05 kHz to audio/pcm": sent(PCM16, 22050),
        "out, 24 kHz to audio/pcmu": sent(MULAW, 24000),
    })

    imports = fastest({name: partial(run_python, code) for name, code in IMPORTS.items()}, rounds=5)
    show("starting Python and importing", imports, "numpy and soxr")


if __name__ == "__main__":
    main()
