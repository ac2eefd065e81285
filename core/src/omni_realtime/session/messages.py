"""The conversation as chat messages: the one place where items become a prompt."""

from __future__ import annotations

from collections.abc import Iterable

from omni_realtime.chat import AudioPart, ChatMessage, ContentPart, TextPart, ToolCall
from omni_realtime.protocol import FunctionCallOutput, InputAudio, InputText, Message, OutputAudio, OutputText
from omni_realtime.session.conversation import Entry


def to_messages(entries: Iterable[Entry], rate: int) -> tuple[ChatMessage, ...]:
    """Return the items in chat shape, user audio at ``rate`` Hz.

    An assistant's message and the calls that follow it are one chat message, and the calls' outputs come right behind it, as chat
    templates demand, wherever they stand in the conversation. What has nothing to tell a model is left out: messages without content
    (nothing of them was heard), calls whose arguments never came to an end, and outputs whose call is gone.
    """
    entries = list(entries)
    outputs = {entry.item.call_id: entry.item.output for entry in entries if isinstance(entry.item, FunctionCallOutput)}
    messages: list[ChatMessage] = []
    answers: list[ChatMessage] = []

    def end_calls() -> None:
        messages.extend(answers)
        answers.clear()

    for entry in entries:
        item = entry.snapshot()
        if isinstance(item, FunctionCallOutput):
            end_calls()
        elif isinstance(item, Message):
            if content := _content(item, entry, rate):
                end_calls()
                messages.append(ChatMessage(role=item.role, content=content))
        elif item.status == "completed":
            _add_call(messages, ToolCall(call_id=item.call_id, name=item.name, arguments=item.arguments))
            if item.call_id in outputs:
                answers.append(ChatMessage(role="tool", content=(TextPart(text=outputs[item.call_id]),), tool_call_id=item.call_id))
    end_calls()
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
            parts += [image] if (image := entry.images.get(index)) else []
            continue
        if text:
            parts.append(TextPart(text=text))
    return tuple(parts)
