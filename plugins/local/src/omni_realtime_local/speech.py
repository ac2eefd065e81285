"""Speech beside text: sentences are spoken while the rest of the reply is still being written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from omni_realtime.chat import ChatDelta
from omni_realtime_local.sentences import SentenceSplitter
from omni_realtime_local.tts import PiperSpeaker

Emit = Callable[[ChatDelta], None]
_Sentences = asyncio.Queue[str | None]


async def write(written: AsyncGenerator[ChatDelta, None], emit: Emit) -> ChatDelta:
    """Emit every delta of a reply but the last, and return that."""
    last = ChatDelta(finish_reason="stop")
    async with contextlib.aclosing(written) as deltas:
        async for delta in deltas:
            if delta.finish_reason is None:
                emit(delta)
            else:
                last = delta
    return last


async def write_and_speak(written: AsyncGenerator[ChatDelta, None], speaker: PiperSpeaker, emit: Emit) -> ChatDelta:
    """Like :func:`write`, and emit the audio of the text as well; it returns when all is spoken.

    Raises:
        EngineError: if writing or speaking fails; the other then stops.
    """
    splitter = SentenceSplitter()
    sentences: _Sentences = asyncio.Queue()

    def take(delta: ChatDelta) -> None:
        emit(delta)
        for sentence in splitter.feed(delta.text):
            sentences.put_nowait(sentence)

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_speak(sentences, speaker, emit))
            last = await write(written, take)
            for sentence in (*splitter.finish(), None):
                sentences.put_nowait(sentence)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return last


async def _speak(sentences: _Sentences, speaker: PiperSpeaker, emit: Emit) -> None:
    spoken = ""
    while (sentence := await sentences.get()) is not None:
        spoken = f"{spoken} {sentence}".lstrip()
        async with contextlib.aclosing(speaker.speak(sentence)) as chunks:
            async for samples in chunks:
                emit(ChatDelta(audio=samples, rate=speaker.rate, spoken=spoken))
                spoken = ""
