"""The checks of what a server refuses, in terms that every client has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from driving import DEAF, EXPIRING_URL, HELLO, KEY, SCRIPTED, SCRIPTED_URL, SILENCE, Event, tone
from talk import Talk, code_of, provoke_all

Connect = Callable[..., AbstractAsyncContextManager[Talk]]
"""``connect(url, model, key, **session)`` opens a session that is ready to talk."""


@dataclass(frozen=True)
class ErrorChecks:
    """Errors leave the client as able to talk as before."""

    connect: Connect

    async def errors(self) -> Event:
        """The errors after which the session goes on."""
        async with self.connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
            return {"provoked": await provoke_all(talk)}

    async def session_ends(self) -> Event:
        """The errors after which the server closes; a new session talks as if nothing had been."""
        ended = {}
        async with self.connect(EXPIRING_URL, SCRIPTED, KEY) as talk:
            ended["session_expired"] = code_of((await talk.rest())[-1])
        async with self.connect(SCRIPTED_URL, DEAF, KEY) as talk:
            await talk.speak(tone(HELLO) + SILENCE)
            ended["server_error"] = code_of((await talk.rest())[-1])
        return {"ended": ended, "turn": await self._new_session()}

    async def refused_upgrades(self) -> Event:
        """The errors before a session; comes after ``session_ends``, which made a model that is not ready."""
        attempts = {"invalid_api_key": (SCRIPTED, "wrong"), "model_not_found": ("unknown", KEY), "model_not_ready": (DEAF, KEY)}
        refused = await asyncio.gather(*(self._refusal(model, key) for model, key in attempts.values()))
        return {"refused": dict(zip(attempts, refused, strict=True)), "turn": await self._new_session()}

    async def _refusal(self, model: str, key: str) -> str:
        try:
            async with self.connect(SCRIPTED_URL, model, key):
                return "connected"
        except Exception as error:  # noqa: BLE001 - each client has its own
            return str(error)

    async def _new_session(self) -> str:
        async with self.connect(SCRIPTED_URL, SCRIPTED, KEY) as talk:
            return await talk.say("Hello.")
