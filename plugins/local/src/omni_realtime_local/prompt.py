"""Which part of the conversation the model is shown.

A model of this size loses its way in a long chat, so it sees the instructions, every system message and the last turns only.
"""

from __future__ import annotations

from omni_realtime.chat import ChatMessage, ChatPrompt, TextPart, Turn


def build_prompt(turn: Turn, history_turns: int) -> ChatPrompt:
    """The instructions, the system messages, and the last turns.

    A turn is a user message and all that follows it, so a tool call and its output stay together.

    Args:
        turn: the conversation and this response's parameters.
        history_turns: how many turns before the current one to keep.
    """
    begin = _begin(turn.messages, history_turns)
    kept = tuple(message for i, message in enumerate(turn.messages) if i >= begin or message.role == "system")
    instructions = (ChatMessage(role="system", content=(TextPart(text=turn.instructions),)),) if turn.instructions else ()
    return ChatPrompt(messages=instructions + kept, tools=turn.tools, tool_choice=turn.tool_choice)


def _begin(messages: tuple[ChatMessage, ...], history_turns: int) -> int:
    starts = [i for i, message in enumerate(messages) if message.role == "user" and (i == 0 or messages[i - 1].role != "user")]
    wanted = history_turns + 1
    return starts[-wanted] if len(starts) >= wanted else 0
