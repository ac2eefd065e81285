"""An upper bound of a prompt's tokens, for servers that cannot count them.

A byte-level vocabulary, which is what today's models have, has no token of less than one byte. So the bytes of everything that is written
in a prompt bound its tokens, some three to four times too high for English: a conversation is truncated early, and never too late. A
deployment that cares runs a server with ``/tokenize``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

import orjson

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, ImagePart

TEMPLATE = 256
"""What a chat template writes once, such as how to call functions."""
MESSAGE = 24
"""What it writes around a message or a part of it: roles, tags."""


def most_tokens(prompt: ChatPrompt, *, audio_tokens_per_second: float, image_tokens: int) -> int:
    """The most tokens that the prompt can have.

    Args:
        prompt: as it will be sent.
        audio_tokens_per_second: the most that the model's encoder makes of a second of audio.
        image_tokens: the most that it makes of an image.
    """
    messages = sum(_message(message, audio_tokens_per_second, image_tokens) for message in prompt.messages)
    return TEMPLATE + messages + sum(MESSAGE + len(orjson.dumps(asdict(tool))) for tool in prompt.tools)


def _message(message: ChatMessage, audio_tokens_per_second: float, image_tokens: int) -> int:
    return (
        MESSAGE
        + sum(_parts(message, audio_tokens_per_second, image_tokens))
        + sum(MESSAGE + len(f"{call.name}{call.arguments}".encode()) for call in message.tool_calls)
    )


def _parts(message: ChatMessage, audio_tokens_per_second: float, image_tokens: int) -> Iterator[int]:
    for part in message.content:
        if isinstance(part, AudioPart):
            yield MESSAGE + math.ceil(len(part.samples) / part.rate * audio_tokens_per_second)
        elif isinstance(part, ImagePart):
            yield MESSAGE + image_tokens
        else:
            yield MESSAGE + len(part.text.encode())
