"""From a chat prompt to the plain text messages that SmolLM2's chat template takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, ContentPart, TextPart
from omni_realtime.engine.port import EngineError
from omni_realtime_local.llama import Message

NOTHING_SAID = "I said nothing. Please ask me to speak again."
"""What the model reads in place of a user's audio without words; its answer is its own."""

Hear = Callable[[AudioPart], Awaitable[str]]


async def render(prompt: ChatPrompt, hear: Hear) -> list[Message]:
    """Write every message as text.

    The template knows no tools. The output of a call is put before the question that led to it, and the call itself is left out, as
    the model would answer with another.

    Args:
        prompt: the chat prompt.
        hear: writes down audio that has no transcript yet.

    Raises:
        EngineError: if there is an image, which this model cannot see.
    """
    messages: list[Message] = []
    question: Message | None = None
    for message in prompt.messages:
        content = await _content(message, hear)
        if message.role == "tool":
            if question is None:
                messages.append({"role": "user", "content": content})
            else:
                question["content"] = f"{content}\n\nAnswer from this: {question['content']}"
        elif message.role == "user":
            question = {"role": "user", "content": content or NOTHING_SAID}
            messages.append(question)
        elif content:
            messages.append({"role": message.role, "content": content})
    return messages


async def _content(message: ChatMessage, hear: Hear) -> str:
    texts = [await _written(part, hear) for part in message.content]
    return _plain(" ".join(text for text in texts if text))


async def _written(part: ContentPart, hear: Hear) -> str:
    match part:
        case TextPart():
            return part.text
        case AudioPart():
            return await hear(part) if part.transcript is None else part.transcript
    raise EngineError("This model sees no images.", code="invalid_prompt")


def _plain(text: str) -> str:
    """Text in which the template's own marks, such as ``<|im_end|>``, are no marks."""
    return text.replace("<|", "< |").strip()
