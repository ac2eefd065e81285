"""What one response is made with: the session's settings under the parameters of ``response.create``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from omni_realtime.protocol.capabilities import AudioFormatType, Capabilities
from omni_realtime.protocol.capability_check import check, check_item
from omni_realtime.protocol.item_decode import decode_input_item
from omni_realtime.protocol.items import Item, ItemReference
from omni_realtime.protocol.prompts import instructions_of
from omni_realtime.protocol.session_object import (
    AudioFormat,
    FunctionTool,
    MaxOutputTokens,
    Modality,
    Prompt,
    Reasoning,
    Sequence,
    SessionConfig,
    TokenLimit,
    ToolChoice,
    Voice,
)
from omni_realtime.protocol.session_update import RESPONSE_SPELLINGS, refuse_beta_names, value_at
from omni_realtime.protocol.validation import WireModel, validate


class _Output(WireModel):
    format: AudioFormat | None = None
    voice: Voice = None


class _Audio(WireModel):
    output: _Output | None = None


class _Parameters(WireModel):
    """The API's parameters; ``None`` stands for absent."""

    conversation: str | None = None
    input: Sequence[dict[str, Any]] | None = None
    instructions: str | None = None
    output_modalities: Sequence[Modality] | None = None
    tools: Sequence[FunctionTool] | None = None
    tool_choice: ToolChoice | None = None
    max_output_tokens: TokenLimit | None = None
    audio: _Audio | None = None
    metadata: Annotated[dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)] | None = (
        None
    )
    parallel_tool_calls: bool | None = None
    prompt: Prompt | None = None
    reasoning: Reasoning | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSettings:
    """What is in force for one response; ``input`` is ``None`` where the conversation is the context."""

    conversation: Literal["auto", "none"]
    input: tuple[Item | ItemReference, ...] | None
    instructions: str
    output_modalities: tuple[Modality, ...]
    tools: tuple[FunctionTool, ...]
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    max_output_tokens: MaxOutputTokens
    output_format: AudioFormatType
    voice: str | None
    metadata: Mapping[str, str] | None


def response_settings(config: SessionConfig, params: Mapping[str, Any], capabilities: Capabilities) -> ResponseSettings:
    """Return the session's settings under the parameters of one ``response.create``; ``null`` is absent.

    Raises:
        ProtocolError: the parameters are malformed or ask for what is not served; ``param`` begins with ``response.``.
    """
    refuse_beta_names(params, RESPONSE_SPELLINGS, "response")
    given = validate(_Parameters, params, "response")

    def in_force(path: str) -> Any:
        value = value_at(given, path)
        return value_at(config, path) if value is None else value

    check(in_force, capabilities, "response")
    instructions = config.instructions if given.prompt is None else instructions_of(given.prompt, capabilities.prompts, "response.prompt")
    voice = in_force("audio.output.voice")
    return ResponseSettings(
        conversation="none" if given.conversation == "none" else "auto",
        input=_items(given.input, capabilities),
        instructions=instructions if given.instructions is None else given.instructions,
        output_modalities=in_force("output_modalities"),
        tools=in_force("tools"),
        tool_choice=in_force("tool_choice"),
        parallel_tool_calls=in_force("parallel_tool_calls") is not False,
        max_output_tokens=in_force("max_output_tokens"),
        output_format=in_force("audio.output.format.type"),
        voice=voice if voice in capabilities.voices else config.audio.output.voice,
        metadata=given.metadata,
    )


def _items(given: tuple[dict[str, Any], ...] | None, capabilities: Capabilities) -> tuple[Item | ItemReference, ...] | None:
    if given is None:
        return None
    items = []
    for index, value in enumerate(given):
        param = f"response.input.{index}"
        item = decode_input_item(value, param)
        if not isinstance(item, ItemReference):
            check_item(item, capabilities, param)
        items.append(item)
    return tuple(items)
