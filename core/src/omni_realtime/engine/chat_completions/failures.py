"""What a server says when it fails, in words that a client may see."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from omni_realtime.chat import ChatPrompt, TextPart
from omni_realtime.engine.port import EngineError

LONGEST_MESSAGE = 300
QUOTE = 16
"""Characters in a row that a message may share with a prompt by chance."""

CONTEXT_PARAMS = frozenset({"input_text", "input_tokens"})
CONTEXT_WORDS = re.compile(r"context length|maximum model length|max_model_len|context window", re.IGNORECASE)

UNAVAILABLE = "engine_unavailable"


def unavailable(cause: str) -> EngineError:
    """The server cannot be reached, or is too slow; the next response may find it back."""
    return EngineError(f"The model server {cause}. Try again.", code=UNAVAILABLE)


def refusal(status: int, body: bytes, prompt: ChatPrompt | None) -> EngineError:
    """The failure behind an answer that is no success.

    Args:
        status: HTTP status.
        body: of the answer, whatever it is.
        prompt: that the server had been sent; words of it in the server's message keep that message from the client.
    """
    try:
        error = json.loads(body)
    except ValueError:
        error = None
    if isinstance(error, dict):
        error = error.get("error", error)
    return _failure(status, error, prompt)


def stream_failure(error: Any, prompt: ChatPrompt) -> EngineError:
    """The failure that a server reports as an event, after its answer had begun."""
    code = error.get("code") if isinstance(error, dict) else None
    return _failure(code if isinstance(code, int) else 500, error, prompt)


def _failure(status: int, error: Any, prompt: ChatPrompt | None) -> EngineError:
    fields = error if isinstance(error, dict) else {"message": error}
    message = fields.get("message")
    message = message if isinstance(message, str) else ""
    if _is_context_length(status, fields, message):
        return EngineError("The prompt is longer than the model's context.", code="context_length_exceeded")
    if status in {401, 403}:  # the message may quote the key
        return EngineError("The model server refuses the host's key.", code="engine_refused")
    if status == 429:  # noqa: PLR2004 - HTTP's own number
        return EngineError("The model server is too busy. Try again later.", code="rate_limit_exceeded")
    if status >= 500:  # noqa: PLR2004 - HTTP's own number; the message may hold paths
        return EngineError(f"The model server failed (HTTP {status}). Try again.", code=UNAVAILABLE)
    return EngineError(f"The model server refused the request (HTTP {status}){_told(message, prompt)}", code="engine_refused")


def _is_context_length(status: int, fields: dict[str, Any], message: str) -> bool:
    if fields.get("code") == "context_length_exceeded" or fields.get("param") in CONTEXT_PARAMS:
        return True
    return status == 400 and CONTEXT_WORDS.search(message) is not None  # noqa: PLR2004 - HTTP's own number


def _told(message: str, prompt: ChatPrompt | None) -> str:
    line = " ".join(message.split())[:LONGEST_MESSAGE]
    return f": {line}" if line and not _quotes(line, prompt) else "."


def _quotes(line: str, prompt: ChatPrompt | None) -> bool:
    texts = [" ".join(text.split()) for text in _texts(prompt)] if prompt else []
    if any(text and text in line for text in texts):
        return True
    windows = [line[start : start + QUOTE] for start in range(len(line) - QUOTE + 1)]
    return any(window in text for text in texts for window in windows)


def _texts(prompt: ChatPrompt) -> Iterator[str]:
    for message in prompt.messages:
        for part in message.content:
            if isinstance(part, TextPart):
                yield part.text
        for call in message.tool_calls:
            yield call.arguments
