"""From a stream of tokens to sentences that can be spoken."""

from __future__ import annotations

import re

LONGEST = 240
"""Characters after which text is split even without a full stop: some 15 s of speech."""
SHORTEST_CUT = 80
"""Where such text is split at a comma, at least this much comes before it."""

_STOP = re.compile(r"""[.!?…]+["'\u201d\u2019)\]*]*(?=\s)|\n""")
_TITLES = "Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|vs|etc|approx|No|Mt|Gen|Sen|Rep|Capt|Lt|Col|Inc|Ltd|Co|Corp"
_ABBREVIATION = re.compile(rf"(?:^|[\s(\[\"'])(?:{_TITLES}|[A-Za-z]|[A-Za-z]\.[A-Za-z])\.$|^\d+\.$")
_PAUSE = re.compile(r"[,;:\u2014\u2013](?=\s)")
_SPACE = re.compile(r"\s")


class SentenceSplitter:
    """Takes text in any pieces and gives sentences as soon as they are whole.

    The sentences hold the text unchanged, white space at their ends apart, whatever the pieces were.
    """

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """Take a piece and give the sentences that it completes."""
        self._rest += text
        sentences = []
        while (end := _end(self._rest)) is not None:
            sentence, self._rest = self._rest[:end].strip(), self._rest[end:].lstrip()
            if sentence:
                sentences.append(sentence)
        return sentences

    def finish(self) -> list[str]:
        """Give what is left; the splitter is empty then."""
        rest, self._rest = self._rest.strip(), ""
        return [rest] if rest else []


def _end(text: str) -> int | None:
    """Where the first sentence of a text ends; ``None`` if more text is to be awaited."""
    window = text[: LONGEST + 1]
    for stop in _STOP.finditer(window):
        if stop.group() != "." or not _ABBREVIATION.search(window[: stop.end()]):
            return stop.end()
    return _cut(window) if len(window) > LONGEST else None


def _cut(text: str) -> int:
    """Where to split a text that is too long: at its last pause, else its last space, else anywhere."""
    pauses = [match.end() for match in _PAUSE.finditer(text, SHORTEST_CUT, LONGEST)]
    if pauses:
        return pauses[-1]
    spaces = [match.end() for match in _SPACE.finditer(text, SHORTEST_CUT, LONGEST)]
    return spaces[-1] if spaces else LONGEST
