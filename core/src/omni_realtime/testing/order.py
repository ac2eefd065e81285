"""Checks the order of a server's events, from the events alone, as a client sees them."""

from __future__ import annotations

from typing import Any

from omni_realtime.testing.response_order import ResponseOrder


class OrderChecker:
    """Follows the events of one connection and asserts the order that clients rely on.

    It keeps what a client can know: the items of the conversation in their order, built from ``previous_item_id`` alone, and what each
    response has open.

    Attributes:
        items: the ids of the conversation's items, in order.
    """

    def __init__(self) -> None:
        self.items: list[str] = []
        self._event_ids: set[str] = set()
        self._done_items: set[str] = set()
        self._transcribed: set[str] = set()
        self._transcripts: dict[str, str] = {}
        self._responses: dict[str, ResponseOrder] = {}
        self._ended: set[str] = set()
        self._announced: str | None = None
        self._committed: str | None = None
        self._handlers = {
            "conversation.item.added": self._item_added,
            "conversation.item.deleted": self._item_deleted,
            "conversation.item.done": self._item_done,
            "conversation.item.input_audio_transcription.completed": self._transcription_ended,
            "conversation.item.input_audio_transcription.delta": self._transcription_delta,
            "conversation.item.input_audio_transcription.failed": self._transcription_ended,
            "conversation.item.retrieved": self._of_item,
            "conversation.item.truncated": self._of_item,
            "input_audio_buffer.cleared": self._buffer_cleared,
            "input_audio_buffer.committed": self._buffer_committed,
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": self._speech_stopped,
            "session.updated": self._session_updated,
        }

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the responses between their ``created`` and their ``done``."""
        return tuple(self._responses)

    def check(self, event: dict[str, Any]) -> None:
        """Take the next event.

        Raises:
            AssertionError: it is out of order; the message says why.
        """
        kind, event_id = event["type"], event["event_id"]
        assert (kind == "session.created") == (not self._event_ids), f"{kind}: session.created comes first, and once"
        assert event_id not in self._event_ids, f"{kind}: the event id {event_id} twice"
        self._event_ids.add(event_id)
        assert self._committed is None or kind == "conversation.item.added", f"{kind}: between committed and item.added"
        if kind.startswith("response."):
            self._of_response(kind, event)
        elif handle := self._handlers.get(kind):
            handle(event)

    def _of_response(self, kind: str, event: dict[str, Any]) -> None:
        response_id = event["response"]["id"] if "response" in event else event["response_id"]
        assert response_id not in self._ended, f"{kind}: after the response.done of {response_id}"
        assert (response_id not in self._responses) == (kind == "response.created"), f"{kind}: response.created comes first, and once"
        if kind == "response.created":
            begun = ResponseOrder(event["response"])
            others = [other for other, response in self._responses.items() if response.in_conversation]
            assert not begun.in_conversation or not others, f"{kind}: {others[0]} writes to the conversation"
            self._responses[response_id] = begun
        elif kind == "response.done":
            self._responses.pop(response_id).end(event["response"])
            self._ended.add(response_id)
        else:
            self._responses[response_id].check(kind, event)

    def _item_added(self, event: dict[str, Any]) -> None:
        item, previous = event["item"], event["previous_item_id"]
        assert item["id"] not in self.items, f"item.added: {item['id']} twice"
        assert previous is None or previous in self.items, f"item.added: {item['id']} behind {previous}, which is not there"
        assert self._committed in {None, item["id"]}, f"item.added: {item['id']}, but {self._committed} was committed"
        self._committed = None
        assert item["id"] != self._announced, f"item.added: the speech {item['id']} was not committed"
        if item["status"] == "in_progress":
            assert previous == self._last_id, f"item.added: the answer {item['id']} is not behind the last item"
            writing = [response for response in self._responses.values() if response.in_conversation]
            assert writing, f"item.added: {item['id']} in progress without a response"
            writing[0].item_in_conversation(item["id"])
        self.items.insert(0 if previous is None else self.items.index(previous) + 1, item["id"])

    def _item_done(self, event: dict[str, Any]) -> None:
        item_id = event["item"]["id"]
        assert item_id in self.items, f"item.done: {item_id} is not there"
        assert item_id not in self._done_items, f"item.done: {item_id} twice"
        at = self.items.index(item_id)
        assert event["previous_item_id"] == (self.items[at - 1] if at else None), f"item.done: not the predecessor of {item_id}"
        self._done_items.add(item_id)

    def _item_deleted(self, event: dict[str, Any]) -> None:
        self._of_item(event)
        self.items.remove(event["item_id"])
        self._done_items.discard(event["item_id"])
        self._transcribed.discard(event["item_id"])

    def _of_item(self, event: dict[str, Any]) -> None:
        item_id = event["item"]["id"] if "item" in event else event["item_id"]
        assert item_id in self.items, f"{event['type']}: {item_id} is not there"

    def _transcription_delta(self, event: dict[str, Any]) -> None:
        item_id = event["item_id"]
        self._of_item(event)
        assert item_id not in self._transcribed, f"{event['type']}: after the end of {item_id}"
        self._transcripts[item_id] = self._transcripts.get(item_id, "") + event["delta"]

    def _transcription_ended(self, event: dict[str, Any]) -> None:
        item_id = event["item_id"]
        self._of_item(event)
        assert item_id not in self._transcribed, f"{event['type']}: {item_id} twice"
        told = self._transcripts.pop(item_id, "")
        assert event.get("transcript", told) == told, f"{event['type']}: {item_id} is not the sum of its deltas"
        self._transcribed.add(item_id)

    def _speech_started(self, event: dict[str, Any]) -> None:
        assert self._announced is None, f"speech_started: the speech {self._announced} is not over"
        assert event["item_id"] not in self.items, f"speech_started: {event['item_id']} is there"
        self._announced = event["item_id"]

    def _speech_stopped(self, event: dict[str, Any]) -> None:
        assert event["item_id"] == self._announced, f"speech_stopped: {event['item_id']}, but {self._announced} was started"

    def _buffer_committed(self, event: dict[str, Any]) -> None:
        assert event["previous_item_id"] == self._last_id, "committed: not behind the last item"
        assert self._announced in {None, event["item_id"]}, f"committed: {event['item_id']}, but the speech {self._announced} is not over"
        self._announced, self._committed = None, event["item_id"]

    def _buffer_cleared(self, _event: dict[str, Any]) -> None:
        self._announced = None

    def _session_updated(self, event: dict[str, Any]) -> None:
        if event["session"]["audio"]["input"]["turn_detection"] is None:
            self._announced = None

    @property
    def _last_id(self) -> str | None:
        return self.items[-1] if self.items else None
