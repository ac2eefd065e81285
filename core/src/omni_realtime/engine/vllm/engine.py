"""The engine over AsyncLLM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omni_realtime.chat import ChatDelta, GenerateRequest
from omni_realtime.engine.port import StageInfo
from omni_realtime.engine.vllm_common.completion import Completion
from omni_realtime.engine.vllm_common.engine import InProcessEngine, Outputs
from omni_realtime.engine.vllm_common.rendering import Rendered


class VllmEngine(InProcessEngine):
    """AsyncLLM in process: what a model can hear or read comes in, text goes out."""

    def _load(self) -> Any:
        from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415 - heavy, and only here
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415

        llm = AsyncLLM.from_engine_args(AsyncEngineArgs(model=self._settings.model, **self._settings.engine_args))
        (arch, *_) = llm.model_config.architectures
        self._stages = (StageInfo(stage_id=0, model_stage=None, model_arch=arch, final_output_type="text"),)
        return llm

    def _default_params(self) -> list[Any]:
        from vllm.sampling_params import RequestOutputKind, SamplingParams  # noqa: PLC0415 - vLLM is there by now

        defaults = {"max_tokens": None, **self._client.model_config.get_diff_sampling_param()}
        return [SamplingParams(output_kind=RequestOutputKind.DELTA, **defaults)]

    async def _submit(self, request: GenerateRequest, rendered: Rendered, params: list[Any]) -> Outputs:
        (only,) = params
        return _Submitted(self._client, await self._client.add_request(request.request_id, rendered.engine_input, only))

    def _read(self, output: Any, completion: Completion) -> Iterable[ChatDelta]:
        for made in output.outputs:
            yield from completion.read(made.text, made.token_ids, made.finish_reason, output.num_cached_tokens)


class _Submitted:
    """The outputs of a request that AsyncLLM has taken."""

    def __init__(self, llm: Any, collector: Any) -> None:
        self._llm = llm
        self._collector = collector
        self._finished = False

    def __aiter__(self) -> _Submitted:
        return self

    async def __anext__(self) -> Any:
        if self._finished:
            raise StopAsyncIteration
        output = self._collector.get_nowait() or await self._collector.get()
        self._finished = output.finished
        return output

    async def aclose(self) -> None:
        if not self._finished:
            self._finished = True
            await self._llm.abort(self._collector.request_id, internal=True)
        self._collector.close()
