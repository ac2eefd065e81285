"""A generation as the body of ``POST /v1/chat/completions``, and a prompt as that of ``POST /tokenize``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pybase64

from omni_realtime.audio import write_wav
from omni_realtime.chat import AudioPart, ChatPrompt, GenerateRequest, ImagePart
from omni_realtime.engine.chat_completions.settings import ChatCompletionsSettings
from omni_realtime.engine.chat_shape import chat_message, tool_choice, tool_definition
from omni_realtime.engine.port import EngineError
from omni_realtime.protocol.image_data import image_url


def encode_request(request: GenerateRequest, settings: ChatCompletionsSettings) -> bytes:
    """Write the body of a streamed chat completion.

    Minutes of audio take a while to encode: call it off the event loop.

    Raises:
        EngineError: if ``engine_info`` holds what is no JSON.
    """
    prompt = request.prompt
    body = {
        **settings.extra_body,
        **_prompt_fields(prompt, settings),
        **_tool_choice(prompt),
        **_output_fields(request, settings),
        **prompt.engine_info,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return _dump(body)


def encode_tokenize(prompt: ChatPrompt, settings: ChatCompletionsSettings) -> bytes:
    """Write the body that has the server count a prompt, as it would render it for a completion; call it off the event loop."""
    return _dump(_prompt_fields(prompt, settings))


def _prompt_fields(prompt: ChatPrompt, settings: ChatCompletionsSettings) -> dict[str, Any]:
    fields: dict[str, Any] = {"model": settings.model, "messages": [chat_message(message, _media) for message in prompt.messages]}
    if prompt.tools:
        fields["tools"] = [tool_definition(tool) for tool in prompt.tools]
    if prompt.template_kwargs:
        fields["chat_template_kwargs"] = dict(prompt.template_kwargs)
    if prompt.chat_template is not None:
        fields["chat_template"] = prompt.chat_template
    return fields


def _media(part: AudioPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": image_url(part.data, part.media_type), "detail": part.detail}}
    data = pybase64.b64encode_as_string(write_wav(part.samples, part.rate))
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def _tool_choice(prompt: ChatPrompt) -> dict[str, Any]:
    return {"tool_choice": tool_choice(prompt.tool_choice)} if prompt.tools else {}


def _output_fields(request: GenerateRequest, settings: ChatCompletionsSettings) -> dict[str, Any]:
    fields: dict[str, Any] = {"modalities": ["text"]}
    if request.max_output_tokens is not None:
        fields["max_tokens" if settings.api == "vllm" else "max_completion_tokens"] = request.max_output_tokens
    if "audio" in request.modalities:
        fields["modalities"] = ["text", "audio"]
        fields["audio"] = {"format": "pcm16"}
        if request.voice is not None:
            (fields if settings.api == "vllm" else fields["audio"])["voice"] = request.voice
    return fields


def _dump(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise EngineError(
            "The prompt holds what cannot be sent as JSON: over HTTP, a plugin's engine_info and template_kwargs hold plain JSON values."
        ) from error
