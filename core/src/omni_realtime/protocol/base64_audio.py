"""Strict base64, as audio travels in JSON."""

from __future__ import annotations

import binascii

import pybase64

from omni_realtime.protocol.validation import refuse_value

MAX_AUDIO_BYTES = 15 * 1024 * 1024
"""The API's limit for the audio of one event, decoded."""


def decode_audio(value: str, param: str, limit: int = MAX_AUDIO_BYTES) -> bytes:
    """Return the bytes of base64 text with padding, the standard alphabet and nothing else.

    Raises:
        ProtocolError: the text is empty, not such base64, or holds more than ``limit`` bytes.
    """
    try:
        audio = pybase64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        refuse_value(param, "it is not base64 with padding in the standard alphabet, without line breaks or a data URL prefix.")
    if not audio:
        refuse_value(param, "it holds no audio.")
    if len(audio) > limit:
        refuse_value(param, f"it holds {len(audio)} bytes; send at most {limit} bytes in one event.")
    return audio
