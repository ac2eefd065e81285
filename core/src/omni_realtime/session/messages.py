"""The conversation as chat messages: the one place where items become a prompt."""

from __future__ import annotations

from collections.abc import Iterable

from omni_realtime.chat import AudioPart, ChatMessage, ContentPart, TextPart, ToolCall
from omni_realtime.protocol import FunctionCall, FunctionCallOutput, InputAudio, InputText, Message, OutputAudio, OutputText
from omni_realtime.session.conversation import Entry


def to_messages(entries: Iterable[Entry], rate: int) -> tuple[ChatMessage, ...]:
    """Return the items in chat shape, user audio at ``rate`` Hz.

    An assistant's message and the calls that follow it are one chat message. What has nothing to tell a model is left out: messages without
    content (nothing of them was heard), calls whose arguments never came to an end, and outputs whose call is gone.
    """
    messages: list[ChatMessage] = []
    calls: set[str] = set()
    for entry in entries:
        item = entry.snapshot()
        if isinstance(item, FunctionCall):
            if item.status == "completed":
                calls.add(item.call_id)
                _add_call(messages, ToolCall(call_id=item.call_id, name=item.name, arguments=item.arguments))
        elif isinstance(item, FunctionCallOutput):
            if item.call_id in calls:
                messages.append(ChatMessage(role="tool", content=(TextPart(text=item.output),), tool_call_id=item.call_id))
        elif content := _content(item, entry, rate):
            messages.append(ChatMessage(role=item.role, content=content))
    return tuple(messages)


def _add_call(messages: list[ChatMessage], call: ToolCall) -> None:
    if messages and messages[-1].role == "assistant":
        last = messages.pop()
        messages.append(ChatMessage(role="assistant", content=last.content, tool_calls=(*last.tool_calls, call)))
    else:
        messages.append(ChatMessage(role="assistant", tool_calls=(call,)))


def _content(message: Message, entry: Entry, rate: int) -> tuple[ContentPart, ...]:
    parts: list[ContentPart] = []
    for index, part in enumerate(message.content):
        if isinstance(part, InputText | OutputText):
            text = part.text
        elif isinstance(part, InputAudio):
            audio = entry.audio.get(index)
            if audio is not None and audio.samples.size:
                parts.append(AudioPart(samples=audio.samples, rate=rate, key=audio.key, transcript=part.transcript))
                continue
            text = part.transcript or ""
        elif isinstance(part, OutputAudio):
            text = part.transcript
        else:
            continue
        if text:
            parts.append(TextPart(text=text))
    return tuple(parts)
