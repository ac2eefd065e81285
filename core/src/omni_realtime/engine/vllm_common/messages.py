"""Chat messages in vLLM's shape."""

from __future__ import annotations

from typing import Any

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, ContentPart, NamedTool, TextPart, Tool, ToolCall


def chat_messages(prompt: ChatPrompt) -> list[dict[str, Any]]:
    """The messages, freshly made each time, since rendering changes them.

    Audio is named by its key alone; its samples go to the renderer beside the messages (see ``audio_parts``), so that nothing is encoded.
    """
    return [_message(message) for message in prompt.messages]


def audio_parts(prompt: ChatPrompt) -> list[AudioPart]:
    """The audio of a prompt, in its order."""
    return [part for message in prompt.messages for part in message.content if isinstance(part, AudioPart)]


def tool_definitions(prompt: ChatPrompt) -> list[dict[str, Any]]:
    """The tools that the model is told of: none where the choice is ``none``."""
    return [] if prompt.tool_choice == "none" else [_tool(tool) for tool in prompt.tools]


def tool_choice(prompt: ChatPrompt) -> str | dict[str, Any]:
    """The choice among these tools."""
    if isinstance(prompt.tool_choice, NamedTool):
        return {"type": "function", "function": {"name": prompt.tool_choice.name}}
    return prompt.tool_choice


def forces_a_tool(prompt: ChatPrompt) -> bool:
    """Whether the answer can be nothing but a tool call."""
    return bool(prompt.tools) and prompt.tool_choice not in {"auto", "none"}


def _message(message: ChatMessage) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": _content(message.content)}
    if message.tool_calls:
        made["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made


def _content(parts: tuple[ContentPart, ...]) -> str | list[dict[str, Any]]:
    match parts:
        case ():
            return ""
        case (TextPart(text=text),):
            return text
    return [_part(part) for part in parts]


def _part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "input_audio", "input_audio": None, "uuid": part.key}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
