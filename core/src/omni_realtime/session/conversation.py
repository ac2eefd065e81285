"""The conversation: items in their order, and what the server knows of each beyond the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from omni_realtime.chat import ImagePart, Samples
from omni_realtime.protocol import FunctionCall, FunctionCallOutput, InputAudio, InputText, Item, Message, OutputText
from omni_realtime.session.speech import Body, Speech


@dataclass(frozen=True, slots=True, eq=False)
class UserAudio:
    """One ``input_audio`` part at the model's rate; ``key`` names it for caches."""

    key: str
    samples: Samples


@dataclass(slots=True, eq=False)
class Entry:
    """An item and what belongs to it.

    An assistant's message has a ``body`` that grows and can be cut; its content is always the body's.
    """

    item: Item
    body: Body | None = None
    audio: Mapping[int, UserAudio] = field(default_factory=dict)
    """A user message's audio by content index."""
    images: Mapping[int, ImagePart] = field(default_factory=dict)
    """A user message's images by content index."""

    def snapshot(self) -> Item:
        """The item as it stands, without audio and images."""
        if self.body is not None and isinstance(self.item, Message):
            return replace(self.item, content=self.body.content(audio=False))
        return self.item

    @property
    def speech(self) -> Speech | None:
        """The assistant's speech, where this is that."""
        return self.body if isinstance(self.body, Speech) else None

    @property
    def kept_bytes(self) -> int:
        """Bytes of audio and images in memory."""
        heard, seen = sum(part.samples.nbytes for part in self.audio.values()), sum(len(part.data) for part in self.images.values())
        return heard + seen + (self.speech.kept_bytes if self.speech else 0)

    def forget_media(self) -> None:
        """Let audio and images go; the text stays."""
        self.audio = {}
        self.images = {}
        if self.speech:
            self.speech.forget_audio()

    def transcribe(self, transcript: str) -> None:
        """Write what was said into the user message's audio part."""
        if isinstance(self.item, Message):
            content = tuple(replace(part, transcript=transcript) if isinstance(part, InputAudio) else part for part in self.item.content)
            self.item = replace(self.item, content=content)


class Conversation:
    """Items by id and in order."""

    def __init__(self, conversation_id: str, *, audio_bytes: int) -> None:
        """Begin empty; beyond ``audio_bytes`` the oldest items lose their audio and images."""
        self.id = conversation_id
        self._audio_bytes = audio_bytes
        self._entries: dict[str, Entry] = {}
        self._order: list[str] = []
        self._calls: dict[str, Entry] = {}
        self._outputs: dict[str, Entry] = {}
        self._text: dict[str, int] = {}
        self._audio: dict[str, int] = {}
        self.text_bytes = 0
        """Characters of the text that clients brought, about its size in memory."""
        self._kept_bytes = 0

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._entries

    def __iter__(self) -> Iterator[Entry]:
        return (self._entries[item_id] for item_id in self._order)

    def __len__(self) -> int:
        return len(self._order)

    def get(self, item_id: str) -> Entry | None:
        """The entry of this item, if it is here."""
        return self._entries.get(item_id)

    def insert(self, entry: Entry, after: str | None = None) -> None:
        """Put an entry behind the item ``after``, at the front for ``root``, at the end for ``None``."""
        at = len(self._order) if after is None else 0 if after == "root" else self._order.index(after) + 1
        item = entry.item
        self._order.insert(at, item.id)
        self._entries[item.id] = entry
        if isinstance(item, FunctionCall):
            self._calls[item.call_id] = entry
        elif isinstance(item, FunctionCallOutput):
            self._outputs[item.call_id] = entry
        self._text[item.id] = _text_size(item)
        self.text_bytes += self._text[item.id]
        self.weigh(entry)

    def predecessor(self, item_id: str) -> str | None:
        """The id of the item before this one; ``None`` at the front."""
        at = self._order.index(item_id)
        return self._order[at - 1] if at else None

    @property
    def last_id(self) -> str | None:
        """The id of the last item."""
        return self._order[-1] if self._order else None

    def delete(self, item_id: str) -> None:
        """Take an item out."""
        item = self._entries.pop(item_id).item
        self._order.remove(item_id)
        if isinstance(item, FunctionCall):
            del self._calls[item.call_id]
        elif isinstance(item, FunctionCallOutput):
            del self._outputs[item.call_id]
        self.text_bytes -= self._text.pop(item_id)
        self._kept_bytes -= self._audio.pop(item_id, 0)

    def weigh(self, entry: Entry) -> None:
        """Take note of an entry's audio and images, then let the oldest go until all are within the bound; the newest stay."""
        item_id, kept = entry.item.id, entry.kept_bytes
        self._kept_bytes += kept - self._audio.get(item_id, 0)
        if kept:
            self._audio[item_id] = kept
        else:
            self._audio.pop(item_id, None)
        while self._kept_bytes > self._audio_bytes and len(self._audio) > 1:
            oldest = next(iter(self._audio))
            self._kept_bytes -= self._audio.pop(oldest)
            self._entries[oldest].forget_media()

    def call(self, call_id: str) -> Entry | None:
        """The function call with this id."""
        return self._calls.get(call_id)

    def output_of(self, call_id: str) -> Entry | None:
        """The output that answers this call."""
        return self._outputs.get(call_id)


def _text_size(item: Item) -> int:
    if isinstance(item, FunctionCall):
        return len(item.name) + len(item.arguments)
    if isinstance(item, FunctionCallOutput):
        return len(item.output)
    return sum(
        len(part.text) if isinstance(part, InputText | OutputText) else len(getattr(part, "transcript", None) or "")
        for part in item.content
    )
