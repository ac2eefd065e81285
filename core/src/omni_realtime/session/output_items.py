"""The writers of a response's items: each opens its item, streams into it and closes it, in the API's order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from omni_realtime.audio import AudioFormat, Resampler
from omni_realtime.chat import Samples
from omni_realtime.protocol import ContentPart, FunctionCall, Item, ItemStatus, Message
from omni_realtime.protocol import server_events as events
from omni_realtime.session.conversation import Conversation, Entry
from omni_realtime.session.ids import Ids
from omni_realtime.session.outbox import Outbox
from omni_realtime.session.speech import Speech, TextBody

LONGEST_CALL_ID = 32
"""In characters; some clients cut longer ones, and then their answer finds no call."""
DELTA_MS = 400
"""The longest audio delta: it bounds a frame's size and how much is sent after a barge-in."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a response's items go; ``conversation`` is ``None`` for an out-of-band response."""

    response_id: str
    outbox: Outbox
    ids: Ids
    conversation: Conversation | None


class ItemWriter:
    """What the writers share: the item's beginning and its end."""

    def __init__(self, place: Place, output_index: int, entry: Entry) -> None:
        """Announce the item, in progress."""
        self.entry = entry
        self._place = place
        self._outbox = place.outbox
        self._at = {"response_id": place.response_id, "item_id": entry.item.id, "output_index": output_index}
        self._output_index = output_index
        self._outbox.send(events.ResponseOutputItemAdded, response_id=place.response_id, output_index=output_index, item=entry.item)
        if place.conversation is not None:
            previous = place.conversation.last_id
            place.conversation.insert(entry)
            self._outbox.send(events.ConversationItemAdded, item=entry.item, previous_item_id=previous)

    def close(self, status: ItemStatus) -> None:
        """End the item; ``incomplete`` if it was cut off."""
        raise NotImplementedError

    def _finish(self, item: Item) -> None:
        self.entry.item = item
        done = self.entry.snapshot()
        self._outbox.send(events.ResponseOutputItemDone, response_id=self._place.response_id, output_index=self._output_index, item=done)
        conversation = self._place.conversation
        if conversation is not None and conversation.get(item.id) is self.entry:
            self._outbox.send(events.ConversationItemDone, item=done, previous_item_id=conversation.predecessor(item.id))
            conversation.weigh(self.entry)


def _message(ids: Ids) -> Message:
    return Message(id=ids.new("item"), role="assistant", content=(), status="in_progress")


class TextWriter(ItemWriter):
    """A written message: one text part."""

    def __init__(self, place: Place, output_index: int) -> None:
        super().__init__(place, output_index, Entry(_message(place.ids)))
        self._body = TextBody()
        self.entry.body = self._body
        self._at["content_index"] = 0
        self._outbox.send(events.ResponseContentPartAdded, **self._at, part=ContentPart(type="text", text=""))

    def text(self, piece: str) -> None:
        """Stream text."""
        self._body.add_text(piece)
        self._outbox.send(events.ResponseOutputTextDelta, **self._at, delta=piece)

    def close(self, status: ItemStatus) -> None:
        """End the part, then the message."""
        text = self._body.text
        self._outbox.send(events.ResponseOutputTextDone, **self._at, text=text)
        self._outbox.send(events.ResponseContentPartDone, **self._at, part=ContentPart(type="text", text=text))
        self._finish(replace(self.entry.item, status=status))


class SpeechWriter(ItemWriter):
    """A spoken message: one audio part with its transcript, resampled once, as one stream."""

    def __init__(self, place: Place, output_index: int, audio_format: AudioFormat) -> None:
        super().__init__(place, output_index, Entry(_message(place.ids)))
        self._speech = Speech(audio_format)
        self.entry.body = self._speech
        self._transcript: list[str] = []
        self._format = audio_format
        self._resampler: Resampler | None = None
        self.samples = 0
        self._at["content_index"] = 0
        self._outbox.send(events.ResponseContentPartAdded, **self._at, part=ContentPart(type="audio", text=""))

    def text(self, piece: str) -> None:
        """Stream transcript."""
        self._transcript.append(piece)
        self._speech.add_text(piece)
        self._outbox.send(events.ResponseOutputAudioTranscriptDelta, **self._at, delta=piece)

    def audio(self, samples: Samples, rate: int, spoken: str) -> None:
        """Stream samples at ``rate`` Hz; the first call fixes the rate."""
        if self._resampler is None:
            self._resampler = Resampler(rate, self._format.rate)
        if spoken:
            self._speech.mark(spoken)
        self._send_audio(self._resampler.process(samples))

    def _send_audio(self, samples: Samples) -> None:
        longest = self._format.rate * DELTA_MS // 1000
        for start in range(0, len(samples), longest):
            chunk = self._format.encode(samples[start : start + longest])
            self._speech.add_audio(chunk)
            self._outbox.send(events.ResponseOutputAudioDelta, **self._at, delta=chunk)
        self.samples += len(samples)

    def flush(self) -> None:
        """Send the last milliseconds, which the resampler holds back."""
        if self._resampler is not None:
            self._send_audio(self._resampler.flush())

    def close(self, status: ItemStatus) -> None:
        """End the audio, its transcript and the part, then the message."""
        transcript = "".join(self._transcript)
        self._outbox.send(events.ResponseOutputAudioDone, **self._at)
        self._outbox.send(events.ResponseOutputAudioTranscriptDone, **self._at, transcript=transcript)
        self._outbox.send(events.ResponseContentPartDone, **self._at, part=ContentPart(type="audio", text=transcript))
        self._finish(replace(self.entry.item, status=status))


class CallWriter(ItemWriter):
    """A function call."""

    def __init__(self, place: Place, output_index: int, *, name: str, call_id: str | None) -> None:
        self._call = FunctionCall(id=place.ids.new("item"), call_id=_call_id(place, call_id), name=name, arguments="", status="in_progress")
        super().__init__(place, output_index, Entry(self._call))
        self._at["call_id"] = self._call.call_id
        self._arguments: list[str] = []

    def arguments(self, piece: str) -> None:
        """Stream argument text."""
        self._arguments.append(piece)
        self._outbox.send(events.ResponseFunctionCallArgumentsDelta, **self._at, delta=piece)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are JSON, as clients read them; none at all stand for an empty object."""
        try:
            orjson.loads("".join(self._arguments) or "{}")
        except orjson.JSONDecodeError:
            return False
        return True

    def close(self, status: ItemStatus) -> None:
        """End the call; arguments that were cut off are never announced as done, for clients run the tool at that event."""
        if status == "completed" and not any(self._arguments):
            self.arguments("{}")
        arguments = "".join(self._arguments)
        if status == "completed":
            self._outbox.send(events.ResponseFunctionCallArgumentsDone, **self._at, name=self._call.name, arguments=arguments)
        self._finish(replace(self._call, arguments=arguments, status=status))


def _call_id(place: Place, given: str | None) -> str:
    """Return the engine's id of a call if clients can use it: engines that count their calls per answer repeat themselves."""

    def is_free(call_id: str) -> bool:
        return place.conversation is None or place.conversation.call(call_id) is None

    if given and len(given) <= LONGEST_CALL_ID and is_free(given):
        return given
    while not is_free(made := place.ids.new("call")):
        pass
    return made
