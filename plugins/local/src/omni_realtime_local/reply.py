"""The language model's part of a response: text, or a tool call."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from omni_realtime.chat import ChatDelta, ChatPrompt, FinishReason, Tool, ToolCallDelta, Usage
from omni_realtime.engine.port import EngineError
from omni_realtime_local import tools
from omni_realtime_local.llama import Message
from omni_realtime_local.llm import LanguageModel, Piece

CHOICE_TOKENS = 64


async def reply(model: LanguageModel, prompt: ChatPrompt, messages: list[Message], max_tokens: int) -> AsyncGenerator[ChatDelta, None]:
    """Stream text and tool calls, without audio.

    Args:
        model: the language model.
        prompt: the prompt, for its tools and tool choice.
        messages: the same prompt as text.
        max_tokens: the longest reply.
    """
    answered = bool(prompt.messages) and prompt.messages[-1].role == "tool"
    names = tools.options(prompt.tools, prompt.tool_choice, answered=answered)
    name = names[0] if len(names) == 1 else await _choose(model, prompt.tools, messages, names)
    if name == tools.ANSWER:
        steps = _answer(model, messages, max_tokens)
    else:
        steps = _call(model, next(tool for tool in prompt.tools if tool.name == name), messages, max_tokens)
    async with contextlib.aclosing(steps) as deltas:
        async for delta in deltas:
            yield delta


async def _choose(model: LanguageModel, offered: tuple[Tool, ...], messages: list[Message], names: list[str]) -> str:
    chat = tools.choice_messages(offered, messages, may_answer=tools.ANSWER in names)
    chosen = ""
    async with contextlib.aclosing(model.stream(chat, max_tokens=CHOICE_TOKENS, grammar=tools.choice_grammar(names))) as pieces:
        async for piece in pieces:
            chosen += piece.text
    if chosen not in names:
        raise EngineError("The model chose no function.")
    return chosen


async def _answer(model: LanguageModel, messages: list[Message], max_tokens: int) -> AsyncGenerator[ChatDelta, None]:
    async with contextlib.aclosing(model.stream(messages, max_tokens=max_tokens)) as pieces:
        async for piece in pieces:
            yield ChatDelta(text=piece.text) if piece.finish is None else _last(piece, piece.finish)


async def _call(model: LanguageModel, tool: Tool, messages: list[Message], max_tokens: int) -> AsyncGenerator[ChatDelta, None]:
    chat, grammar = tools.argument_messages(tool, messages), model.schema_grammar(tools.argument_schema(tool))
    arguments = ""
    async with contextlib.aclosing(model.stream(chat, max_tokens=max_tokens, grammar=grammar)) as pieces:
        async for piece in pieces:
            if piece.finish is None:
                name = tool.name if not arguments else None
                arguments += piece.text
                if not arguments.startswith("{"):
                    raise tools.unusable_schema(tool)
                yield ChatDelta(tool_call=ToolCallDelta(name=name, arguments=piece.text))
            elif piece.finish == "stop":
                tools.check_arguments(tool, arguments)
                yield _last(piece, "tool_calls")
            else:
                yield _last(piece, "length")


def _last(piece: Piece, finish: FinishReason) -> ChatDelta:
    usage = Usage(input_text_tokens=piece.prompt_tokens, cached_text_tokens=piece.cached_tokens, output_text_tokens=piece.output_tokens)
    return ChatDelta(finish_reason=finish, usage=usage)
