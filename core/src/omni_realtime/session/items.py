"""The client's hand on the conversation: create, delete, retrieve and truncate items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import orjson

from omni_realtime.audio import AudioFormat, resample
from omni_realtime.chat import ImagePart
from omni_realtime.protocol import (
    Capabilities,
    Content,
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemRetrieve,
    ConversationItemTruncate,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    Item,
    Message,
    OutputAudio,
    ProtocolError,
    check_item,
    item_to_wire,
)
from omni_realtime.protocol import server_events as events
from omni_realtime.session.conversation import Conversation, Entry, UserAudio
from omni_realtime.session.ids import Ids
from omni_realtime.session.outbox import Outbox
from omni_realtime.session.settings import SessionSettings
from omni_realtime.session.speech import Speech

FRAME_BYTES: Final = 1024 * 1024
"""A frame of this size ends the connection of common clients."""
ENVELOPE_BYTES: Final = 1024
"""What an event with an item holds beside the item."""
RETRIEVED_AUDIO_BYTES: Final = 720 * 1024
"""The most audio and images in an event with an item; more would make a frame of 1 MiB, at which common clients close the connection."""


class Items:
    """Item events of one session. Each method raises ProtocolError before it changes anything."""

    def __init__(self, settings: SessionSettings, conversation: Conversation, ids: Ids, outbox: Outbox) -> None:
        self._limits = settings.limits
        self._capabilities: Capabilities = settings.capabilities
        self._rate = settings.input_rate
        self._conversation = conversation
        self._ids = ids
        self._outbox = outbox

    def create(self, event: ConversationItemCreate, audio_format: AudioFormat, *, announced: str | None) -> None:
        """Put the client's item into the conversation; the id of an ``announced`` speech is not free."""
        conversation, item = self._conversation, event.item
        check_item(item, self._capabilities)
        if item.id in conversation or item.id == announced:
            raise ProtocolError(
                f"Error adding item: an item with id '{item.id}' already exists.", code="item_create_duplicate_item_id", param="item.id"
            )
        after = event.previous_item_id
        if after is not None and after != "root" and after not in conversation:
            raise ProtocolError(
                f"Error adding item: the previous item with id '{after}' does not exist; send an item's id, 'root' or nothing.",
                code="invalid_value",
                param="previous_item_id",
            )
        self._check_call(item)
        self._check_size()
        self.add(self.entry(item, audio_format, "item"), after)

    def add(self, entry: Entry, after: str | None = None) -> None:
        """Put an entry into the conversation, and say so."""
        self._conversation.insert(entry, after)
        item, previous = _with_images(entry.snapshot(), entry.images), self._conversation.predecessor(entry.item.id)
        self._outbox.send(events.ConversationItemAdded, item=item, previous_item_id=previous)
        self._outbox.send(events.ConversationItemDone, item=item, previous_item_id=previous)

    def entry(self, item: Item, audio_format: AudioFormat, param: str) -> Entry:
        """Make an entry of a client's item: with ids, and its audio at the model's rate.

        Raises:
            ProtocolError: the audio is not whole samples of ``audio_format``.
        """
        if isinstance(item, FunctionCall) and not item.call_id:
            item = replace(item, call_id=self._ids.new("call"))
        if not item.id:
            item = replace(item, id=self._ids.new("item"))
        audio: dict[int, UserAudio] = {}
        images: dict[int, ImagePart] = {}
        if isinstance(item, Message):
            for index, part in enumerate(item.content):
                if isinstance(part, InputAudio) and part.audio is not None:
                    audio[index] = self._user_audio(part.audio, audio_format, f"{param}.content.{index}.audio")
                elif isinstance(part, InputImage) and part.image is not None:
                    images[index] = self._image(part.image, part)
            item = replace(item, content=tuple(map(_emptied, item.content)))
        return Entry(item, audio=audio, images=images)

    def delete(self, event: ConversationItemDelete) -> None:
        """Take an item out of the conversation."""
        self._find(event.item_id, "delet", "item_delete_invalid_item_id")
        self._conversation.delete(event.item_id)
        self._outbox.send(events.ConversationItemDeleted, item_id=event.item_id)

    def retrieve(self, event: ConversationItemRetrieve, input_format: AudioFormat, output_format: AudioFormat) -> None:
        """Send an item with its images and its audio, the user's in ``input_format`` and the assistant's in ``output_format``.

        What is beyond the bound is left out.
        """
        entry = self._find(event.item_id, "retriev", "item_retrieve_invalid_item_id")
        if entry.speech is not None:
            item = _with_speech(entry.snapshot(), entry.speech, output_format)
        else:
            item = self._with_audio(entry, input_format)
        self._outbox.send(events.ConversationItemRetrieved, item=item)

    def truncate(self, event: ConversationItemTruncate) -> None:
        """Cut an assistant's speech, finished or not, to what was heard."""
        entry = self._find(event.item_id, "truncat", "item_truncate_invalid_item_id")
        speech = entry.speech
        if speech is None:
            raise ProtocolError("Only model output audio messages can be truncated", code="unsupported_content_type", param="item_id")
        if event.content_index != 0:
            raise ProtocolError(
                f"There is no audio at content index {event.content_index}; it is at 0.", code="invalid_value", param="content_index"
            )
        if event.audio_end_ms < 0:
            raise ProtocolError("'audio_end_ms' counts from 0.", code="invalid_value", param="audio_end_ms")
        if event.audio_end_ms > speech.duration_ms:
            raise ProtocolError(
                f"Audio content of {speech.duration_ms}ms is already shorter than {event.audio_end_ms}ms", code=None, param="audio_end_ms"
            )
        speech.cut(event.audio_end_ms)
        self._conversation.weigh(entry)
        self._outbox.send(events.ConversationItemTruncated, item_id=event.item_id, content_index=0, audio_end_ms=event.audio_end_ms)

    def _find(self, item_id: str, doing: str, code: str) -> Entry:
        entry = self._conversation.get(item_id)
        if entry is None:
            raise ProtocolError(f"Error {doing}ing item: the item with id '{item_id}' does not exist.", code=code, param="item_id")
        return entry

    def _check_call(self, item: Item) -> None:
        if isinstance(item, FunctionCall) and self._conversation.call(item.call_id):
            raise ProtocolError(
                f"Error adding item: a function call with call_id '{item.call_id}' already exists.",
                code="invalid_value",
                param="item.call_id",
            )
        if not isinstance(item, FunctionCallOutput):
            return
        call = self._conversation.call(item.call_id)
        if call is None or call.item.status != "completed":
            raise ProtocolError(
                f"Error adding item: no finished function call with call_id '{item.call_id}' is in the conversation.",
                code="invalid_value",
                param="item.call_id",
            )
        if self._conversation.output_of(item.call_id):
            raise ProtocolError(
                f"Error adding item: the function call '{item.call_id}' already has its output.", code="invalid_value", param="item.call_id"
            )

    def _check_size(self) -> None:
        full = len(self._conversation) >= self._limits.conversation_items
        if full or self._conversation.text_bytes > self._limits.conversation_text_bytes:
            raise ProtocolError(
                f"The conversation is full: it holds {self._limits.conversation_items} items and "
                f"{self._limits.conversation_text_bytes} bytes of text; delete items first.",
                code="conversation_full",
                param="item",
            )

    def _user_audio(self, audio: bytes, audio_format: AudioFormat, param: str) -> UserAudio:
        try:
            samples = audio_format.decode(audio)
        except ValueError as error:
            raise ProtocolError(f"Invalid '{param}': {error}", code="invalid_value", param=param) from None
        return UserAudio(self._ids.new("audio"), resample(samples, audio_format.rate, self._rate))

    def _image(self, image: bytes, part: InputImage) -> ImagePart:
        return ImagePart(data=image, media_type=part.media_type, key=self._ids.new("image"), detail=part.detail)

    def _with_audio(self, entry: Entry, audio_format: AudioFormat) -> Item:
        item = entry.snapshot()
        if not isinstance(item, Message):
            return item
        left = _room(item)
        content = list(item.content)
        for index, audio in entry.audio.items():
            part = content[index]
            size = len(audio.samples) * audio_format.rate // self._rate * audio_format.bytes_per_sample
            if isinstance(part, InputAudio) and size <= left:
                left -= size
                content[index] = replace(part, audio=audio_format.encode(resample(audio.samples, self._rate, audio_format.rate)))
        return _with_images(replace(item, content=tuple(content)), entry.images, left)


