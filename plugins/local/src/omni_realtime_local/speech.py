"""Speech beside text: sentences are spoken while the rest of the reply is still being written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import replace

from omni_realtime.chat import ChatDelta

from omni_realtime_local.sentences import SentenceSplitter
from omni_realtime_local.tts import PiperSpeaker

AHEAD = 64
"""Deltas that may wait for the consumer before the writing pauses."""


async def with_speech(written: AsyncGenerator[ChatDelta, None], speaker: PiperSpeaker, rate: int) -> AsyncGenerator[ChatDelta, None]:
    """Pass the deltas of a reply on and add the audio of its text; the last delta comes when all is spoken.

    Args:
        written: the reply; this generator closes it.
        speaker: the voice.
        rate: the voice's rate in Hz.
    """
    deltas: asyncio.Queue[ChatDelta | BaseException | None] = asyncio.Queue(AHEAD)
    task = asyncio.create_task(_run(written, speaker, rate, deltas))
    try:
        while (delta := await deltas.get()) is not None:
            if isinstance(delta, BaseException):
                raise delta
            yield delta
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
