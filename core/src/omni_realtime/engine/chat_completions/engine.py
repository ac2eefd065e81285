"""The engine port over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from omni_realtime.chat import ChatDelta, ChatPrompt, GenerateRequest
from omni_realtime.engine.chat_completions.call import Call, StoppedError
from omni_realtime.engine.chat_completions.reply import ReplyReader
from omni_realtime.engine.chat_completions.request import encode_request
from omni_realtime.engine.chat_completions.settings import ChatCompletionsSettings
from omni_realtime.engine.chat_completions.tokens import most_tokens
from omni_realtime.engine.port import EngineError

if TYPE_CHECKING:
    from omni_realtime.engine.chat_completions.client import Client

_log = logging.getLogger(__name__)


class ChatCompletionsEngine:
    """Any OpenAI-compatible server, or a router in front of many.

    The server may go and come back, so this engine is never dead for good: while there is no server, generations fail with the code
    ``engine_unavailable``, and readiness stays as it is.
    """

    def __init__(self, settings: ChatCompletionsSettings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._context_window = settings.context_window or 0
        self._tokenizes = False
        self._calls: dict[str, Call] = {}
        self._reachable = True

    @property
    def context_window(self) -> int:
        """Tokens that a prompt and its output share; known once started."""
        return self._context_window

    async def start(self) -> None:
        """Wait until the server is up and has the model.

        Raises:
            EngineError: if it does not come up, or cannot serve what the settings say.
        """
        from omni_realtime.engine.chat_completions import discovery  # noqa: PLC0415 - these need httpx, an extra of the distribution
        from omni_realtime.engine.chat_completions.client import Client  # noqa: PLC0415

        client = Client(self._settings)
        try:
            models = await discovery.wait_for_models(client, self._settings)
            self._context_window = discovery.find_context_window(models, self._settings)
            self._tokenizes = await discovery.can_tokenize(client, self._settings)
        except BaseException:
            await client.close()
            raise
        self._client = client

    async def close(self) -> None:
        """End every generation and close the connections."""
        client, self._client = self._client, None
        await asyncio.gather(*(call.stop() for call in self._calls.values()))
        if client is not None:
            await client.close()

    async def check_health(self) -> None:
        """Tell the log when the server goes and comes; never raise, since it may come back."""
        if self._client is None:
            return
        reachable = await self._client.is_healthy()
        if reachable != self._reachable:
            self._reachable = reachable
            _log.warning("the model server at %s is %s", self._settings.root_url, "back" if reachable else "not healthy")

    async def count_tokens(self, prompt: ChatPrompt) -> int:
        """The length of the prompt as the server renders it, or an upper bound where the server does not count.

        Raises:
            EngineError: if the server fails.
        """
        client = self._started()
        if not self._tokenizes:
            settings = self._settings
            return most_tokens(prompt, audio_tokens_per_second=settings.audio_tokens_per_second, image_tokens=settings.image_tokens)
        from omni_realtime.engine.chat_completions.discovery import count_tokens  # noqa: PLC0415

        return await count_tokens(client, self._settings, prompt)

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the answer; see :meth:`omni_realtime.engine.port.Engine.generate`."""
        client = self._started()
        if request.request_id in self._calls:
            raise EngineError("A generation with this request id is running.")
        call = self._calls[request.request_id] = Call()
        try:
            async with aclosing(self._deltas(client, request, call)) as deltas:
                async for delta in deltas:
                    yield delta
        except StoppedError:
            yield ChatDelta(finish_reason="abort")
        finally:
            del self._calls[request.request_id]

    async def abort(self, request_id: str) -> None:
        """Close the connection of a generation, which frees the server's work; the generation ends with ``abort``."""
        if call := self._calls.get(request_id):
            await call.stop()

    async def _deltas(self, client: Client, request: GenerateRequest, call: Call) -> AsyncGenerator[ChatDelta, None]:
        body = await call.wait(partial(asyncio.to_thread, encode_request, request, self._settings), None)
        reader = ReplyReader(request)
        url = f"{self._settings.base_url}/chat/completions"
        try:
            async with aclosing(client.stream(url, body, request.prompt, call)) as events:
                async for data in events:
                    for delta in reader.read(data):
                        yield delta
        except EngineError:
            if reader.finish_reason is None:  # else the answer is whole, whatever became of the connection
                raise
        yield reader.end()

    def _started(self) -> Client:
        if self._client is None:
            raise EngineError("The connection to the model server is closed.", code="engine_unavailable")
        return self._client
