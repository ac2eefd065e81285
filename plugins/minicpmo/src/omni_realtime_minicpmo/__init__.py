"""The MiniCPM-o 4.5 adapter, on vLLM-Omni.

Nothing heavy is imported before a deployment starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pluggy

from omni_realtime.chat import ChatPrompt, Modality, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import create_engine
from omni_realtime.engine.deploy_config import read_deploy_config
from omni_realtime.engine.port import Engine, StageInfo
from omni_realtime.engine.voice_files import read_voice
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime_minicpmo.check import check
from omni_realtime_minicpmo.prompt import build_prompt
from omni_realtime_minicpmo.sampling import fix_spoken
from omni_realtime_minicpmo.settings import MinicpmoSettings, complete, read_settings

__version__ = "0.1.0"

OMNI_REALTIME_API = 1
"""The version of the plugin interface that this is written for."""

AUDIO_PARTS = 64
"""Audio parts of one prompt, by vLLM-Omni's own deploy configs."""


@hookimpl
def realtime_check_deployment(deployment: Deployment) -> list[Problem]:
    """Wrong settings, another model, a missing template or voice, a deploy config for native duplex."""
    return check(deployment)


@hookimpl
def realtime_capabilities(deployment: Deployment) -> Capabilities:
    """Speech and text both ways, and tools."""
    settings = read_settings(deployment)
    return Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        voices=settings.voice_files.names,
        tools=settings.is_remote or settings.engine["tool_parser"] is not None,
        max_output_tokens=2048,
        audio_tokens_per_second=10,
        audio_parts=_audio_parts(settings),
    )


@hookimpl
def realtime_resample_rates() -> ResampleRates:
    """Whisper's rate in, the vocoder's rate out."""
    return ResampleRates(input=16000, output=24000)


@hookimpl
def realtime_engine(deployment: Deployment, hook: pluggy.HookRelay) -> Engine | None:
    """vLLM-Omni with its deploy config for turns, or a server over HTTP."""
    for voice in read_settings(deployment).voice_files.all:
        read_voice(voice)
    return create_engine(complete(deployment), hook)


@hookimpl
def realtime_fix_sampling_params(stages: Sequence[StageInfo], params: list[Any], modalities: Sequence[Modality]) -> list[Any]:
    """For a spoken response, the whole text in one piece, and two tokens of it at least."""
    return fix_spoken(stages, params) if "audio" in modalities else params


@hookimpl
def realtime_build_prompt(turn: Turn, deployment: Deployment) -> ChatPrompt:
    """The conversation, with the voice to speak with."""
    return build_prompt(turn, read_settings(deployment))


def _audio_parts(settings: MinicpmoSettings) -> int:
    if settings.is_remote:
        return AUDIO_PARTS
    limits = read_deploy_config(settings.engine).get_of_stage(0, "limit_mm_per_prompt") or {}
    limit = limits.get("audio", AUDIO_PARTS)
    return int(limit["count"] if isinstance(limit, Mapping) else limit)
