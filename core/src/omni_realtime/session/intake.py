"""User audio from append to commit: the buffer, and the turn detector that follows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from omni_realtime.audio import FORMATS, resample
from omni_realtime.chat import Samples
from omni_realtime.protocol import ProtocolError, SemanticVad, SessionConfig
from omni_realtime.session.effects import Score, ScoreTurn
from omni_realtime.session.ids import Ids
from omni_realtime.session.input_buffer import TICKS_PER_SECOND, InputBuffer, ms, ticks
from omni_realtime.session.semantic_turns import SCORED_MS, Pause, speech_rules
from omni_realtime.session.settings import SessionSettings
from omni_realtime.session.turn_detector import TurnDetector

UNSPOKEN_MS: Final = 10_000
"""How much audio without speech is kept while a detector listens: the longest prefix padding, and what a manual commit then finds."""
SHORTEST_COMMIT_MS: Final = 100


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """Speech began; ``start_ms`` includes the prefix padding."""

    item_id: str
    start_ms: int


@dataclass(frozen=True, slots=True, eq=False)
class SpeechStopped:
    """Speech ended; ``samples`` is the whole turn at the model's rate, silence window included."""

    item_id: str
    end_ms: int
    samples: Samples


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """What was taken at once; ``speaking`` if the detector was amid an announced speech."""

    item_id: str
    start_ms: int
    end_ms: int
    samples: Samples
    speaking: bool


TurnChange: TypeAlias = SpeechStarted | SpeechStopped | ScoreTurn
"""What the detector's answers, or a pause's score, make of the user's audio."""


@dataclass(frozen=True, slots=True)
class _Speech:
    item_id: str
    start: int


