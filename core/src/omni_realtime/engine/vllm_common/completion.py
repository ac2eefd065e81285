"""The text side of a generation: vLLM's completions as deltas."""

from __future__ import annotations

from collections.abc import Sequence

from omni_realtime.chat import ChatDelta, FinishReason, Usage
from omni_realtime.engine.hidden_text import HiddenText
from omni_realtime.engine.port import EngineError
from omni_realtime.engine.vllm_common.rendering import Rendered, tokens_before
from omni_realtime.engine.vllm_common.tools import ToolCalls


class GenerationFailedError(Exception):
    """An output ended with the finish reason ``error``: all that vLLM says where, for instance, its caches of audio have drifted apart."""


class Completion:
    """Reads the outputs of the text stage and knows, once it has ended, how and at what cost."""

    def __init__(self, rendered: Rendered, hidden: tuple[str, ...], tools: ToolCalls | None) -> None:
        self._rendered = rendered
        self._hidden = HiddenText(hidden)
        self._tools = tools
        self._finish: str | None = None
        self._tokens = 0
        self._cached = 0
        self._called = False
        self.output_audio_tokens = 0

    @property
    def silences(self) -> bool:
        """Whether audio is to be dropped from here on: what the model now speaks is the markup of a call."""
        return self._tools is not None and self._tools.begun

    def read(self, text: str, token_ids: Sequence[int], finish_reason: str | None, cached_tokens: int | None) -> list[ChatDelta]:
        """The deltas of one output.

        Raises:
            GenerationFailedError: if it says that the generation failed.
        """
        self._cached = max(self._cached, cached_tokens or 0)
        self._finish = finish_reason or self._finish
        if finish_reason == "abort":
            # What an abort ends with repeats what has been sent.
            return []
        if finish_reason == "error":
            raise GenerationFailedError
        self._tokens += len(token_ids)
        text = self._hidden.read(text)
        if finish_reason is not None:
            text += self._hidden.end()
        deltas = self._words(text, token_ids, finish_reason)
        self._called = self._called or any(delta.tool_call for delta in deltas)
        return deltas

    def end(self) -> ChatDelta:
        """The last delta: how it ended, and the usage.

        Raises:
            EngineError: if it never ended.
        """
        return ChatDelta(finish_reason=self._finish_reason(), usage=self._usage())

    def _words(self, text: str, token_ids: Sequence[int], finish_reason: str | None) -> list[ChatDelta]:
        if self._tools is None:
            return [ChatDelta(text=text)] if text else []
        deltas = self._tools.read(text, token_ids, finished=finish_reason is not None)
        return deltas if finish_reason is None else deltas + self._tools.end(stopped=finish_reason == "stop")

    def _finish_reason(self) -> FinishReason:
        match self._finish:
            case "stop":
                return "tool_calls" if self._called else "stop"
            case "length" | "abort" as reason:
                return reason
        raise EngineError("The engine ended this response without a reason.")

    def _usage(self) -> Usage:
        rendered, cached = self._rendered, self._cached
        audio, cached_audio = (tokens_before(rendered.audio_spans, end) for end in (rendered.tokens, cached))
        image, cached_image = (tokens_before(rendered.image_spans, end) for end in (rendered.tokens, cached))
        return Usage(
            input_text_tokens=rendered.tokens - audio - image,
            input_audio_tokens=audio,
            input_image_tokens=image,
            cached_text_tokens=cached - cached_audio - cached_image,
            cached_audio_tokens=cached_audio,
            cached_image_tokens=cached_image,
            output_text_tokens=self._tokens,
            output_audio_tokens=self.output_audio_tokens,
        )
