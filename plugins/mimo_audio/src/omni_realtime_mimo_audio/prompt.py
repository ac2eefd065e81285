"""One response's prompt."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from omni_realtime.audio import resample
from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, ContentPart, TextPart, Turn
from omni_realtime.engine.safe_messages import long_enough, plain_text, safe_message
from omni_realtime.engine.voice_files import read_voice
from omni_realtime_mimo_audio.settings import MimoAudioSettings
from omni_realtime_mimo_audio.template import chat_template

RATE = 24000
"""Of audio in and out, in Hz."""
HIDDEN = ("<|empty|>", "<|sostm|>", "<|eot|>", "<|eostm|>", "<|sosp|>", "<|eosp|>")
"""What the model writes between its words: places of audio, and the ends of text and speech."""
MARKS = ("<|",)
"""What begins the marks of roles and of audio in the template."""
VOICE_WORDS = "Your voice should be:"
"""What stands before the voice prompt, as the model was taught it."""


def build_prompt(turn: Turn, settings: MimoAudioSettings) -> ChatPrompt:
    """The instructions and, for a spoken response, the voice; then the conversation."""
    spoken = "audio" in turn.modalities
    system = _system(turn.instructions, settings.voice_files.find(turn.voice) if spoken else None)
    conversation = (replace(safe_message(message, MARKS), tool_calls=()) for message in turn.messages if message.content)
    return ChatPrompt(
        messages=(*system, *conversation),
        template_kwargs={"spoken": spoken},
        # A server over HTTP takes no template from a request; it is started with this one.
        chat_template=None if settings.is_remote else chat_template(),
        hidden_text=HIDDEN,
    )


@cache
def load_voice(file: Path) -> AudioPart:
    """The voice prompt in a WAV file, at the model's rate.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is no WAV file.
    """
    samples = np.ascontiguousarray(resample(*read_voice(file), RATE))
    return long_enough(AudioPart(samples=samples, rate=RATE, key=f"voice-{hashlib.sha256(samples.data).hexdigest()}"))


def _system(instructions: str, voice: Path | None) -> tuple[ChatMessage, ...]:
    words = "\n\n".join(filter(None, (plain_text(instructions, MARKS), VOICE_WORDS if voice else "")))
    content: tuple[ContentPart, ...] = (TextPart(text=words),) if words else ()
    if voice:
        content += (load_voice(voice),)
    return (ChatMessage(role="system", content=content),) if content else ()
