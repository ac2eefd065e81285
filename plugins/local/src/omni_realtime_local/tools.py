"""Tool calls of a model that knows none: what it may write is bound by grammars and JSON schemas.

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
CHAT_EXAMPLES = ("What is the capital of Spain?", "Hi there.", "Why do birds sing?", "Tell me about dogs.")
"""User messages that need no tool, shown to the model between the tools' own examples."""


def candidates(tools: Sequence[Tool], choice: ToolChoice, *, answered: bool) -> list[str]:
    """What the model may choose from; names of tools, and ``answer`` where it may answer.

    Args:
        tools: the tools offered.
        choice: the tool choice.
        answered: whether the last message is a tool's output. Under ``auto`` the model then answers: it would call again and again.
    """
    names = [tool.name for tool in tools]
    if isinstance(choice, NamedTool):
        return [choice.name]
    if choice == "required":
        return names
    if choice == "none" or answered or not names:
        return [ANSWER]
    return [ANSWER, *names]
