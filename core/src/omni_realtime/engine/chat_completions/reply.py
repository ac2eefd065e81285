"""Chunks of the chat API in, deltas of the port out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import get_args

from pydantic import ValidationError

from omni_realtime.chat import ChatDelta, FinishReason, GenerateRequest, ToolCallDelta, Usage
from omni_realtime.engine.chat_completions.audio import AudioReader
from omni_realtime.engine.chat_completions.chunks import Choice, Chunk, ToolCallPiece
from omni_realtime.engine.chat_completions.failures import stream_failure
from omni_realtime.engine.chat_completions.usage import read_usage
from omni_realtime.engine.hidden_text import HiddenText
from omni_realtime.engine.port import EngineError

_log = logging.getLogger(__name__)


class ReplyReader:
    """Reads one answer.

    Once a tool call has begun, audio is left out: an omni model speaks the call's markup.
    """

    def __init__(self, request: GenerateRequest) -> None:
        self.finish_reason: FinishReason | None = None
        self._prompt = request.prompt
        self._wants_audio = "audio" in request.modalities
        self._text = HiddenText(request.prompt.hidden_text)
        self._audio = AudioReader()
        self._calls = False
        self._usage: Usage | None = None

    def read(self, data: bytes) -> Iterator[ChatDelta]:
        """What one event says.

        Raises:
            EngineError: if the server failed, or the event is no chunk of an answer.
        """
        try:
            chunk = Chunk.model_validate_json(data)
        except ValidationError:
            raise EngineError("The model server sent a chunk that is not of the chat completions API.") from None
        if chunk.error is not None:
            raise stream_failure(chunk.error, self._prompt)
        if chunk.usage is not None:
            self._usage = read_usage(chunk.usage)
        for choice in chunk.choices:
            if choice.index == 0:
                yield from self._choice(choice, is_audio=chunk.modality == "audio")

    def end(self) -> ChatDelta:
        """The last delta, once the stream has ended.

        Raises:
            EngineError: if it ended too early.
        """
        if self.finish_reason is None:
            raise EngineError("The connection to the model server ended in the middle of an answer.", code="engine_unavailable")
        return ChatDelta(text=self._text.end(), finish_reason=self.finish_reason, usage=self._usage)

    def _choice(self, choice: Choice, *, is_audio: bool) -> Iterator[ChatDelta]:
        delta = choice.delta
        if is_audio:
            yield from self._sound(delta.content, choice)
        else:
            yield from self._words(delta.content)
        yield from self._words(delta.refusal)
        if delta.audio is not None:
            yield from self._words(delta.audio.transcript)
            yield from self._sound(delta.audio.data, choice)
        for piece in delta.tool_calls or ():
            yield from self._call(piece)
        if choice.finish_reason is not None:
            self.finish_reason = _finish_reason(choice.finish_reason)

    def _words(self, text: str | None) -> Iterator[ChatDelta]:
        if text and (shown := self._text.read(text)):
            yield ChatDelta(text=shown)

    def _sound(self, data: str | None, choice: Choice) -> Iterator[ChatDelta]:
        if data and self._wants_audio and not self._calls:
            samples, rate = self._audio.read(data, choice.audio_metadata)
            if len(samples):
                yield ChatDelta(audio=samples, rate=rate)

    def _call(self, piece: ToolCallPiece) -> Iterator[ChatDelta]:
        if not self._calls and (held := self._text.end()):
            yield ChatDelta(text=held)
        self._calls = True
        function = piece.function
        yield ChatDelta(
            tool_call=ToolCallDelta(
                index=piece.index, call_id=piece.id or None, name=function.name or None, arguments=function.arguments or ""
            )
        )


def _finish_reason(reason: str) -> FinishReason:
    if reason in {"abort", "error"}:
        raise EngineError("The model server stopped in the middle of an answer.")
    known: tuple[FinishReason, ...] = get_args(FinishReason)
    for finish_reason in known:
        if finish_reason == reason:
            return finish_reason
    _log.warning("an answer ended with the unknown finish reason %.40r, taken as stop", reason)
    return "stop"
