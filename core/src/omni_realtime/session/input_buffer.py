"""The input audio buffer: converts as audio arrives, so that a commit has nothing left to do."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from omni_realtime.audio import AudioFormat, Resampler, StreamDecoder
from omni_realtime.chat import Samples

TICKS_PER_SECOND: Final = 24000
"""The buffer's clock: both wire rates, 24 kHz and 8 kHz, divide it, so that it counts every sample exactly."""


def ms(ticks: int) -> int:
    """Whole milliseconds of a tick count."""
    return ticks * 1000 // TICKS_PER_SECOND


def ticks(milliseconds: int) -> int:
    """The tick count of some milliseconds."""
    return milliseconds * TICKS_PER_SECOND // 1000


class InputBuffer:
    """Audio of one session between append and commit, at the model's rate, and as frames for the detector.

    Positions are ticks since the start of all audio written in the session, as ``audio_start_ms`` counts.
    """

    def __init__(self, audio_format: AudioFormat, *, model_rate: int, detector_rate: int | None, detector_frame: int | None) -> None:
        self.format = audio_format
        self._model_rate = model_rate
        self._detector_rate = detector_rate
        self._frame = detector_frame or 0
        self._chunks: deque[Samples] = deque()
        self._samples = 0
        self._head = 0
        self.received = 0
        self.start = 0
        self._frames = np.empty(0, np.float32)
        self._open_streams()

    def _open_streams(self) -> None:
        """Begin new streams at ``received``."""
        self._decoder = StreamDecoder(self.format)
        self._to_model = Resampler(self.format.rate, self._model_rate)
        self._to_detector = Resampler(self.format.rate, self._detector_rate) if self._detector_rate else None

    @property
    def retained_bytes(self) -> int:
        """Bytes that the retained audio has in the input format."""
        return (self.received - self.start) * self.format.rate // TICKS_PER_SECOND * self.format.bytes_per_sample

    @property
    def retained_ms(self) -> float:
        """Milliseconds of retained audio."""
        return (self.received - self.start) * 1000 / TICKS_PER_SECOND

    def append(self, audio: bytes) -> Samples:
        """Take bytes of the input format and return the detector's frames that they complete, shape ``(n * frame,)``.

        The half sample of an odd byte is carried to the next append.
        """
        samples = self._decoder.decode(audio)
        self.received += len(samples) * TICKS_PER_SECOND // self.format.rate
        converted = self._to_model.process(samples)
        self._keep(converted)
        if self._to_detector is None:
            return self._frames
        waiting = np.concatenate((self._frames, converted if self._shares_stream else self._to_detector.process(samples)))
        whole = len(waiting) - len(waiting) % self._frame
        self._frames = waiting[whole:]
        return waiting[:whole]

    def set_format(self, audio_format: AudioFormat) -> None:
        """Take appends in another format from now on; what is retained stays, and the detector's stream goes on."""
        rest = self._to_model.flush()
        self._keep(rest)
        if self._to_detector is not None:
            self._frames = np.concatenate((self._frames, rest if self._shares_stream else self._to_detector.flush()))
        self.format = audio_format
        self._open_streams()

    def restart_frames(self) -> int:
        """Begin the detector's stream anew, and return the position of its first frame."""
        self._frames = np.empty(0, np.float32)
        if self._shares_stream:
            return (self._head + self._samples) * TICKS_PER_SECOND // self._model_rate
        if self._to_detector is not None:
            self._to_detector.flush()
        return self.received

    def take(self, start: int, end: int) -> Samples:
        """Return the audio between two positions, and drop everything before ``end``."""
        self.drop(start)
        taken = self._split(self._index(end) - self._head)
        self.start = end
        return taken

    def copy(self, start: int, end: int) -> Samples:
        """Return the audio between two positions, and keep it."""
        first, last = self._index(start), self._index(end)
        begin = self._head + self._samples
        copied: deque[Samples] = deque()
        for chunk in reversed(self._chunks):
            if begin <= first:
                break
            begin -= len(chunk)
            copied.appendleft(chunk[max(first - begin, 0) : max(last - begin, 0)])
        return np.concatenate(copied) if copied else np.empty(0, np.float32)

    def take_all(self) -> Samples:
        """Return everything, the resampler's tail included."""
        self._keep(self._to_model.flush())
        taken = self._split(self._samples)
        self._begin_at_received()
        return taken

    def forget_half_sample(self) -> None:
        """What comes next begins with a whole sample."""
        self._decoder.reset()

    def drop(self, before: int) -> None:
        """Let the audio before this position go."""
        if before > self.start:
            self._split(self._index(before) - self._head)
            self.start = before

    def clear(self) -> None:
        """Let everything go."""
        self._chunks.clear()
        self._samples = 0
        self._begin_at_received()
        self._open_streams()

    @property
    def _shares_stream(self) -> bool:
        """Whether the detector listens to what the model gets."""
        return self._detector_rate == self._model_rate

    def _begin_at_received(self) -> None:
        self.start = self.received
        self._head = self._index(self.received)

    def _index(self, position: int) -> int:
        """The model's sample at a position."""
        return position * self._model_rate // TICKS_PER_SECOND

    def _keep(self, samples: Samples) -> None:
        if len(samples):
            self._chunks.append(samples)
            self._samples += len(samples)

    def _split(self, count: int) -> Samples:
        """Take up to ``count`` samples off the front."""
        taken: list[Samples] = []
        while self._chunks and count > 0:
            chunk = self._chunks.popleft()
            if len(chunk) > count:
                self._chunks.appendleft(chunk[count:])
                chunk = chunk[:count]
            taken.append(chunk)
            count -= len(chunk)
            self._samples -= len(chunk)
            self._head += len(chunk)
        return np.concatenate(taken) if taken else np.empty(0, np.float32)
