"""One response's prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pybase64

from omni_realtime.audio import write_wav
from omni_realtime.chat import ChatMessage, ChatPrompt, TextPart, Turn
from omni_realtime.engine.safe_messages import safe_message
from omni_realtime.engine.voice_files import read_voice
from omni_realtime_minicpmo.settings import MinicpmoSettings

REFERENCE_AUDIO = "_minicpmo45_reference_audio"
"""vLLM-Omni's name for the voice to speak with: samples and their rate. Without it the checkpoint's own voice speaks."""
MARKS = ("<|", "<audio>", "<image", "<slice", "<video>")
"""What begins the marks of roles and of speech in the template, and the marks of audio, of images and of their slices."""
LEAST_TOKENS = 2
"""Of a spoken reply: the talker does not survive fewer, the end of the text being one."""


def build_prompt(turn: Turn, settings: MinicpmoSettings) -> ChatPrompt:
    """The instructions, then the conversation; for a spoken response the mark that begins speech, and the voice."""
    instructions = (ChatMessage(role="system", content=(TextPart(text=turn.instructions),)),) if turn.instructions else ()
    spoken = "audio" in turn.modalities
    info = _spoken_info(turn, settings) if spoken else {}
    return ChatPrompt(
        messages=tuple(safe_message(message, MARKS) for message in (*instructions, *turn.messages)),
        tools=turn.tools,
        tool_choice=turn.tool_choice,
        template_kwargs={"enable_thinking": False, "use_tts_template": spoken and not _forces_a_call(turn)},
        engine_info=info,
    )


def _spoken_info(turn: Turn, settings: MinicpmoSettings) -> dict[str, Any]:
    voice = settings.voice_files.find(turn.voice)
    if not settings.is_remote:
        return {} if voice is None else {REFERENCE_AUDIO: read_voice(voice)}
    # Over HTTP the sampling parameters are fields of the request, and the voice is a data URL.
    info: dict[str, Any] = {"min_tokens": LEAST_TOKENS - 1}
    if turn.max_output_tokens is not None:
        info["max_tokens"] = max(turn.max_output_tokens, LEAST_TOKENS)
    if voice is not None:
        info["ref_audio"] = _data_url(voice)
    return info


def _data_url(file: Path) -> str:
    return "data:audio/wav;base64," + pybase64.b64encode_as_string(write_wav(*read_voice(file)))


def _forces_a_call(turn: Turn) -> bool:
    return bool(turn.tools) and turn.tool_choice not in {"auto", "none"}
