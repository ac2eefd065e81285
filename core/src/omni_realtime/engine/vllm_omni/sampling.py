"""The sampling parameters of one response, one set for each stage."""

from __future__ import annotations

from typing import Any

import pluggy

from omni_realtime.chat import GenerateRequest
from omni_realtime.engine.port import EngineError, StageInfo
from omni_realtime.engine.vllm_common.tools import ToolCalls
from omni_realtime.engine.vllm_omni.stages import text_stage


def sampling_params(
    defaults: list[Any], stages: tuple[StageInfo, ...], request: GenerateRequest, tools: ToolCalls | None, hook: pluggy.HookRelay
) -> list[Any]:
    """The deployment's defaults with this response's limits, as deltas, and as the plugin wants them.

    Raises:
        EngineError: if the plugin asks for cumulative output.
    """
    from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415 - vLLM is there by now
    from vllm_omni.entrypoints.utils import coerce_param_message_types  # noqa: PLC0415

    params = coerce_param_message_types([given.clone() for given in defaults], is_streaming=True)
    limit_output(params[text_stage(stages).stage_id], request.max_output_tokens)
    if tools is not None:
        tools.constrain(params[text_stage(stages).stage_id])
    fixed: list[Any] = hook.realtime_fix_sampling_params(stages=stages, params=params, modalities=request.modalities)
    if any(given.output_kind == RequestOutputKind.CUMULATIVE for given in fixed):
        raise EngineError("The plugin asks for cumulative output, which would repeat what has been sent.")
    return fixed


def limit_output(params: Any, max_output_tokens: int | None) -> None:
    """Set the response's own limit, where it has one, over the deployment's."""
    if max_output_tokens is not None:
        params.max_tokens = max_output_tokens
        params.min_tokens = min(params.min_tokens, max_output_tokens)
