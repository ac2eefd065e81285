"""Follows what a server says on one connection, and fails at the first frame that breaks the API's schema or its order."""

from __future__ import annotations

from typing import Any

from omni_realtime.testing.wire import check_server_event

LARGEST_FRAME = 1024 * 1024
"""Some clients close a connection over a larger frame."""

_CONTENT_EVENTS = frozenset({
    "response.output_text.delta",
    "response.output_text.done",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.delta",
    "response.output_audio_transcript.done",
})


class _Response:
    """One response between ``response.created`` and ``response.done``."""

    def __init__(self, *, out_of_band: bool) -> None:
        self.out_of_band = out_of_band
        self.open_items: set[str] = set()
        self.open_parts: set[tuple[str, int]] = set()


class WireLog:
    """The events of one connection so far, each of them checked.

    The order it asserts: ``session.created`` first; event ids unique; a response begins once and ends once, with nothing of it before or
    after; items and parts are opened before what belongs to them and closed before the response ends; one response at a time in the
    conversation; ``previous_item_id`` names an item that was announced.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._event_ids: set[str] = set()
        self._items: set[str] = set()
        self._running: dict[str, _Response] = {}
        self._done: set[str] = set()

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the responses without a ``response.done``."""
        return tuple(self._running)

    def types(self) -> list[str]:
        """Return the types of the events, in order."""
        return [event["type"] for event in self.events]

    def add(self, frame: str) -> dict[str, Any]:
        """Check the next frame and return its event.

        Raises:
            AssertionError: the frame breaks the order.
            ValueError: the frame breaks the schema.
        """
        event = check_server_event(frame)
        kind = event["type"]
        assert self.events or kind == "session.created", f"{kind} comes before session.created"
        assert event["event_id"] not in self._event_ids, f"{kind} repeats an event id"
        assert len(frame) < LARGEST_FRAME, f"{kind} is a frame of {len(frame)} characters"
        self.events.append(event)
        self._event_ids.add(event["event_id"])
        if kind == "conversation.item.added":
            self._item_added(event)
        elif kind.startswith("response."):
            self._of_response(kind, event)
        return event

    def _item_added(self, event: dict[str, Any]) -> None:
        previous = event.get("previous_item_id")
        assert previous is None or previous in self._items, f"{event['item']['id']} follows {previous}, which was never added"
        self._items.add(event["item"]["id"])

    def _of_response(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "response.created":
            self._begin(event["response"])
            return
        response_id = event["response"]["id"] if kind == "response.done" else event["response_id"]
        assert response_id not in self._done, f"{kind} after the response.done of {response_id}"
        assert response_id in self._running, f"{kind} before the response.created of {response_id}"
        response = self._running[response_id]
        if kind == "response.done":
            self._end(response_id, response)
        elif kind == "response.output_item.added":
            response.open_items.add(event["item"]["id"])
        elif kind == "response.output_item.done":
            response.open_items.remove(event["item"]["id"])
        else:
            self._of_item(kind, event, response)

    def _begin(self, body: dict[str, Any]) -> None:
        response_id, out_of_band = body["id"], body["conversation_id"] is None
        assert response_id not in self._running | dict.fromkeys(self._done), f"{response_id} begins twice"
        in_conversation = [each for each, response in self._running.items() if not response.out_of_band]
        assert out_of_band or not in_conversation, f"{response_id} begins while {in_conversation} runs"
        self._running[response_id] = _Response(out_of_band=out_of_band)

    def _end(self, response_id: str, response: _Response) -> None:
        assert not response.open_items, f"{response_id} ends with open items: {response.open_items}"
        assert not response.open_parts, f"{response_id} ends with open parts: {response.open_parts}"
        del self._running[response_id]
        self._done.add(response_id)

    def _of_item(self, kind: str, event: dict[str, Any], response: _Response) -> None:
        item_id = event["item_id"]
        assert item_id in response.open_items, f"{kind} outside of its item {item_id}"
        part = (item_id, event.get("content_index", 0))
        if kind == "response.content_part.added":
            response.open_parts.add(part)
        elif kind == "response.content_part.done":
            response.open_parts.remove(part)
        elif kind in _CONTENT_EVENTS:
            assert part in response.open_parts, f"{kind} outside of its part {part}"
