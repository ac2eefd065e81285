"""Chat messages as vLLM renders them."""

from __future__ import annotations

from typing import Any

from omni_realtime.chat import AudioPart, ChatPrompt, ImagePart
from omni_realtime.engine import chat_shape


def chat_messages(prompt: ChatPrompt) -> list[dict[str, Any]]:
    """The messages, freshly made each time, since rendering changes them.

    Audio and images are named by their keys alone; the data go to the renderer beside the messages (see ``audio_parts`` and
    ``image_parts``), so that nothing is encoded.
    """
    return [chat_shape.chat_message(message, _named) for message in prompt.messages]


def audio_parts(prompt: ChatPrompt) -> list[AudioPart]:
    """The audio of a prompt, in its order."""
    return [part for message in prompt.messages for part in message.content if isinstance(part, AudioPart)]


def image_parts(prompt: ChatPrompt) -> list[ImagePart]:
    """The images of a prompt, in its order."""
    return [part for message in prompt.messages for part in message.content if isinstance(part, ImagePart)]


def tool_definitions(prompt: ChatPrompt) -> list[dict[str, Any]]:
    """The tools that the model is told of: none where the choice is ``none``."""
    return [] if prompt.tool_choice == "none" else [chat_shape.tool_definition(tool) for tool in prompt.tools]


def forces_a_tool(prompt: ChatPrompt) -> bool:
    """Whether the answer can be nothing but a tool call."""
    return bool(prompt.tools) and prompt.tool_choice not in {"auto", "none"}


def _named(part: AudioPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_pil", "image_pil": None, "uuid": part.key}
    return {"type": "input_audio", "input_audio": None, "uuid": part.key}
