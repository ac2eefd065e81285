"""The audio formats of the Realtime API, and decoding of a stream that is cut anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from omni_realtime.audio.g711 import decode_alaw, decode_mulaw, encode_alaw, encode_mulaw
from omni_realtime.audio.pcm import AudioBytes, decode_pcm16, encode_pcm16
from omni_realtime.chat import Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFormat:
    """How a session's audio is written, mono."""

    name: str
    """The format's ``type`` in a session object."""
    rate: int
    """Samples a second, in Hz."""
    bytes_per_sample: int
    decode: Callable[[AudioBytes], Samples]
    """Samples at ``rate`` of whole samples' bytes; ``ValueError`` if they end within a sample."""
    encode: Callable[[Samples], bytes]
    """Bytes of samples at ``rate``; loud samples clip, NaN becomes silence."""


PCM16 = AudioFormat(name="audio/pcm", rate=24000, bytes_per_sample=2, decode=decode_pcm16, encode=encode_pcm16)
MULAW = AudioFormat(name="audio/pcmu", rate=8000, bytes_per_sample=1, decode=decode_mulaw, encode=encode_mulaw)
ALAW = AudioFormat(name="audio/pcma", rate=8000, bytes_per_sample=1, decode=decode_alaw, encode=encode_alaw)

FORMATS: Mapping[str, AudioFormat] = MappingProxyType({audio_format.name: audio_format for audio_format in (PCM16, MULAW, ALAW)})
"""Every format by its ``type``."""


class StreamDecoder:
    """Decodes chunks of one stream, wherever they are cut.

    The odd byte of a chunk that ends within a sample is carried to the next chunk.
    """

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._carried = b""

    def decode(self, chunk: AudioBytes) -> Samples:
        """Return the samples that ``chunk`` completes, at the format's rate; empty if it completes none."""
        data = self._carried + chunk if self._carried else chunk
        whole = len(data) - len(data) % self._format.bytes_per_sample
        if whole == len(data):
            self._carried = b""
            return self._format.decode(data)
        self._carried = bytes(data[whole:])
        return self._format.decode(memoryview(data)[:whole])

    def reset(self) -> None:
        """Forget a carried byte, because what follows is another stream."""
        self._carried = b""
