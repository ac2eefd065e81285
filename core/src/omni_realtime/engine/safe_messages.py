"""Messages made safe for a model: no mark of its template in what was written, and no audio that is too short for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omni_realtime.chat import AudioPart, ChatMessage, ContentPart, TextPart, ToolCall

SHORTEST_S = 0.1
"""Seconds of the shortest audio; of less, audio encoders make no token at all, or fail."""


def safe_message(message: ChatMessage, marks: tuple[str, ...]) -> ChatMessage:
    """The message with its marks broken and its short audio followed by silence.

    Args:
        message: of a conversation, or the instructions.
        marks: what begins a mark of the model's template, such as ``<|``.
    """
    return replace(
        message,
        content=tuple(_part(part, marks) for part in message.content),
        tool_calls=tuple(_call(call, marks) for call in message.tool_calls),
    )


def long_enough(part: AudioPart) -> AudioPart:
    """The audio itself, or followed by silence up to the shortest that a model takes."""
    missing = int(SHORTEST_S * part.rate) - len(part.samples)
    if missing <= 0:
        return part
    return replace(part, samples=np.pad(part.samples, (0, missing)), key=f"{part.key}-padded")


def plain_text(text: str, marks: tuple[str, ...]) -> str:
    """The text in which no mark is one: a space stands behind its first character."""
    for mark in marks:
        text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text


def _part(part: ContentPart, marks: tuple[str, ...]) -> ContentPart:
    match part:
        case TextPart():
            return TextPart(text=plain_text(part.text, marks))
        case AudioPart():
            return long_enough(part)
    return part


def _call(call: ToolCall, marks: tuple[str, ...]) -> ToolCall:
    return replace(call, arguments=plain_text(call.arguments, marks))
