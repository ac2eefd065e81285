"""Prompts rendered by vLLM's own renderer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from omni_realtime.chat import ChatPrompt
from omni_realtime.engine.vllm_common.images import processor_images
from omni_realtime.engine.vllm_common.messages import audio_parts, chat_messages, image_parts, tool_definitions

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Stretches of a prompt: offset and length in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A prompt as the engine takes it."""

    engine_input: dict[str, Any]
    tokens: int
    """Its length, multimodal tokens expanded."""
    audio_spans: Spans = ()
    """Where its audio lies."""
    image_spans: Spans = ()
    """Where its images lie."""


def tokens_before(spans: Spans, position: int) -> int:
    """How many of the first ``position`` tokens are in these spans."""
    return sum(max(0, min(length, position - offset)) for offset, length in spans)


class PromptRenderer:
    """Wraps the renderer of a running engine.

    The renderer keeps a *sender cache*: it remembers which media it has given to the engine and sends them no second time. A render through
    that cache must be submitted, or be undone by ``forget``; a speculative one goes through a cache of its own.
    """

    def __init__(self, renderer: Any, chat_template: str | None) -> None:
        self._renderer = renderer
        self._chat_template = chat_template

    async def measure(self, prompt: ChatPrompt) -> int:
        """The length of a prompt in tokens, whatever it is, without a trace in the sender cache."""
        unlimited = replace(self._renderer.default_chat_tok_params, max_total_tokens=None)
        return (await self._render(prompt, unlimited, skip_mm_cache=True)).tokens

    async def render(self, prompt: ChatPrompt) -> Rendered:
        """Render through the sender cache; what is returned must be submitted in the order of the renders.

        Raises:
            vllm.exceptions.VLLMValidationError: if the prompt is too long already before its media are expanded, or cannot be rendered.
        """
        return await self._render(prompt, self._renderer.default_chat_tok_params, skip_mm_cache=False)

    async def forget(self) -> None:
        """Empty the sender cache, so that all media are sent anew.

        Taking out single entries would not do: the engine's cache follows the order of use of this one to know what both drop first.
        """
        await self._renderer.clear_mm_cache_async()

    async def _render(self, prompt: ChatPrompt, tok_params: Any, *, skip_mm_cache: bool) -> Rendered:
        _, dict_prompt = await self._renderer.render_messages_async(chat_messages(prompt), self._chat_params(prompt))
        audio = audio_parts(prompt)
        if audio:
            dict_prompt["multi_modal_data"]["audio"] = [(part.samples, part.rate) for part in audio]
        if images := image_parts(prompt):
            dict_prompt["multi_modal_data"]["image"] = await asyncio.to_thread(processor_images, images)
        (tokens_prompt,) = await self._renderer.tokenize_prompts_async([dict_prompt], tok_params)
        engine_input = await self._renderer.process_for_engine_async(tokens_prompt, time.time(), skip_mm_cache=skip_mm_cache)
        engine_input.update({name: _own(value) for name, value in prompt.engine_info.items()})
        return Rendered(
            engine_input=engine_input,
            tokens=len(engine_input["prompt_token_ids"]),
            audio_spans=_spans(engine_input, "audio"),
            image_spans=_spans(engine_input, "image"),
        )

    def _chat_params(self, prompt: ChatPrompt) -> Any:
        from vllm.renderers import ChatParams  # noqa: PLC0415 - vLLM is there once an engine runs

        kwargs = {"add_generation_prompt": True, **prompt.template_kwargs, "tools": tool_definitions(prompt) or None}
        return ChatParams(chat_template=self._chat_template or prompt.chat_template, chat_template_kwargs=kwargs)


def _spans(engine_input: Mapping[str, Any], modality: str) -> Spans:
    return tuple((span.offset, span.length) for span in engine_input.get("mm_placeholders", {}).get(modality, ()))


def _own(value: Any) -> Any:
    """A mapping of the request's own: the engine adds to what it is given."""
    return dict(value) if isinstance(value, Mapping) else value
