"""The sampling parameters of one response."""

from __future__ import annotations

from typing import Any

import pluggy

from omni_realtime.chat import GenerateRequest
from omni_realtime.engine.port import EngineError, StageInfo
from omni_realtime.engine.vllm_common.tools import ToolCalls


def fit_params(
    params: list[Any], stages: tuple[StageInfo, ...], request: GenerateRequest, tools: ToolCalls | None, hook: pluggy.HookRelay
) -> list[Any]:
    """Put this response's limits and tools into the text stage's parameters, then let the plugin fix them all.

    Args:
        params: vLLM's parameters of each stage, cloned for this response.
        stages: the stages, in order.
        request: the response.
        tools: its tool calls.
        hook: the plugin's hooks.

    Raises:
        EngineError: if the plugin asks for cumulative output.
    """
    from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415 - vLLM is there by now

    writer = params[next(index for index, stage in enumerate(stages) if stage.final_output_type == "text")]
    if request.max_output_tokens is not None:
        writer.max_tokens = request.max_output_tokens
        writer.min_tokens = min(writer.min_tokens, request.max_output_tokens)
    if tools is not None:
        tools.constrain(writer)
    fixed: list[Any] = hook.realtime_fix_sampling_params(stages=stages, params=params, modalities=request.modalities)
    if any(given.output_kind == RequestOutputKind.CUMULATIVE for given in fixed):
        raise EngineError("The plugin asks for cumulative output, which would repeat what has been sent.")
    return fixed
