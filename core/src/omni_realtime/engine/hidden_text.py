"""Strings that a model writes beside its words, taken out of a stream of text."""

from __future__ import annotations

import re
from collections.abc import Sequence


class HiddenText:
    """Removes whole strings, such as special tokens, wherever the stream is cut."""

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = tuple(filter(None, strings))
        self._pattern = re.compile("|".join(map(re.escape, self._strings))) if self._strings else None
        self._held = ""

    def read(self, text: str) -> str:
        """The text that is surely not hidden; what may be the beginning of a hidden string waits."""
        if self._pattern is None:
            return text
        *shown, tail = self._pattern.split(self._held + text)
        kept = len(tail) - self._begun(tail)
        self._held = tail[kept:]
        return "".join(shown) + tail[:kept]

    def end(self) -> str:
        """What still waited: it is no hidden string after all."""
        held, self._held = self._held, ""
        return held

    def _begun(self, text: str) -> int:
        longest = max(map(len, self._strings)) - 1
        for length in range(min(longest, len(text)), 0, -1):
            if any(string.startswith(text[-length:]) for string in self._strings):
                return length
        return 0
