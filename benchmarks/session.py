"""What the session adds to an audio chunk, in ratios to the work that no server can do without; best of interleaved rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from omni_realtime.audio import FORMATS, AudioFormat, Resampler
from omni_realtime.chat import ChatDelta, Samples
from omni_realtime.protocol import Capabilities, InputAudioBufferAppend, ResponseCreate, SessionUpdate
from omni_realtime.session import Generate, Score, Session, SessionSettings

FRAMES_PER_SECOND = 50
SECONDS = 4
ROUNDS = 15
SETTINGS = SessionSettings(
    model="scripted",
    capabilities=Capabilities(output_modalities=("audio", "text"), audio_input=True, turn_detection=("server_vad",)),
    input_rate=16000,
    detector_rate=16000,
    detector_frame=512,
)


def session(**audio: object) -> Session:
    made = Session(SETTINGS, token="0123456789ab", now=0.0, epoch_now=0)  # noqa: S106 - makes ids, no secret
    made.receive(SessionUpdate(session={"type": "realtime", "audio": audio}), 0.0)
    return made


def frames(rate: int) -> list[Samples]:
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, SECONDS * rate).astype(np.float32)
    return np.split(noise, range(rate // FRAMES_PER_SECOND, len(noise), rate // FRAMES_PER_SECOND))


def appends(audio_format: AudioFormat) -> list[bytes]:
    return [audio_format.encode(frame) for frame in frames(audio_format.rate)]


def append_floor(audio_format: AudioFormat) -> Callable[[], None]:
    """Decode each chunk and resample it to the model's rate."""
    chunks = appends(audio_format)

    def run() -> None:
        resampler = Resampler(audio_format.rate, SETTINGS.input_rate)
        for chunk in chunks:
            resampler.process(audio_format.decode(chunk))

    return run


def append(audio_format: AudioFormat, *, detecting: bool) -> Callable[[], None]:
    """Append each chunk; if detecting, answer each frame with silence."""
    events = [InputAudioBufferAppend(audio=chunk) for chunk in appends(audio_format)]
    turn_detection = {"type": "server_vad"} if detecting else None

    def run() -> None:
        made = session(input={"format": {"type": audio_format.name}, "turn_detection": turn_detection})
        for event in events:
            for effect in made.receive(event, 0.0):
                if isinstance(effect, Score):
                    made.speech_scored(effect.epoch, [0.01] * (len(effect.frames) // 512), 0.0)

    return run


def delta_floor(audio_format: AudioFormat, rate: int) -> Callable[[], None]:
    """Resample each chunk to the format's rate and encode it."""
    chunks = frames(rate)

    def run() -> None:
        resampler = Resampler(rate, audio_format.rate)
        for chunk in chunks:
            audio_format.encode(resampler.process(chunk))

    return run


def delta(audio_format: AudioFormat, rate: int, *, spoken: bool = False) -> Callable[[], None]:
    """Stream each chunk as a response's delta."""
    text = "word " if spoken else ""
    deltas = [ChatDelta(audio=chunk, rate=rate, text=text, spoken=text) for chunk in frames(rate)]

    def run() -> None:
        made = session(output={"format": {"type": audio_format.name}})
        (response_id,) = [effect.response_id for effect in made.receive(ResponseCreate(), 0.0) if isinstance(effect, Generate)]
        for each in deltas:
            made.delta(response_id, each, 0.0)

    return run


def fastest(cases: Mapping[str, Callable[[], None]]) -> dict[str, float]:
    """Seconds of the fastest run of each case; interleaved, so that a busy moment hits all alike."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, run in cases.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def show(title: str, cases: Mapping[str, Callable[[], None]]) -> None:
    """Print each case against the first."""
    seconds = fastest(cases)
    floor = next(iter(seconds.values()))
    print(f"\n{title}")
    for name, value in seconds.items():
        print(f"  {name:44} {value / floor:6.2f} x floor {value / SECONDS / FRAMES_PER_SECOND * 1e6:8.1f} us a chunk of 20 ms")


def main() -> None:
    for name in ("audio/pcm", "audio/pcmu"):
        audio_format = FORMATS[name]
        show(
            f"input_audio_buffer.append of {name}",
            {
                "floor: decode, resample": append_floor(audio_format),
                "session, manual turns": append(audio_format, detecting=False),
                "session, server_vad": append(audio_format, detecting=True),
            },
        )
    for name, rate in (("audio/pcm", 24000), ("audio/pcm", 22050), ("audio/pcmu", 24000)):
        audio_format = FORMATS[name]
        show(
            f"response.output_audio.delta of {name} from {rate} Hz",
            {
                "floor: resample, encode": delta_floor(audio_format, rate),
                "session, audio": delta(audio_format, rate),
                "session, audio with its transcript": delta(audio_format, rate, spoken=True),
            },
        )


if __name__ == "__main__":
    main()
