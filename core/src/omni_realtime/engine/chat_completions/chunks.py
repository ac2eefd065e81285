"""The chunks of a streamed chat completion, as far as they are read; other fields may be there."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

Tokens = int | None


class FunctionPiece(BaseModel):
    """``tool_calls[].function``."""

    name: str | None = None
    arguments: str | None = None


class ToolCallPiece(BaseModel):
    """``delta.tool_calls[]``."""

    index: int = 0
    id: str | None = None
    function: FunctionPiece = FunctionPiece()


class AudioPiece(BaseModel):
    """``delta.audio``, as OpenAI streams it: PCM16 in base64, and its transcript."""

    data: str | None = None
    transcript: str | None = None


class Delta(BaseModel):
    """``choices[].delta``."""

    content: str | None = None
    refusal: str | None = None
    audio: AudioPiece | None = None
    tool_calls: list[ToolCallPiece] | None = None


class AudioMetadata(BaseModel):
    """``choices[].audio_metadata``, as vLLM-Omni describes the audio in ``delta.content``."""

    format: str
    sample_rate_hz: int = Field(gt=0)
    channels: int = 1


class Choice(BaseModel):
    """``choices[]``."""

    index: int = 0
    delta: Delta = Delta()
    finish_reason: str | None = None
    audio_metadata: AudioMetadata | None = None


class PromptDetails(BaseModel):
    """``usage.prompt_tokens_details``: OpenAI counts ``audio_tokens`` and ``image_tokens``, vLLM ``multimodal_tokens`` by modality."""

    cached_tokens: Tokens = None
    audio_tokens: Tokens = None
    image_tokens: Tokens = None
    multimodal_tokens: dict[str, int] | None = None


class CompletionDetails(BaseModel):
    """``usage.completion_tokens_details``."""

    audio_tokens: Tokens = None


class UsageInfo(BaseModel):
    """``usage``."""

    prompt_tokens: Tokens = None
    completion_tokens: Tokens = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class Chunk(BaseModel):
    """One event of the stream."""

    choices: list[Choice] = []
    usage: UsageInfo | None = None
    modality: str | None = None
    """vLLM-Omni: what ``delta.content`` holds."""
    error: Any = None