class Intake:
    """The input audio of one session."""

    def __init__(self, settings: SessionSettings, config: SessionConfig, ids: Ids) -> None:
        self._ids = ids
        self._limit = settings.limits.input_buffer_bytes
        self._buffer = InputBuffer(
            FORMATS[config.audio.input.format.type],
            model_rate=settings.input_rate,
            detector_rate=settings.detector_rate,
            detector_frame=settings.detector_frame,
        )
        self._frame = settings.detector_frame or 1
        self._detector_rate = settings.detector_rate or TICKS_PER_SECOND
        self._frame_ms = self._frame * 1000 / self._detector_rate
        self._model_rate = settings.input_rate
        self._scorer_rate = settings.scorer_rate or settings.input_rate
        self._scorer_window = settings.scorer_window or 0
        self._set_vad(config)
        self._epoch = 0
        self._pauses = 0
        self._speech: _Speech | None = None
        self._pause: Pause | None = None
        self._restart()

    @property
    def announced_id(self) -> str | None:
        """The id of the item that the speech which the detector hears will become."""
        return None if self._speech is None else self._speech.item_id

    def configure(self, config: SessionConfig) -> None:
        """Take a changed session: another format, a detector turned on, off or changed."""
        audio_format = FORMATS[config.audio.input.format.type]
        if audio_format is not self._buffer.format:
            self._buffer.set_format(audio_format)
        before = self._vad
        self._set_vad(config)
        if (before is None) != (self._vad is None):
            self._restart()

    def append(self, audio: bytes) -> Score | None:
        """Take audio, and say what is to be scored.

        Raises:
            ProtocolError: the buffer is full; it is as it was.
        """
        if self._buffer.retained_bytes + len(audio) > self._limit:
            raise ProtocolError(
                f"The input audio buffer holds at most {self._limit} bytes; commit or clear it first.",
                code="input_audio_buffer_full",
                param="audio",
            )
        frames = self._buffer.append(audio)
        return Score(self._epoch, frames) if self._vad is not None and len(frames) else None

    def scored(self, epoch: int, probabilities: Sequence[float]) -> Iterator[TurnChange]:
        """Follow the detector's answers, and yield the turns that they make."""
        if epoch == self._epoch and self._vad is not None:
            self._heard.extend(probabilities)
            yield from self._follow()

    def turn_scored(self, pause: int, probability: float) -> Iterator[TurnChange]:
        """Take whether the turn is complete, unless its pause is over, and go on with what was heard meanwhile."""
        if self._pause is not None and self._pause.number == pause:
            self._pause.probability = probability
            yield from self._judge_pause()
            yield from self._follow()

    def _follow(self) -> Iterator[TurnChange]:
        while self._heard and self._vad is not None and not self._waits_for_score:
            start = self._position(self._scored)
            self._scored += 1
            change = self._detector.feed(self._heard.popleft(), self._vad)
            if self._detector.silence_ms < SCORED_MS:
                self._pause = None
            if change == "started":
                start = max(start - ticks(self._vad.prefix_padding_ms), self._buffer.start)
                self._speech = _Speech(self._ids.new("item"), start)
                yield SpeechStarted(self._speech.item_id, ms(start))
            elif self._speech is None:
                self._buffer.drop(start - ticks(UNSPOKEN_MS))
            elif change == "stopped":
                yield self._stop(self._speech)
            else:
                yield from self._judge_pause()

    def _judge_pause(self) -> Iterator[TurnChange]:
        """Have a pause scored once it is long enough, and end the turn if the score says so."""
        silence_ms = self._detector.silence_ms
        if self._semantic_vad is None or self._speech is None or silence_ms < SCORED_MS:
            return
        if self._pause is None:
            self._pauses += 1
            self._pause = Pause(self._pauses)
            yield ScoreTurn(self._pauses, self._turn_so_far(self._speech))
        elif self._pause.ends_turn(silence_ms, self._semantic_vad):
            yield self._stop(self._speech)

    @property
    def _waits_for_score(self) -> bool:
        """Whether what was heard waits, so that the turns do not depend on how fast the scorer is and the audio comes."""
        return self._pause is not None and self._pause.undecided(self._detector.silence_ms)

    def _stop(self, speech: _Speech) -> SpeechStopped:
        """End the turn with the last frame."""
        self._detector.stop()
        self._speech = self._pause = None
        end = self._position(self._scored)
        return SpeechStopped(speech.item_id, ms(end), self._buffer.take(speech.start, end))

    def _turn_so_far(self, speech: _Speech) -> Samples:
        """The end of the turn as the scorer takes it."""
        end = self._position(self._scored)
        window = -(-self._scorer_window * TICKS_PER_SECOND // self._scorer_rate)
        samples = self._buffer.copy(max(speech.start, end - window), end)
        return resample(samples, self._model_rate, self._scorer_rate)[-self._scorer_window :]

    def commit(self) -> Committed:
        """Take everything, the half sample of an odd byte apart; the detector begins anew.

        Raises:
            ProtocolError: there is less than 100 ms; nothing was taken.
        """
        if self._buffer.retained_ms < SHORTEST_COMMIT_MS:
            raise ProtocolError(
                "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has "
                f"{self._buffer.retained_ms:.2f}ms of audio.",
                code="input_audio_buffer_commit_empty",
            )
        self._buffer.forget_half_sample()
        return self._take_all()

    def take_silence(self, milliseconds: int) -> Committed:
        """Take the last so many milliseconds, or as many as there are; the detector begins anew."""
        self._buffer.drop(self._buffer.received - ticks(milliseconds))
        return self._take_all()

    def _take_all(self) -> Committed:
        speech, start = self._speech, self._buffer.start
        samples = self._buffer.take_all()
        self._restart()
        item_id = speech.item_id if speech else self._ids.new("item")
        return Committed(item_id, ms(start), ms(self._buffer.received), samples, speech is not None)

    def clear(self) -> None:
        """Let everything go, an announced speech too."""
        self._buffer.clear()
        self._restart()

    def _set_vad(self, config: SessionConfig) -> None:
        turn_detection = config.audio.input.turn_detection
        self._semantic_vad = turn_detection if isinstance(turn_detection, SemanticVad) else None
        self._vad = speech_rules(turn_detection) if isinstance(turn_detection, SemanticVad) else turn_detection

    def _restart(self) -> None:
        self._epoch += 1
        self._origin = self._buffer.restart_frames()
        self._scored = 0
        self._heard: deque[float] = deque()
        self._detector = TurnDetector(self._frame_ms)
        self._speech = self._pause = None

    def _position(self, frame: int) -> int:
        """The position at which this frame of the epoch begins."""
        return self._origin + frame * self._frame * TICKS_PER_SECOND // self._detector_rate