def _room(item: Item) -> int:
    """How many bytes of audio and images an event may hold beside the item's text."""
    text = len(orjson.dumps(item_to_wire(item)))
    return min(RETRIEVED_AUDIO_BYTES, (FRAME_BYTES - ENVELOPE_BYTES - text) * 3 // 4)


def _with_speech(item: Item, speech: Speech, audio_format: AudioFormat) -> Item:
    """The assistant's item with its speech, if that was kept and fits."""
    size = -(-speech.samples * audio_format.rate // speech.format.rate) * audio_format.bytes_per_sample
    (part,) = speech.content(audio=size <= _room(item))
    if not isinstance(item, Message) or not isinstance(part, OutputAudio):
        return item
    if part.audio is not None and speech.format is not audio_format:
        samples = resample(speech.format.decode(part.audio), speech.format.rate, audio_format.rate)
        part = replace(part, audio=audio_format.encode(samples))
    return replace(item, content=(part,))


def _emptied(part: Content) -> Content:
    """The part without its data, which the entry holds beside it."""
    match part:
        case InputAudio():
            return replace(part, audio=None)
        case InputImage():
            return replace(part, image=None)
    return part


def _with_images(item: Item, images: Mapping[int, ImagePart], left: int | None = None) -> Item:
    """The item with those of its images that fit into so many bytes, by default into what its text leaves."""
    if not images or not isinstance(item, Message):
        return item
    left = _room(item) if left is None else left
    content = list(item.content)
    for index, image in images.items():
        part = content[index]
        if isinstance(part, InputImage) and len(image.data) <= left:
            left -= len(image.data)
            content[index] = replace(part, image=image.data)
    return replace(item, content=tuple(content))
