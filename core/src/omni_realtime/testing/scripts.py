"""What a scripted engine says: a generation as a list of steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import TypeAlias

import numpy as np

from omni_realtime.chat import ChatDelta, GenerateRequest, Samples, ToolCallDelta, Usage

Step: TypeAlias = ChatDelta | float | asyncio.Event | Exception
"""One step of a generation: yield this delta, sleep so many seconds, wait for this event, or raise this exception."""

Script: TypeAlias = Iterable[Step] | Callable[[GenerateRequest], Iterable[Step]]
"""The steps of one generation, or what makes them of its request."""


def chunked(samples: Samples, sizes: Sequence[int]) -> list[Samples]:
    """Cut samples into chunks of these sizes, over and over; the last chunk may be shorter.

    Raises:
        ValueError: a size is not positive, or there is none.
    """
    if min(sizes, default=0) < 1:
        raise ValueError(f"The sizes of chunks are positive numbers, and not {list(sizes)}.")
    turns = cycle(sizes)
    chunks = []
    start = 0
    while start < len(samples):
        size = next(turns)
        chunks.append(samples[start : start + size])
        start += size
    return chunks


def tone(seconds: float, *, rate: int = 24000, hertz: float = 437.0, level: float = 0.3) -> Samples:
    """Make a sine that fits no usual chunk, so that a fault at a seam is heard."""
    time = np.arange(round(seconds * rate)) / rate
    return (level * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def text_reply(*pieces: str, usage: Usage | None = None) -> list[Step]:
    """Reply in text, one delta a piece."""
    return [*(ChatDelta(text=piece) for piece in pieces), ChatDelta(finish_reason="stop", usage=usage)]


def spoken_reply(
    text: str, samples: Samples, *, rate: int = 24000, sizes: Sequence[int] = (2400,), usage: Usage | None = None
) -> list[Step]:
    """Reply in audio and its transcript, the words spread over the chunks of these sizes."""
    chunks = chunked(samples, sizes)
    words = text.split(" ")
    pieces = [" ".join(part) for part in np.array_split(np.array(words, dtype=object), min(len(words), len(chunks)))]
    steps: list[Step] = []
    for index, chunk in enumerate(chunks):
        piece = "" if index >= len(pieces) else pieces[index] if index == 0 else f" {pieces[index]}"
        steps.append(ChatDelta(text=piece, spoken=piece, audio=chunk, rate=rate))
    return [*steps, ChatDelta(finish_reason="stop", usage=usage)]


def call_reply(name: str, *arguments: str, usage: Usage | None = None) -> list[Step]:
    """Call a tool, the arguments in these pieces."""
    first = ChatDelta(tool_call=ToolCallDelta(name=name))
    rest = [ChatDelta(tool_call=ToolCallDelta(arguments=piece)) for piece in arguments]
    return [first, *rest, ChatDelta(finish_reason="tool_calls", usage=usage)]
