"""Tool calls of a model that knows none: what it may write is bound by a grammar, then by a tool's JSON schema.

Two steps: the choice between answering and the tools, then the arguments of the chosen tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from omni_realtime.chat import NamedTool, Tool, ToolChoice

from omni_realtime_local.llama import Message

ANSWER = "answer"
CHAT_EXAMPLES = (("What is the capital of Spain?", "Hi there."), ("Why do birds sing?",), ("Tell me about dogs.",))
"""User messages that need no tool; the tools' own examples stand between the groups."""


def options(tools: Sequence[Tool], choice: ToolChoice, *, answered: bool) -> list[str]:
    """What the model may choose from: names of tools, and ``answer`` where it may answer.

    Args:
        tools: the tools offered.
        choice: the tool choice.
        answered: whether the last message is a tool's output. Under ``auto`` the model then answers, as it would call without end.
    """
    names = [tool.name for tool in tools]
    if isinstance(choice, NamedTool):
        return [choice.name]
    if choice == "required":
        return names
    if choice == "none" or answered:
        return [ANSWER]
    return [ANSWER, *names]


def choice_messages(tools: Sequence[Tool], messages: Sequence[Message], *, may_answer: bool) -> list[Message]:
    """The chat of the choice: examples, one a tool, and the user's last message."""
    calls = [(tool.description or tool.name.replace("_", " "), tool.name) for tool in tools]
    examples: list[tuple[str, str]] = []
    for group in CHAT_EXAMPLES:
        examples += [(text, ANSWER) for text in group if may_answer]
        examples += calls if group is not CHAT_EXAMPLES[-1] else []
    chat: list[Message] = [{"role": "system", "content": "Name the function for the user's message."}]
    for text, name in examples:
        chat += [{"role": "user", "content": text}, {"role": "assistant", "content": name}]
    return [*chat, {"role": "user", "content": last_question(messages)}]


def choice_constraint(names: Sequence[str]) -> Mapping[str, Any]:
    """Output that is one of these names."""
    return {"grammar": "root ::= " + " | ".join(json.dumps(name) for name in names)}


def argument_messages(tool: Tool, messages: Sequence[Message]) -> list[Message]:
    """The chat of the arguments: what the tool takes, and the conversation without its own system messages."""
    system = f"{tool.description} Reply with JSON: {json.dumps(tool.parameters)}"
    return [{"role": "system", "content": system}, *(message for message in messages if message["role"] != "system")]


def argument_constraint(tool: Tool) -> Mapping[str, Any]:
    """Output that is a JSON object after the tool's schema."""
    schema = {"type": "object", **tool.parameters}
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}


def last_question(messages: Sequence[Message]) -> str:
    """What the user said last; the last message at all where the user said nothing."""
    for message in reversed(messages):
        if message["role"] == "user":
            return message["content"]
    return messages[-1]["content"] if messages else ""
