"""The engine over AsyncOmni."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pluggy

from omni_realtime.chat import ChatDelta, ChatPrompt, GenerateRequest
from omni_realtime.engine.vllm_omni.settings import VllmOmniSettings


class VllmOmniEngine:
    """AsyncOmni in process."""

    def __init__(self, settings: VllmOmniSettings, hook: pluggy.HookRelay) -> None:
        self._settings = settings
        self._hook = hook

    @property
    def context_window(self) -> int:
        raise NotImplementedError

    async def start(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def check_health(self) -> None:
        raise NotImplementedError

    async def count_tokens(self, prompt: ChatPrompt) -> int:
        raise NotImplementedError

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        raise NotImplementedError
        yield

    async def abort(self, request_id: str) -> None:
        raise NotImplementedError
