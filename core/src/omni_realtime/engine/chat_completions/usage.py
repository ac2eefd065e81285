"""Token counts, from the names of the chat API to the port's."""

from __future__ import annotations

from omni_realtime.chat import Usage
from omni_realtime.engine.chat_completions.chunks import CompletionDetails, PromptDetails, UsageInfo


def read_usage(usage: UsageInfo) -> Usage:
    """What the server counted; what it does not split counts as text."""
    details = usage.prompt_tokens_details or PromptDetails()
    prompt, cached = usage.prompt_tokens or 0, details.cached_tokens or 0
    audio = min(details.audio_tokens or (details.multimodal_tokens or {}).get("audio", 0), prompt)
    cached_text = min(cached, prompt - audio)
    output = usage.completion_tokens or 0
    output_audio = min((usage.completion_tokens_details or CompletionDetails()).audio_tokens or 0, output)
    return Usage(
        input_text_tokens=prompt - audio,
        input_audio_tokens=audio,
        cached_text_tokens=cached_text,
        cached_audio_tokens=min(cached - cached_text, audio),
        output_text_tokens=output - output_audio,
        output_audio_tokens=output_audio,
    )
