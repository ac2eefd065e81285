"""Token counts, from the names of the chat API to the port's."""

from __future__ import annotations

from omni_realtime.chat import Usage
from omni_realtime.engine.chat_completions.chunks import CompletionDetails, PromptDetails, UsageInfo


def read_usage(usage: UsageInfo) -> Usage:
    """What the server counted; what it does not split counts as text."""
    details = usage.prompt_tokens_details or PromptDetails()
    prompt, cached = usage.prompt_tokens or 0, details.cached_tokens or 0
    by_modality = details.multimodal_tokens or {}
    audio = min(details.audio_tokens or by_modality.get("audio", 0), prompt)
    image = min(details.image_tokens or by_modality.get("image", 0), prompt - audio)
    cached_text = min(cached, prompt - audio - image)
    cached_audio = min(cached - cached_text, audio)
    output = usage.completion_tokens or 0
    output_audio = min((usage.completion_tokens_details or CompletionDetails()).audio_tokens or 0, output)
    return Usage(
        input_text_tokens=prompt - audio - image,
        input_audio_tokens=audio,
        input_image_tokens=image,
        cached_text_tokens=cached_text,
        cached_audio_tokens=cached_audio,
        cached_image_tokens=min(cached - cached_text - cached_audio, image),
        output_text_tokens=output - output_audio,
        output_audio_tokens=output_audio,
    )
