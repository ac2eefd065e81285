"""From a chat prompt to the plain text messages that SmolLM2's chat template takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, TextPart

from omni_realtime_local.llama import Message

NOTHING_SAID = "I said nothing. Please ask me to speak again."
"""What the model reads in place of a user's audio without words; its answer is its own."""

Hear = Callable[[AudioPart], Awaitable[str]]


async def render(prompt: ChatPrompt, hear: Hear) -> list[Message]:
    """Write every message as text.

    Args:
        prompt: the chat prompt.
        hear: writes down audio that has no transcript yet.
    """
    messages = [await _message(message, hear) for message in prompt.messages]
    return [message for message in messages if message["content"]]


async def _message(message: ChatMessage, hear: Hear) -> Message:
    if message.role == "tool":
        return {"role": "user", "content": _plain(f"The function returned {_text(message)}.")}
    texts = [part.text if isinstance(part, TextPart) else await _heard(part, hear) for part in message.content]
    texts += [f"{call.name}({call.arguments})" for call in message.tool_calls]
    content = _plain(" ".join(text for text in texts if text))
    if message.role == "user" and not content:
        content = NOTHING_SAID
    return {"role": message.role, "content": content}


async def _heard(part: AudioPart, hear: Hear) -> str:
    return part.transcript if part.transcript is not None else await hear(part)


def _text(message: ChatMessage) -> str:
    return " ".join(part.text for part in message.content if isinstance(part, TextPart))


def _plain(text: str) -> str:
    """Text in which the template's own marks, such as ``<|im_end|>``, are no marks."""
    return text.replace("<|", "< |").strip()
