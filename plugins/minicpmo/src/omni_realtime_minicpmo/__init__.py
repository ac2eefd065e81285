"""The MiniCPM-o 4.5 adapter, on vLLM-Omni."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omni_realtime.chat import Modality
from omni_realtime.engine.port import StageInfo
from omni_realtime.hookspecs import hookimpl

__version__ = "0.1.0"

OMNI_REALTIME_API = 1
"""The version of the plugin interface that this is written for."""


@hookimpl
def realtime_fix_sampling_params(stages: Sequence[StageInfo], params: list[Any], modalities: Sequence[Modality]) -> list[Any]:
    """The whole text in one piece for a spoken turn, and never a reply of fewer than two tokens, which its talker does not survive."""
    if "audio" in modalities:
        from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415 - only where vLLM is the engine

        for stage, stage_params in zip(stages, params, strict=True):
            if stage.model_stage == "llm":
                stage_params.output_kind = RequestOutputKind.FINAL_ONLY
                stage_params.min_tokens = max(stage_params.min_tokens, 1)
                stage_params.max_tokens = max(stage_params.max_tokens or 2, 2)
    return params
