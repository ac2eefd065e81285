"""Checks the order of one response's events."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

_SAMPLE_BYTES = {"audio/pcm": 2, "audio/pcmu": 1, "audio/pcma": 1}
_TEXT = {"text": "response.output_text", "audio": "response.output_audio_transcript"}


@dataclass(slots=True)
class _Part:
    """A content part, and what was streamed into it."""

    type: str
    text: str = ""
    text_done: bool = False
    audio_done: bool = False


@dataclass(slots=True)
class _Item:
    """An output item between its ``added`` and its ``done``."""

    item: dict[str, Any]
    in_conversation: bool = False
    open_parts: dict[int, _Part] = field(default_factory=dict)
    done_parts: dict[int, _Part] = field(default_factory=dict)
    arguments: str = ""
    arguments_done: bool = False


class ResponseOrder:
    """Follows one response from ``response.created`` to ``response.done``.

    Items come one after the other, each opened before and closed after what belongs to it; what a ``done`` says is what its deltas said.
    """

    def __init__(self, body: dict[str, Any]) -> None:
        """Begin with the resource of ``response.created``."""
        begins = (body["status"], body["output"], body["usage"], body["status_details"])
        assert begins == ("in_progress", [], None, None), f"response.created: {begins}"
        self.in_conversation = body["conversation_id"] is not None
        self._sample_bytes = _SAMPLE_BYTES[body["audio"]["output"]["format"]["type"]]
        self._modality = body["output_modalities"][0]
        self._done_items: list[dict[str, Any]] = []
        self._open: _Item | None = None

    def item_in_conversation(self, item_id: str) -> None:
        """Take that ``conversation.item.added`` has told of the open item."""
        assert self._open is not None, f"item.added: {item_id} in progress, but its response has no open item"
        assert item_id == self._open.item["id"], f"item.added: {item_id} in progress, but {self._open.item['id']} is open"
        assert self.in_conversation, f"item.added: {item_id} is out of band"
        self._open.in_conversation = True

    def check(self, kind: str, event: dict[str, Any]) -> None:
        """Take the next event between the first and the last."""
        assert event["output_index"] == len(self._done_items), f"{kind}: the index {event['output_index']}"
        if kind == "response.output_item.added":
            self._item_added(event["item"])
            return
        opened = self._open
        item_id = event["item"]["id"] if kind == "response.output_item.done" else event["item_id"]
        assert opened is not None, f"{kind}: no item is open"
        assert item_id == opened.item["id"], f"{kind}: of {item_id}, but {opened.item['id']} is open"
        assert opened.in_conversation == self.in_conversation, f"{kind}: before the item.added of {item_id}"
        if kind == "response.output_item.done":
            self._item_done(event["item"], opened)
        elif kind.startswith("response.function_call_arguments."):
            _arguments(kind, event, opened)
        elif kind == "response.content_part.added":
            self._part_added(event["content_index"], event["part"], opened)
        else:
            assert event["content_index"] in opened.open_parts, f"{kind}: part {event['content_index']} is not open"
            self._of_part(kind, event, opened)

    def end(self, body: dict[str, Any]) -> None:
        """Take the resource of ``response.done``."""
        status, details = body["status"], body["status_details"]
        assert status != "in_progress", "response.done: in progress"
        assert self._open is None, "response.done: an item is open"
        assert [_named(item) for item in body["output"]] == [_named(item) for item in self._done_items], "response.done: other items"
        assert (None if details is None else details["type"]) == (None if status == "completed" else status), f"response.done: {details}"
        assert body["usage"] is not None, "response.done: no usage"
        assert status != "completed" or all(item["status"] == "completed" for item in body["output"]), "response.done: an incomplete item"
        assert (body["conversation_id"] is not None) == self.in_conversation, "response.done: another conversation"

    def _item_added(self, item: dict[str, Any]) -> None:
        assert self._open is None, "output_item.added: the item before it is open"
        empty = (item["status"], item.get("content") or item.get("arguments") or None)
        assert empty == ("in_progress", None), f"output_item.added: {empty}"
        self._open = _Item(item)

    def _item_done(self, item: dict[str, Any], opened: _Item) -> None:
        assert not opened.open_parts, f"output_item.done: open parts {sorted(opened.open_parts)}"
        assert item["status"] in {"completed", "incomplete"}, f"output_item.done: {item['status']}"
        assert _named(item) == _named(opened.item), "output_item.done: another item"
        if item["type"] == "function_call":
            assert opened.arguments_done == (item["status"] == "completed"), "arguments.done comes for completed calls alone"
            assert item["arguments"] == opened.arguments, "output_item.done: other arguments"
        for index, part in enumerate(item.get("content", ())):
            # A prefix: after a truncation the item holds less than was sent.
            assert opened.done_parts[index].text.startswith(_text(part)), "output_item.done: other text"
        self._done_items.append(item)
        self._open = None

    def _part_added(self, index: int, part: dict[str, Any], opened: _Item) -> None:
        assert opened.item["type"] == "message", "content_part.added: of a call"
        assert index == len(opened.open_parts) + len(opened.done_parts), f"content_part.added: the index {index}"
        assert part["type"] == self._modality, f"content_part.added: {part['type']} in a response of {self._modality}"
        assert not _text(part), "content_part.added: not empty"
        opened.open_parts[index] = _Part(part["type"])

    def _of_part(self, kind: str, event: dict[str, Any], opened: _Item) -> None:
        part = opened.open_parts[event["content_index"]]
        if kind.startswith("response.output_audio."):
            self._audio(kind, event, part)
        elif kind == "response.content_part.done":
            assert part.text_done, f"{kind}: before its text is done"
            assert part.audio_done == (part.type == "audio"), f"{kind}: before its audio is done"
            assert (event["part"]["type"], _text(event["part"])) == (part.type, part.text), f"{kind}: not what was streamed"
            opened.done_parts[event["content_index"]] = opened.open_parts.pop(event["content_index"])
        else:
            assert kind.startswith(f"{_TEXT[part.type]}."), f"{kind}: in a part of {part.type}"
            assert not part.text_done, f"{kind}: after its done"
            if kind.endswith(".delta"):
                part.text += event["delta"]
            else:
                assert _text(event) == part.text, f"{kind}: not what was streamed"
                part.text_done = True

    def _audio(self, kind: str, event: dict[str, Any], part: _Part) -> None:
        assert part.type == "audio", f"{kind}: in a part of text"
        assert not part.audio_done, f"{kind}: after its done"
        if kind == "response.output_audio.done":
            part.audio_done = True
            return
        audio = base64.b64decode(event["delta"], validate=True)
        assert audio, f"{kind}: empty"
        assert len(audio) % self._sample_bytes == 0, f"{kind}: {len(audio)} bytes end within a sample"


def _arguments(kind: str, event: dict[str, Any], opened: _Item) -> None:
    assert opened.item["type"] == "function_call", f"{kind}: of a message"
    assert event["call_id"] == opened.item["call_id"], f"{kind}: another call_id"
    assert not opened.arguments_done, f"{kind}: after arguments.done"
    if kind.endswith(".delta"):
        opened.arguments += event["delta"]
        return
    assert (event["name"], event["arguments"]) == (opened.item["name"], opened.arguments), f"{kind}: not what was streamed"
    opened.arguments_done = True


def _named(item: dict[str, Any]) -> tuple[Any, ...]:
    return item["id"], item["type"], item.get("call_id"), item.get("name")


def _text(part: dict[str, Any]) -> str:
    text: str = part.get("text", part.get("transcript")) or ""
    return text
