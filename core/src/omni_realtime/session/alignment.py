"""Which text was heard by which sample."""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import east_asian_width


@dataclass(frozen=True, slots=True)
class _Span:
    text_start: int
    text_end: int
    sample: int


class Alignment:
    """Maps a length of audio to the text that it speaks.

    Where the engine says which text a stretch of audio speaks, the map is exact at the ends of the stretches and linear within them; where
    it does not, it is linear over the whole.
    """

    def __init__(self) -> None:
        self._spans: list[_Span] = []

    def mark(self, spoken: str, transcript: str, sample: int) -> None:
        """Note that ``spoken`` is heard from ``sample`` on; a text that is not in the transcript, white space apart, is ignored."""
        words = r"\s+".join(map(re.escape, spoken.split()))
        found = re.compile(words).search(transcript, self._spans[-1].text_end if self._spans else 0)
        if words and found:
            self._spans.append(_Span(*found.span(), sample))

    def heard(self, transcript: str, sample: int, total: int) -> str:
        """Return the words of ``transcript`` that are wholly heard after ``sample`` of ``total`` samples."""
        if not sample:
            return ""
        if not self._spans:
            return transcript if sample >= total else _whole_words(transcript, len(transcript) * sample // total)
        end = 0
        for span, following in zip(self._spans, [*(later.sample for later in self._spans[1:]), total], strict=True):
            if sample >= following:
                end = span.text_end
            elif sample > span.sample:
                end = span.text_start + (span.text_end - span.text_start) * (sample - span.sample) // (following - span.sample)
                break
        return transcript if sample >= total and not transcript[end:].strip() else _whole_words(transcript, end)


def _whole_words(text: str, end: int) -> str:
    """Return the words of ``text`` that end by ``end``."""
    if end < len(text) and not _breaks(text[end]):
        while end and not _breaks(text[end - 1]):
            end -= 1
    return text[:end].rstrip()


def _breaks(character: str) -> bool:
    """Whether text may be cut beside this character: white space, and the scripts that are written without it."""
    return character.isspace() or east_asian_width(character) in "WF"
