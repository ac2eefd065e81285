"""One response's prompt."""

from __future__ import annotations

from typing import Any

from omni_realtime.chat import ChatMessage, ChatPrompt, TextPart, Turn
from omni_realtime.deployment import Deployment
from omni_realtime.engine.safe_messages import safe_message
from omni_realtime_qwen3_omni.settings import read_settings
from omni_realtime_qwen3_omni.voices import speaker

MARKS = ("<|", "<tool_", "</tool_")
"""What begins the marks of roles, of audio, of tool calls and of their results in the template."""


def build_prompt(turn: Turn, deployment: Deployment) -> ChatPrompt:
    """The instructions, then the conversation, its audio and text in the order of its parts."""
    instructions = (ChatMessage(role="system", content=(TextPart(text=turn.instructions),)),) if turn.instructions else ()
    return ChatPrompt(
        messages=tuple(safe_message(message, MARKS) for message in (*instructions, *turn.messages)),
        tools=turn.tools,
        tool_choice=turn.tool_choice,
        engine_info=_voice(turn, deployment) if "audio" in turn.modalities else {},
    )


def _voice(turn: Turn, deployment: Deployment) -> dict[str, Any]:
    settings = read_settings(deployment)
    name = speaker(turn.voice, deployment, settings)
    if settings.engine_type == "chat_completions":
        return {"voice": name}
    return {"additional_information": {"speaker": [name]}}
