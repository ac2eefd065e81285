"""Tool calls of a model that knows none: what it may write is bound by a grammar, then by a tool's JSON schema.

Two steps: the choice between answering and the tools, then the arguments of the chosen tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from omni_realtime.chat import NamedTool, Tool, ToolChoice
from omni_realtime.engine.port import EngineError
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

    Raises:
        EngineError: if a tool's name leaves no word for answering.
    """
    names = [tool.name for tool in tools]
    if isinstance(choice, NamedTool):
        return [choice.name]
    if choice == "required":
        return names
    if choice == "none" or answered:
        return [ANSWER]
    if ANSWER in names:
        raise EngineError(f"With the tool choice 'auto' no tool can be named {ANSWER!r}: the model uses that word to answer. Rename it.")
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


def choice_grammar(names: Sequence[str]) -> str:
    """A grammar of output that is one of these names."""
    return "root ::= " + " | ".join(json.dumps(name) for name in names)


def argument_messages(tool: Tool, messages: Sequence[Message]) -> list[Message]:
    """The chat of the arguments: what the tool takes, and the conversation without its own system messages."""
    system = f"{tool.description} Reply with JSON: {json.dumps(tool.parameters)}"
    return [{"role": "system", "content": system}, *(message for message in messages if message["role"] != "system")]


def argument_schema(tool: Tool) -> dict[str, Any]:
    """The schema of a tool's arguments: an object, without properties that the tool does not name."""
    return {**_closed(tool.parameters), "type": "object"}


def check_arguments(tool: Tool, arguments: str) -> None:
    """Refuse arguments that are not what the schema asks for: a schema that llama.cpp cannot take binds nothing, without a word.

    Raises:
        EngineError: if the arguments are no JSON object with the required properties.
    """
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not set(tool.parameters.get("required", ())) <= set(value):
        raise unusable_schema(tool)


def unusable_schema(tool: Tool) -> EngineError:
    """What to say where a tool's schema does not bind the model."""
    return EngineError(
        f"The model's output could not be bound to the parameters of the tool {tool.name!r}. Simplify its JSON schema: no contradictions, "
        "no references out of the schema.",
        code="invalid_tool_schema",
    )


def _closed(schema: Any) -> Any:
    """A schema whose objects have no unnamed properties, where it does not say otherwise: the model would never end."""
    if not isinstance(schema, Mapping):
        return schema
    closed = dict(schema)
    if isinstance(closed.get("properties"), Mapping):
        closed["properties"] = {name: _closed(value) for name, value in closed["properties"].items()}
        closed.setdefault("additionalProperties", False)
    if "items" in closed:
        closed["items"] = _closed(closed["items"])
    return closed


def last_question(messages: Sequence[Message]) -> str:
    """What the user said last; the last message at all where the user said nothing."""
    for message in reversed(messages):
        if message["role"] == "user":
            return message["content"]
    return messages[-1]["content"] if messages else ""
