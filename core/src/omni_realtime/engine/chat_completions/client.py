"""The HTTP side: one pooled client, deadlines, bounded retries."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial

import httpx

from omni_realtime.chat import ChatPrompt
from omni_realtime.engine.chat_completions import affinity
from omni_realtime.engine.chat_completions.call import Call
from omni_realtime.engine.chat_completions.failures import refusal, unavailable
from omni_realtime.engine.chat_completions.settings import ChatCompletionsSettings
from omni_realtime.engine.chat_completions.sse import EventReader, EventTooLargeError
from omni_realtime.engine.port import EngineError

RETRIED = frozenset({429, 502, 503, 504})
BACKOFF_S = 0.2
"""Before the first retry, doubled for each further one, and shortened at random so that many responses do not come back at once."""
LONGEST_RETRY_AFTER_S = 10.0
"""A server that asks for more patience than a conversation has is not tried again."""
LARGEST_ERROR = 64 << 10
"""Bytes of an error's body that are read."""
NOT_FOUND = 404
DONE = b"[DONE]"
DRAIN_S = 0.5
"""For the end of the body after ``[DONE]``: only a connection that was read to its end can serve another request."""

_log = logging.getLogger(__name__)


class Client:
    """Requests to one server or router."""

    def __init__(self, settings: ChatCompletionsSettings) -> None:
        self._settings = settings
        headers = {"Accept-Encoding": "identity"}  # compression would hold events back
        if settings.api_key:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(None, connect=settings.timeouts.connect),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def get(self, url: str) -> httpx.Response:
        """One request, with no retries and little patience.

        Raises:
            httpx.RequestError: if there is no answer.
        """
        return await self._http.get(url, timeout=self._settings.timeouts.connect)

    async def is_healthy(self) -> bool:
        """Whether the server says so; a server without ``/health`` is asked for its models."""
        try:
            response = await self.get(f"{self._settings.root_url}/health")
            if response.status_code == NOT_FOUND:
                response = await self.get(f"{self._settings.base_url}/models")
        except httpx.RequestError:
            return False
        return response.is_success

    async def post(self, url: str, body: bytes, prompt: ChatPrompt) -> bytes:
        """The whole answer to a request.

        Raises:
            EngineError: if there is none, or it is no success.
        """
        call = Call()
        deadline = _now() + self._settings.timeouts.first_chunk
        async with self._answer(url, body, prompt, call, deadline) as response:
            return await call.wait(response.aread, deadline)

    async def stream(self, url: str, body: bytes, prompt: ChatPrompt, call: Call) -> AsyncGenerator[bytes, None]:
        """The data of each server-sent event of an answer; closing the generator closes the connection.

        Raises:
            EngineError: if there is no answer, it is no success, it stalls or breaks off.
            StoppedError: if the call is stopped.
        """
        deadline = _now() + self._settings.timeouts.first_chunk
        async with self._answer(url, body, prompt, call, deadline) as response:
            kind = response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                raise EngineError(f"The model server answered with {kind or 'an unknown type'} where a stream of events was asked for.")
            async for data in self._events(response, call, deadline):
                yield data

    async def _events(self, response: httpx.Response, call: Call, deadline: float) -> AsyncGenerator[bytes, None]:
        reader, pieces = EventReader(), response.aiter_bytes()
        while (piece := await call.wait(lambda: anext(pieces, None), deadline)) is not None:
            for data in reader.feed(piece):
                if data == DONE:
                    await _drain(pieces)
                    return
                yield data
                deadline = _now() + self._settings.timeouts.between_chunks

    @asynccontextmanager
    async def _answer(self, url: str, body: bytes, prompt: ChatPrompt, call: Call, deadline: float) -> AsyncIterator[httpx.Response]:
        try:
            call.response = response = await self._open(url, body, prompt, call, deadline)
            try:
                yield response
            finally:
                call.response = None
                await response.aclose()
        except TimeoutError:
            raise unavailable("took too long") from None
        except EventTooLargeError:
            raise EngineError("The model server sent a chunk that is too large.") from None
        except httpx.RequestError as error:
            raise unavailable("broke the connection") from error

    async def _open(self, url: str, body: bytes, prompt: ChatPrompt, call: Call, deadline: float) -> httpx.Response:
        headers = {"Content-Type": "application/json", affinity.HEADER: affinity.conversation_key(prompt)}
        for attempt in range(self._settings.retries + 1):
            delay: float | None = random.uniform(0.5, 1) * BACKOFF_S * 2**attempt  # noqa: S311 - not a secret
            request = self._http.build_request("POST", url, content=body, headers=headers)
            try:
                response = await call.wait(partial(self._http.send, request, stream=True), deadline)
            except httpx.TransportError as error:
                failure = unavailable("cannot be reached")
                failure.__cause__ = error
            else:
                if response.is_success:
                    return response
                failure = await _refusal(response, prompt, call, deadline)
                delay = _retry_after(response, delay)
            if attempt == self._settings.retries or delay is None or _now() + delay > deadline:
                raise failure
            _log.info("the model server will be asked again in %.1f s: %s", delay, failure.code)
            await call.wait(partial(asyncio.sleep, delay), deadline)
        raise AssertionError("the last attempt returns or raises")


async def _refusal(response: httpx.Response, prompt: ChatPrompt, call: Call, deadline: float) -> EngineError:
    body, pieces = b"", response.aiter_bytes()
    try:
        while len(body) < LARGEST_ERROR and (piece := await call.wait(lambda: anext(pieces, None), deadline)) is not None:
            body += piece
    finally:
        await response.aclose()
    return refusal(response.status_code, body, prompt)


def _retry_after(response: httpx.Response, backoff: float | None) -> float | None:
    if response.status_code not in RETRIED and not _is_routers(response):
        return None
    told = response.headers.get("retry-after", "").strip()
    if not told:
        return backoff
    seconds = _seconds(told)
    return seconds if seconds is not None and seconds <= LONGEST_RETRY_AFTER_S else None


def _is_routers(response: httpx.Response) -> bool:
    """Whether a 500 comes from what stands before the server: vllm-router answers so, in plain text, where it cannot reach one."""
    return response.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "json" not in response.headers.get("content-type", "")


def _seconds(told: str) -> float | None:
    """Seconds of a Retry-After header: a number or a date (RFC 9110, section 10.2.3)."""
    if told.isascii() and told.isdigit():
        return float(told)
    try:
        date = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max(0.0, (date - datetime.now(UTC)).total_seconds()) if date.tzinfo else None


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(DRAIN_S):
            async for _ in pieces:
                pass
    except (TimeoutError, httpx.RequestError):
        pass  # the answer is whole; the connection is just not used again


def _now() -> float:
    return asyncio.get_running_loop().time()
