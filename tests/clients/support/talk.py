"""A session as its driver follows it: events go out through the client, and every server event that the client hands on comes in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from driving import Event, provocations

WAIT_S = 60.0


class ConnectionClosed(Exception):  # noqa: N818 - what has happened
    """There will be no more events."""


class Talk:
    """Remembers the server's events.

    Args:
        send: sends an event, or a frame as it is (``{"raw": text}``, ``{"binary": text}``), through the client.
        speak: sends PCM16 at 24 kHz through the client.

    Attributes:
        events: every server event so far.
        taken: how many of them the driver has looked at.
        tolerated: codes of errors that this client brings about and ignores.
        surfaced: the code of every error that the client told its user of, in its own way.
        reading: while it is not set, a reader that heeds it takes nothing from the socket.
    """

    tolerated: frozenset[str] = frozenset()

    def __init__(self, send: Callable[[Event], Awaitable[None]], speak: Callable[[bytes], Awaitable[None]]) -> None:
        self.send = send
        self.speak = speak
        self.events: list[Event] = []
        self.taken = 0
        self.reading = asyncio.Event()
        self.reading.set()
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def surfaced(self) -> list[str | None]:
        return [event["error"]["code"] for event in self.events if event["type"] == "error"]

    def add(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    def can_send(self, events: list[Event]) -> bool:
        """Whether the client has a way to send these."""
        return True

    def end(self) -> None:
        """The connection is closed."""
        self._ended = True
        self._changed.set()

    async def until(self, *kinds: str, seconds: float = WAIT_S) -> list[Event]:
        """Take events until each of these kinds has come."""
        taken, missing = [], set(kinds)
        try:
            async with asyncio.timeout(seconds):
                while missing:
                    event = await self._next()
                    assert event["type"] != "error" or "error" in kinds or event["error"]["code"] in self.tolerated, event
                    taken.append(event)
                    missing.discard(event["type"])
        except TimeoutError:
            raise AssertionError(f"no {missing} came; the last events were {[str(event)[:300] for event in self.events[-3:]]}") from None
        return taken

    async def rest(self) -> list[Event]:
        """Take events until the server closes."""
        taken = []
        async with asyncio.timeout(WAIT_S):
            while self.taken < len(self.events) or not self._ended:
                if self.taken < len(self.events):
                    taken.append(await self._next())
                else:
                    self._changed.clear()
                    await self._changed.wait()
        return taken

    async def configure(self, **session: Any) -> None:
        """Greet, and change the session."""
        await self.until("session.created")
        await self.send({"type": "session.update", "session": {"type": "realtime", **session}})
        await self.until("session.updated")

    async def say(self, text: str) -> str:
        """Hold a turn in writing."""
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self.send({"type": "conversation.item.create", "item": item})
        await self.send({"type": "response.create", "response": {"output_modalities": ["text"]}})
        return written((await self.until("response.done"))[-1])

    async def _next(self) -> Event:
        while self.taken == len(self.events):
            if self._ended:
                raise ConnectionClosed(f"the connection was closed after {[event['type'] for event in self.events[-5:]]}")
            self._changed.clear()
            await self._changed.wait()
        self.taken += 1
        return self.events[self.taken - 1]


_numbers = itertools.count(1)


async def provoke_all(talk: Talk) -> dict[str, Any]:
    """Bring about every error that leaves the session alive, and hold a turn after each; what came, by name."""
    await talk.send({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": None}}}})
    await talk.until("session.updated")
    answer = await _spoken_answer(talk)
    seen = {}
    for each in provocations():
        if talk.can_send(each["send"]):
            seen[each["name"]] = await provoke(talk, each, answer)
            seen[each["name"]]["turn"] = await recover(talk, each)
    return seen


async def _spoken_answer(talk: Talk) -> str:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
    await talk.send({"type": "conversation.item.create", "item": item})
    await talk.send({"type": "response.create"})
    done = (await talk.until("response.done"))[-1]
    item_id: str = done["response"]["output"][0]["id"]
    return item_id


async def provoke(talk: Talk, provocation: dict[str, Any], answer: str) -> dict[str, Any]:
    """Bring about an error, and tell of it."""
    told, event_ids = len(talk.surfaced), []
    for event in provocation["send"]:
        known = {key: answer if value == "$answer" else value for key, value in event.items()}
        if "type" in known:
            event_ids.append(known.setdefault("event_id", f"event_{next(_numbers)}"))
        await talk.send(known)
    came = await talk.until(provocation["in"])
    return {
        "code": code_of(came[-1]),
        "names_event": came[-1].get("error", {}).get("event_id") in event_ids,
        "errors": sum(event["type"] == "error" for event in came),
        "surfaced": talk.surfaced[told:],
    }


async def recover(talk: Talk, provocation: dict[str, Any]) -> str:
    """Hold a turn after an error, with the session as it was before."""
    await _settle(talk)
    for event in provocation["restore"]:
        await talk.send(event)
        await talk.until("session.updated" if event["type"] == "session.update" else "conversation.item.deleted")
    return await talk.say("Hello.")


async def _settle(talk: Talk) -> None:
    """Cancel every response that still runs."""
    responses = {event["response"]["id"] for event in talk.events if event["type"] == "response.created"}
    for response_id in responses - {event["response"]["id"] for event in talk.events if event["type"] == "response.done"}:
        await talk.send({"type": "response.cancel", "response_id": response_id})
        await talk.until("response.done")


def code_of(event: Event) -> str | None:
    """The code of an error, of a failed response or of a failed transcription."""
    error = event["response"]["status_details"]["error"] if event["type"] == "response.done" else event["error"]
    code: str | None = error.get("code")
    return code


def written(done: Event) -> str:
    """The text of a ``response.done``."""
    response = done["response"]
    return " ".join(part.get("text") or part.get("transcript") or "" for item in response["output"] for part in item.get("content", ()))
