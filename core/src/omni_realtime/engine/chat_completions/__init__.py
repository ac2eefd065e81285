"""The engine behind an OpenAI-compatible server or router, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from omni_realtime.engine.chat_completions.engine import ChatCompletionsEngine
from omni_realtime.engine.chat_completions.settings import ChatCompletionsSettings

__all__ = ["ChatCompletionsEngine", "ChatCompletionsSettings", "make_engine", "read_settings"]


def read_settings(section: Mapping[str, Any]) -> ChatCompletionsSettings:
    """Check ``settings.engine``, the environment that it names, and that the HTTP client is installed.

    Raises:
        pydantic.ValidationError: if something is wrong.
    """
    return ChatCompletionsSettings.model_validate(dict(section))


def make_engine(settings: ChatCompletionsSettings, hook: pluggy.HookRelay) -> ChatCompletionsEngine:  # noqa: ARG001 - the stages are the server's
    """Make the engine, without connecting it."""
    return ChatCompletionsEngine(settings)
