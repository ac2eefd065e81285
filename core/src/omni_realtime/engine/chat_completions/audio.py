"""The audio of a streamed answer, whichever way a server wraps it."""

from __future__ import annotations

import binascii

import pybase64

from omni_realtime.audio import PCM16, StreamDecoder, read_wav
from omni_realtime.chat import Samples
from omni_realtime.engine.chat_completions.chunks import AudioMetadata
from omni_realtime.engine.port import EngineError

UNDESCRIBED = AudioMetadata(format="pcm", sample_rate_hz=PCM16.rate)
"""OpenAI's streamed audio is PCM16 at 24 kHz and says so nowhere."""


class AudioReader:
    """Turns audio chunks into samples: whole WAV files, or pieces of one PCM16 stream that may be cut within a sample."""

    def __init__(self) -> None:
        self._pcm = StreamDecoder(PCM16)
        self._rate = 0

    def read(self, data: str, metadata: AudioMetadata | None) -> tuple[Samples, int]:
        """The samples of one chunk and their rate in Hz.

        Raises:
            EngineError: if the audio is of another kind, broken, or changes its rate.
        """
        try:
            samples, rate = self._decode(pybase64.b64decode(data, validate=True), metadata)
        except (ValueError, binascii.Error) as error:
            raise EngineError("The model server sent audio that cannot be decoded.") from error
        if self._rate and rate != self._rate:
            raise EngineError(f"The model server changed the rate of its audio from {self._rate} to {rate} Hz within one answer.")
        self._rate = rate
        return samples, rate

    def _decode(self, chunk: bytes, metadata: AudioMetadata | None) -> tuple[Samples, int]:
        described = metadata or UNDESCRIBED
        if described.format == "wav" or (metadata is None and chunk.startswith(b"RIFF")):
            return read_wav(chunk)
        if described.format in {"pcm", "pcm16"} and described.channels == 1:
            return self._pcm.decode(chunk), described.sample_rate_hz
        raise EngineError(
            f"The model server sent audio as {described.format} with {described.channels} channels; PCM16 and WAV, mono, are understood."
        )
