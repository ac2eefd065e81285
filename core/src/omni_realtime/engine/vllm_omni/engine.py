"""The engine over AsyncOmni."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import pluggy

from omni_realtime.chat import ChatDelta, GenerateRequest
from omni_realtime.engine.vllm_common.audio import rate_of, samples_of
from omni_realtime.engine.vllm_common.completion import Completion
from omni_realtime.engine.vllm_common.engine import InProcessEngine, Outputs
from omni_realtime.engine.vllm_common.messages import forces_a_tool
from omni_realtime.engine.vllm_common.rendering import Rendered
from omni_realtime.engine.vllm_omni.settings import VllmOmniSettings
from omni_realtime.engine.vllm_omni.stages import stages_of


class VllmOmniEngine(InProcessEngine):
    """AsyncOmni in process; text comes from the text stage and audio from the audio stage."""

    def __init__(self, settings: VllmOmniSettings, hook: pluggy.HookRelay) -> None:
        super().__init__(settings, hook)
        self._omni_settings = settings

    def _load(self) -> Any:
        from vllm_omni.entrypoints.async_omni import AsyncOmni  # noqa: PLC0415 - heavy, and only here

        settings = self._omni_settings
        omni = AsyncOmni(
            model=settings.model,
            deploy_config=settings.deploy_config,
            stage_overrides=settings.stage_overrides or None,
            **settings.engine_args,
        )
        self._stages = stages_of(omni)
        return omni

    def _default_params(self) -> list[Any]:
        from vllm_omni.entrypoints.utils import coerce_param_message_types  # noqa: PLC0415 - vLLM-Omni is there by now

        params: list[Any] = [given.clone() for given in self._client.default_sampling_params_list]
        return list(coerce_param_message_types(params, is_streaming=True))

    async def _submit(self, request: GenerateRequest, rendered: Rendered, params: list[Any]) -> Outputs:
        speaks = "audio" in request.modalities and not forces_a_tool(request.prompt)
        stream = self._client.generate(
            rendered.engine_input,
            request_id=request.request_id,
            sampling_params_list=params,
            output_modalities=["text", "audio"] if speaks else ["text"],
        )
        return await _Submitted.begin(stream)

    def _read(self, output: Any, completion: Completion) -> Iterable[ChatDelta]:
        if output.final_output_type == "text":
            for made in output.outputs:
                yield from completion.read(made.text or "", made.token_ids, made.finish_reason, output.num_cached_tokens)
        elif output.final_output_type == "audio":
            completion.output_audio_tokens = self._inner_tokens(output)
            payload = output.multimodal_output or {}
            samples = samples_of(payload.get("audio"))
            if samples.size and not completion.silences:
                yield ChatDelta(audio=samples, rate=rate_of(payload))

    def _inner_tokens(self, output: Any) -> int:
        """The tokens of the stages between text and sound: those of the audio."""
        told = (output.metrics or {}).get("stage_metrics", {})
        inner = [str(stage.stage_id) for stage in self._stages if stage.final_output_type is None]
        return sum(told[stage]["num_tokens_out"] for stage in inner if stage in told)


class _Submitted:
    """The outputs of a request that AsyncOmni has taken."""

    def __init__(self, stream: AsyncGenerator[Any, None], first: asyncio.Task[Any]) -> None:
        self._stream = stream
        self._first: asyncio.Task[Any] | None = first

    @classmethod
    async def begin(cls, stream: AsyncGenerator[Any, None]) -> _Submitted:
        """Hand the request over: AsyncOmni does that before it first waits, so in the first step of this task."""
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        if first.done() and (error := first.exception()) is not None:
            raise error
        return cls(stream, first)

    def __aiter__(self) -> _Submitted:
        return self

    async def __anext__(self) -> Any:
        if self._first is None:
            return await anext(self._stream)
        first, self._first = self._first, None
        return await first

    async def aclose(self) -> None:
        if self._first is not None:
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)
        await self._stream.aclose()
