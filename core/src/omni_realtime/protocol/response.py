"""The response resource of the API, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from omni_realtime.protocol.capabilities import AudioFormatType
from omni_realtime.protocol.items import Item

ResponseStatus: TypeAlias = Literal["in_progress", "completed", "cancelled", "incomplete", "failed"]
StatusReason: TypeAlias = Literal["turn_detected", "client_cancelled", "max_output_tokens", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPart:
    """The part of ``response.content_part.*``: ``text`` is the transcript where the type is ``audio``."""

    type: Literal["text", "audio"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseError:
    """Why a response failed."""

    type: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusDetails:
    """Why a response ended otherwise than ``completed``."""

    reason: StatusReason | None = None
    error: ResponseError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of a response, as far as the engine tells them; the API's totals are sums of these."""

    input_text_tokens: int = 0
    input_audio_tokens: int = 0
    input_image_tokens: int = 0
    cached_text_tokens: int = 0
    cached_audio_tokens: int = 0
    cached_image_tokens: int = 0
    output_text_tokens: int = 0
    output_audio_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """Tokens of the prompt, cached ones included."""
        return self.input_text_tokens + self.input_audio_tokens + self.input_image_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens of the answer."""
        return self.output_text_tokens + self.output_audio_tokens

    @property
    def total_tokens(self) -> int:
        """Tokens of both."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The response resource."""

    id: str
    status: ResponseStatus
    conversation_id: str | None
    """``None`` for an out-of-band response."""
    output_modalities: tuple[Literal["text", "audio"], ...]
    max_output_tokens: int | Literal["inf"]
    output_format: AudioFormatType
    voice: str | None
    metadata: Mapping[str, str] | None = None
    status_details: StatusDetails | None = None
    output: tuple[Item, ...] = ()
    usage: Usage | None = None
