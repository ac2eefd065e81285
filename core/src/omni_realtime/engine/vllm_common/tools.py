"""Tool calls by vLLM's own parsers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from omni_realtime.chat import ChatDelta, ChatPrompt, ToolCallDelta
from omni_realtime.engine.chat_shape import tool_choice
from omni_realtime.engine.port import EngineError
from omni_realtime.engine.vllm_common.messages import tool_definitions


class ToolCalls:
    """One response's parser: text goes in, the words outside of calls and the pieces of calls come out."""

    def __init__(self, parser: type[Any], tokenizer: Any, prompt: ChatPrompt) -> None:
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415 - vLLM is there by now

        request = ChatCompletionRequest(
            messages=[{"role": "user", "content": ""}], tools=tool_definitions(prompt), tool_choice=tool_choice(prompt.tool_choice)
        )
        self._parser = parser(tokenizer, request.tools)
        self._request = self._parser.adjust_request(request)
        self._opening: str | None = getattr(self._parser.tool_parser, "tool_call_start_token", None)
        self._text = ""
        self._words = ""
        self._arguments: dict[int, str] = {}

    def constrain(self, params: Any) -> None:
        """Make the sampling obey a choice that forces a call, and keep the markup in the text."""
        if self._request.structured_outputs is not None:
            params.structured_outputs = self._request.structured_outputs
        params.skip_special_tokens = self._request.skip_special_tokens

    @property
    def begun(self) -> bool:
        """Whether the model has begun to write a call; from then on nothing of what it writes is meant to be heard."""
        return bool(self._arguments) or (self._opening is not None and self._opening in self._text)

    def read(self, text: str, token_ids: Sequence[int], *, finished: bool) -> list[ChatDelta]:
        """What a new piece of the model's text comes to."""
        self._text += text
        message = self._parser.parse_delta(text, list(token_ids), self._request, [], finished=finished)
        if message is None:
            return []
        words = message.content or ""
        self._words += words
        deltas = [ChatDelta(text=words)] if words else []
        return deltas + [self._call(call) for call in message.tool_calls or ()]

    def end(self, *, stopped: bool) -> list[ChatDelta]:
        """What is left once the model has ended.

        Args:
            stopped: whether it ended of its own will, so that what looks like the beginning of a call was meant as text.

        Raises:
            EngineError: if the model ended of its own will and the arguments of a call are no JSON.
        """
        rest = self._text[len(self._words) :]
        if not stopped:
            return []
        if not self.begun and rest and self._opening is not None and self._opening.startswith(rest):
            return [ChatDelta(text=rest)]
        return [self._completed(index, arguments) for index, arguments in self._arguments.items() if not _is_json(arguments)]

    def _call(self, call: Any) -> ChatDelta:
        name = call.function.name if call.function else None
        arguments = (call.function.arguments if call.function else None) or ""
        self._arguments[call.index] = self._arguments.get(call.index, "") + arguments
        return ChatDelta(tool_call=ToolCallDelta(index=call.index, name=name, arguments=arguments))

    def _completed(self, index: int, arguments: str) -> ChatDelta:
        if arguments.strip():
            raise EngineError("The model wrote a tool call whose arguments are no JSON.", code="invalid_tool_call")
        return ChatDelta(tool_call=ToolCallDelta(index=index, arguments="{}"))


def load_parser(name: str) -> type[Any]:
    """The parser that vLLM has under this name.

    Raises:
        TypeError: if there is none.
    """
    from vllm.parser.parser_manager import ParserManager  # noqa: PLC0415 - vLLM is there once an engine starts

    parser: type[Any] = ParserManager.get_parser(tool_parser_name=name, enable_auto_tools=True)
    return parser


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
