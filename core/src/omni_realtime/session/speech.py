"""What an assistant message consists of while and after it streams."""

from __future__ import annotations

from typing import Protocol

from omni_realtime.audio import AudioFormat
from omni_realtime.protocol import Content, OutputAudio, OutputText
from omni_realtime.session.alignment import Alignment


class Body(Protocol):
    """The content of an assistant message as it stands."""

    def content(self, *, audio: bool) -> tuple[Content, ...]:
        """The content parts, with the audio's bytes if ``audio``."""
        ...


class TextBody:
    """A written answer."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add_text(self, piece: str) -> None:
        """Append what was sent."""
        self._pieces.append(piece)

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._pieces)

    def content(self, *, audio: bool) -> tuple[Content, ...]:  # noqa: ARG002 - the shape of a body
        """The one text part."""
        return (OutputText(text=self.text),)


class Speech:
    """A spoken answer: its audio as sent, its transcript, and where it was cut.

    Once cut, it stays as it was heard: what the engine still streams is sent but no longer part of it.
    """

    def __init__(self, audio_format: AudioFormat) -> None:
        self.format = audio_format
        self._pieces: list[str] = []
        self._chunks: list[bytes] = []
        self._bytes = 0
        self._keeps_audio = True
        self._alignment = Alignment()
        self._heard: str | None = None

    @property
    def transcript(self) -> str:
        """What was said, or after a cut, what was heard."""
        return "".join(self._pieces) if self._heard is None else self._heard

    @property
    def samples(self) -> int:
        """Samples of the audio, in the format's rate."""
        return self._bytes // self.format.bytes_per_sample

    @property
    def duration_ms(self) -> int:
        """The audio's length in milliseconds, rounded up as clients do."""
        return -(-self.samples * 1000 // self.format.rate)

    @property
    def kept_bytes(self) -> int:
        """Bytes of audio that are still in memory."""
        return self._bytes if self._keeps_audio else 0

    def add_text(self, piece: str) -> None:
        """Append transcript that was sent."""
        if self._heard is None:
            self._pieces.append(piece)

    def mark(self, spoken: str) -> None:
        """Note that the audio from here on speaks ``spoken``."""
        if self._heard is None:
            self._alignment.mark(spoken, "".join(self._pieces), self.samples)

    def add_audio(self, chunk: bytes) -> None:
        """Append audio that was sent, in whole samples."""
        if self._heard is not None:
            return
        self._bytes += len(chunk)
        if self._keeps_audio:
            self._chunks.append(chunk)

    def cut(self, end_ms: int) -> None:
        """Keep the first ``end_ms`` milliseconds, and the text that was heard in them."""
        total = self.samples
        end = min(end_ms * self.format.rate // 1000, total) if end_ms < self.duration_ms else total
        self._heard = self._alignment.heard(self.transcript, end, total)
        audio = b"".join(self._chunks)[: end * self.format.bytes_per_sample]
        self._chunks = [audio] if audio else []
        self._bytes = end * self.format.bytes_per_sample

    def forget_audio(self) -> None:
        """Let the audio's bytes go, also those that still come; its length and text stay."""
        self._keeps_audio = False
        self._chunks.clear()

    def content(self, *, audio: bool) -> tuple[Content, ...]:
        """The one audio part."""
        return (OutputAudio(transcript=self.transcript, audio=b"".join(self._chunks) if audio and self._keeps_audio else None),)
