"""Audio: PCM16 and G.711 codecs, WAV files, streaming resampling. Samples are float32, mono."""

from __future__ import annotations

from omni_realtime.audio.formats import ALAW, FORMATS, MULAW, PCM16, AudioFormat, StreamDecoder
from omni_realtime.audio.g711 import decode_alaw, decode_mulaw, encode_alaw, encode_mulaw
from omni_realtime.audio.pcm import AudioBytes, decode_pcm16, encode_pcm16
from omni_realtime.audio.resample import Resampler, resample
from omni_realtime.audio.wav import read_wav, write_wav

__all__ = [
    "ALAW",
    "FORMATS",
    "MULAW",
    "PCM16",
    "AudioBytes",
    "AudioFormat",
    "Resampler",
    "StreamDecoder",
    "decode_alaw",
    "decode_mulaw",
    "decode_pcm16",
    "encode_alaw",
    "encode_mulaw",
    "encode_pcm16",
    "read_wav",
    "resample",
    "write_wav",
]
