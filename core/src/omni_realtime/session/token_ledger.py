"""What the items of a conversation cost in tokens, told by the engine once and never rendered for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from omni_realtime.chat import Turn
from omni_realtime.protocol import FunctionCall, FunctionCallOutput, InputText, OutputText
from omni_realtime.session.conversation import Entry

FRAME_TOKENS: Final = 32
"""More than a chat template puts around a message, a call, a tool, an audio part or an image."""
TOOLS_TOKENS: Final = 512
"""More than a chat template says about tools in general."""


@dataclass(frozen=True, slots=True)
class Base:
    """What a prompt holds beside its items: instructions and tools, by a key and an upper bound of their tokens."""

    key: int
    most: int


def base_of(turn: Turn) -> Base:
    """Return the base of a turn; a byte-level tokeniser makes at most one token of a byte."""
    tools = [repr(tool) for tool in turn.tools]
    told = sum(len(tool.encode()) + FRAME_TOKENS for tool in tools) + (TOOLS_TOKENS if tools else 0)
    return Base(hash((turn.instructions, *tools)), FRAME_TOKENS + len(turn.instructions.encode()) + told)


@dataclass(frozen=True, slots=True)
class _Known:
    """A prompt whose length the engine has told."""

    item_ids: frozenset[str]
    base: Base
    tokens: int
    least: int
    """As many tokens, less what may have become shorter since."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Items that came into the prompt together: at ``most`` what each costs, at ``least`` what all do."""

    most: Mapping[str, int]
    least: int

    def saved(self, present: AbstractSet[str]) -> int:
        """Return a lower bound of what the items that are not present cost."""
        return max(0, self.least - sum(most for item_id, most in self.most.items() if item_id in present))

    def without(self, absent: AbstractSet[str]) -> _Group:
        """Return the group of the items that are left."""
        left = {item_id: most for item_id, most in self.most.items() if item_id not in absent}
        return _Group(left, self.least - sum(self.most.values()) + sum(left.values()))


class TokenLedger:
    """Upper bounds of what prompts cost: the last known total, less what left since, plus bounds of what came."""

    def __init__(self, *, audio_rate: int, audio_tokens_per_second: float, image_tokens: int = 0) -> None:
        """Begin knowing nothing; ``audio_rate`` in Hz is that of the entries' audio."""
        self._audio_rate = audio_rate
        self._audio_tokens = audio_tokens_per_second
        self._image_tokens = image_tokens
        self._known: _Known | None = None
        self._groups: list[_Group] = []
        self._least_base = 0
        self._told: dict[str, int] = {}

    def learn(self, entries: Sequence[Entry], base: Base, tokens: int, *, unfinished: frozenset[str] = frozenset()) -> None:
        """Take what a prompt of these entries costs in all; ``unfinished`` ones may have grown since and so stay unknown."""
        most, known = {entry.item.id: self.bound(entry) for entry in entries}, self._known
        ids, grown = most.keys() - unfinished, sum(most[item_id] for item_id in unfinished & most.keys())
        if known is None or known.base.key != base.key:
            self._groups = [_Group({item_id: most[item_id] for item_id in ids}, tokens - base.most - grown)]
            self._least_base = tokens - sum(most.values())
        else:
            added = tokens - known.tokens + self._saved(ids) - grown
            left = [group.without(known.item_ids - ids) for group in self._groups]
            new = _Group({item_id: most[item_id] for item_id in ids - known.item_ids}, added)
            self._groups = [group for group in (*left, new) if group.most]
        self._known = _Known(frozenset(ids), base, tokens, tokens - grown)

    def told(self, item_id: str, tokens: int) -> None:
        """Take that an answer was so many tokens, as a tighter bound than its bytes."""
        self._told[item_id] = tokens

    def reused(self, item_id: str) -> None:
        """Take that an item came under the id of one that left, if that was known; of the new one nothing is."""
        self._told.pop(item_id, None)
        known = self._known
        if known is None or item_id not in known.item_ids:
            return
        others = known.item_ids - {item_id}
        least = known.least - self._known_most.get(item_id, 0)
        self._known = replace(known, item_ids=others, tokens=known.tokens - self._saved(others), least=least)
        self._groups = [group.without({item_id}) for group in self._groups]

    def shrunk(self, item_id: str) -> None:
        """Take that an item has become shorter, so that leaving it out may save less."""
        self._groups = [replace(group, least=0) if item_id in group.most else group for group in self._groups]
        if self._known:
            self._known = replace(self._known, least=self._known.least - self._known_most.get(item_id, 0))

    def most(self, entries: Sequence[Entry], base: Base) -> int:
        """Return an upper bound of what a prompt of these entries costs in all; what the engine told goes before any bound."""
        bound, known = base.most + sum(map(self.bound, entries)), self._known
        if known is None:
            return bound
        grown = 0 if base.key == known.base.key else base.most
        saved = self._saved({entry.item.id for entry in entries})
        return max(self.least(entries, base), min(bound, known.tokens + grown - saved + self.slack(entries)))

    def least(self, entries: Sequence[Entry], base: Base) -> int:
        """Return a lower bound of what a prompt of these entries costs in all."""
        known = self._known
        if known is None or base.key != known.base.key:
            return 0
        absent = known.item_ids - {entry.item.id for entry in entries}
        return max(0, known.least - sum(most for item_id, most in self._known_most.items() if item_id in absent))

    def slack(self, entries: Iterable[Entry]) -> int:
        """Return how much of ``most`` is a bound of items that no known prompt held."""
        known = self._known.item_ids if self._known else frozenset()
        return sum(self.bound(entry) for entry in entries if entry.item.id not in known)

    def least_base(self, base: Base) -> int:
        """Return a lower bound of what the instructions and tools cost."""
        return max(0, self._least_base) if self._known and self._known.base.key == base.key else 0

    def bound(self, entry: Entry) -> int:
        """Return an upper bound of what one item costs."""
        samples = sum(len(audio.samples) for audio in entry.audio.values())
        audio = int(samples / self._audio_rate * self._audio_tokens + 1) + FRAME_TOKENS * len(entry.audio) if samples else 0
        images = (self._image_tokens + FRAME_TOKENS) * len(entry.images)
        text = _text_bytes(entry)
        return FRAME_TOKENS + min(text, self._told.get(entry.item.id, text)) + audio + images

    @property
    def _known_most(self) -> dict[str, int]:
        """At most what each item of the known prompt costs."""
        return {item_id: most for group in self._groups for item_id, most in group.most.items()}

    def _saved(self, present: AbstractSet[str]) -> int:
        return sum(group.saved(present) for group in self._groups)


def _text_bytes(entry: Entry) -> int:
    item = entry.snapshot()
    if isinstance(item, FunctionCall):
        return len(item.name.encode()) + len(item.arguments.encode())
    if isinstance(item, FunctionCallOutput):
        return len(item.output.encode())
    return sum(_part_bytes(message_part, kept=index in entry.audio) for index, message_part in enumerate(item.content))


def _part_bytes(part: object, *, kept: bool) -> int:
    if isinstance(part, InputText | OutputText):
        return len(part.text.encode())
    return 0 if kept else len((getattr(part, "transcript", None) or "").encode())
