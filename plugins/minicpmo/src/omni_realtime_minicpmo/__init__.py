"""The MiniCPM-o 4.5 adapter, on vLLM-Omni.

Nothing heavy is imported before a deployment starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pluggy

from omni_realtime.chat import ChatPrompt, Modality, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import create_engine
from omni_realtime.engine.deploy_config import parts_limit, read_deploy_config
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

PARTS = 64
"""Audio parts of one prompt, and as many images, by vLLM-Omni's own deploy configs."""
IMAGE_TOKENS = 768
"""More than the most of an image: the whole of it and nine slices, each of 64 tokens between two marks, a number and the ends of lines."""


@hookimpl
def realtime_check_deployment(deployment: Deployment) -> list[Problem]:
    """Wrong settings, another model, a missing template or voice, a deploy config for native duplex."""
    return check(deployment)


@hookimpl
def realtime_capabilities(deployment: Deployment) -> Capabilities:
    """Speech and text both ways, images in, and tools."""
    settings = read_settings(deployment)
    images = _parts(settings, "image")
    return Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        voices=settings.voice_files.names,
        tools=settings.is_remote or settings.engine["tool_parser"] is not None,
        max_output_tokens=2048,
        audio_tokens_per_second=10,
        audio_parts=_parts(settings, "audio"),
        image_input=images > 0,
        image_tokens=IMAGE_TOKENS if images else 0,
        image_parts=images,
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


def _parts(settings: MinicpmoSettings, modality: str) -> int:
    if settings.is_remote:
        return PARTS
    limits = read_deploy_config(settings.engine).get_of_stage(0, "limit_mm_per_prompt") or {}
    limit = parts_limit(limits, modality)
    return PARTS if limit is None else limit
