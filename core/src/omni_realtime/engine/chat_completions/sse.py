"""Server-sent events from a byte stream that is cut anywhere.

An own parser, because the usual ones split text lines by Unicode's rules: U+2028 is whole in JSON and would break an event in two.
"""

from __future__ import annotations

import re

LINE_END = re.compile(rb"\r\n|\n|\r")
LARGEST_EVENT = 64 << 20
"""Bytes: minutes of audio in one chunk still pass, and a stream without end does not fill the memory."""


class EventTooLargeError(ValueError):
    """One event is larger than any chunk of an answer can be."""


class EventReader:
    """Turns pieces of a stream into the ``data`` of its events; comments and other fields are left out."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._held = 0
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that ``piece`` completes.

        Raises:
            EventTooLargeError: if one grows beyond reason.
        """
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        if piece:
            self._after_cr = piece.endswith(b"\r")
        first, *rest = LINE_END.split(piece)
        self._hold(first)
        events = []
        for part in rest:
            if (event := self._end_line()) is not None:
                events.append(event)
            self._hold(part)
        return events

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > LARGEST_EVENT:
            raise EventTooLargeError
        self._line.append(part)

    def _end_line(self) -> bytes | None:
        line = b"".join(self._line)
        self._line.clear()
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            return None
        event = b"\n".join(self._data) if self._data else None
        self._data.clear()
        self._held = 0
        return event
