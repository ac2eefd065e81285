"""Chat messages as vLLM renders them."""

from __future__ import annotations

from typing import Any

from omni_realtime.chat import AudioPart, ChatPrompt
from omni_realtime.engine import chat_shape


def chat_messages(prompt: ChatPrompt) -> list[dict[str, Any]]:
    """The messages, freshly made each time, since rendering changes them.

    Audio is named by its key alone; its samples go to the renderer beside the messages (see ``audio_parts``), so that nothing is encoded.
    """
    return [chat_shape.chat_message(message, _named) for message in prompt.messages]


def audio_parts(prompt: ChatPrompt) -> list[AudioPart]:
    """The audio of a prompt, in its order."""
    return [part for message in prompt.messages for part in message.content if isinstance(part, AudioPart)]


def tool_definitions(prompt: ChatPrompt) -> list[dict[str, Any]]:
    """The tools that the model is told of: none where the choice is ``none``."""
    return [] if prompt.tool_choice == "none" else [chat_shape.tool_definition(tool) for tool in prompt.tools]


def forces_a_tool(prompt: ChatPrompt) -> bool:
    """Whether the answer can be nothing but a tool call."""
    return bool(prompt.tools) and prompt.tool_choice not in {"auto", "none"}


def _named(part: AudioPart) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": None, "uuid": part.key}
