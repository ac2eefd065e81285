"""Chat semantics as values: what a turn is made of and what an engine answers.

A Realtime turn is a ``/v1/chat/completions`` request over the history that the server keeps. These types are shared by the
session, the hooks and the engines; they hold data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omni_realtime.protocol.image_data import ImageMediaType
from omni_realtime.protocol.items import ImageDetail
from omni_realtime.protocol.response import Usage as Usage  # noqa: PLC0414 - a word of this vocabulary too

Samples: TypeAlias = NDArray[np.float32]
"""Mono audio, shape ``(n,)``, float32, nominally within [-1, 1]."""

Modality: TypeAlias = Literal["text", "audio"]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "abort", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text of a message."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AudioPart:
    """Audio of a message, already at the model's input rate."""

    samples: Samples
    rate: int
    """Samples a second, in Hz."""
    key: str
    """Names this audio for caches; equal keys within a process mean equal samples."""
    transcript: str | None = None
    """What was said, where a transcriber has already answered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ImagePart:
    """An image of a message: a PNG or JPEG file, whose structure has been checked and whose pixels have not been decoded."""

    data: bytes
    """The whole file."""
    media_type: ImageMediaType
    key: str
    """Names this image for caches; equal keys within a process mean the same image and detail."""
    detail: ImageDetail = "auto"
    """How closely to look; ``low`` makes do with a small image."""


ContentPart: TypeAlias = TextPart | AudioPart | ImagePart


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A finished call that the model made; ``arguments`` is JSON text."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of the chat shape."""

    role: Role
    content: tuple[ContentPart, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls of an assistant message."""
    tool_call_id: str | None = None
    """The call that a ``tool`` message answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model may call; ``parameters`` is a JSON schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTool:
    """A tool choice that demands one function by its name."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one response is to be made from: the history in chat shape, and this response's parameters."""

    messages: tuple[ChatMessage, ...]
    """The conversation, oldest first, without the instructions."""
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
    modalities: tuple[Modality, ...] = ("audio",)
    """``("audio",)`` (audio and its transcript) or ``("text",)``."""
    voice: str | None = None
    max_output_tokens: int | None = None
    """``None`` for no limit but the engine's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPrompt:
    """What the prompt builder makes of a turn and the engine renders."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Passed to the chat template."""
    chat_template: str | None = None
    """The text of a Jinja template of the plugin's own, over the model's; ``None`` for the model's."""
    hidden_text: tuple[str, ...] = ()
    """What the model writes beside its words, such as the pads of interleaved audio; the engine takes these strings out of the text."""
    engine_info: Mapping[str, Any] = field(default_factory=dict)
    """Merged into the engine's own input beside the rendered prompt, by names that the engine knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    """One generation."""

    request_id: str
    prompt: ChatPrompt
    modalities: tuple[Modality, ...] = ("audio",)
    voice: str | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A piece of a tool call.

    The first piece of an ``index`` carries ``name``; ``call_id`` only if the engine makes its own. ``arguments`` pieces join to JSON text.
    """

    index: int = 0
    call_id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChatDelta:
    """One step of a generation; any subset of the fields may be set.

    The last delta of a generation carries ``finish_reason``.
    """

    text: str = ""
    """New text: of the answer, or of the transcript of its audio."""
    audio: Samples | None = None
    """New samples at ``rate``."""
    rate: int = 0
    """Samples a second of ``audio``, in Hz; one rate for a whole generation."""
    spoken: str = ""
    """The text that is spoken from this delta's audio on, where the engine knows: it lets a truncation keep the text that was heard.

    The ``spoken`` pieces of a generation join to a prefix of its text, white space apart.
    """
    tool_call: ToolCallDelta | None = None
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
