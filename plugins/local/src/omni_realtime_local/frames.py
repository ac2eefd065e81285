"""The framing between the engine and the speech worker: a kind, a request number and a payload, length first."""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

HEADER = struct.Struct("<BII")
"""Kind, request number, length of the payload in bytes."""


class Kind(enum.IntEnum):
    """What a frame carries."""

    READY = 0
    """From the worker, once: the voice's rate in Hz, as decimal text."""
    SPEAK = 1
    """To the worker: a sentence in UTF-8."""
    AUDIO = 2
    """From the worker: PCM, 16 bit, little-endian, mono."""
    DONE = 3
    """From the worker: the sentence is over."""
    FAILED = 4
    """From the worker: the sentence cannot be spoken; why, in UTF-8."""


class Frame(NamedTuple):
    """One message."""

    kind: Kind
    number: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """The bytes on the pipe."""
        return HEADER.pack(self.kind, self.number, len(self.payload)) + self.payload
