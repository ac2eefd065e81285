"""Chat values in the JSON shape of ``/v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from omni_realtime.chat import AudioPart, ChatMessage, ContentPart, ImagePart, NamedTool, TextPart, Tool, ToolCall, ToolChoice

Media: TypeAlias = Callable[[AudioPart | ImagePart], dict[str, Any]]


def chat_message(message: ChatMessage, media: Media) -> dict[str, Any]:
    """A message, freshly made each time; ``media`` says how its audio and its images are given."""
    made: dict[str, Any] = {"role": message.role, "content": _content(message.content, media)}
    if message.tool_calls:
        made["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made


def tool_definition(tool: Tool) -> dict[str, Any]:
    """A function that the model is told of."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    """The choice among tools."""
    return {"type": "function", "function": {"name": choice.name}} if isinstance(choice, NamedTool) else choice


def _content(parts: tuple[ContentPart, ...], media: Media) -> str | list[dict[str, Any]]:
    match parts:
        case ():
            return ""
        case (TextPart(text=text),):
            return text
    return [{"type": "text", "text": part.text} if isinstance(part, TextPart) else media(part) for part in parts]


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
