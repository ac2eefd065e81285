"""The Qwen3-Omni adapter, on vLLM-Omni.

Nothing heavy is imported before a deployment starts.
"""

from __future__ import annotations

import pluggy

from omni_realtime.chat import ChatPrompt, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import create_engine
from omni_realtime.engine.port import Engine
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime_qwen3_omni.check import check
from omni_realtime_qwen3_omni.images import image_tokens
from omni_realtime_qwen3_omni.prompt import build_prompt
from omni_realtime_qwen3_omni.settings import complete, read_settings
from omni_realtime_qwen3_omni.voices import voices_of

__version__ = "0.1.0"

OMNI_REALTIME_API = 1
"""The version of the plugin interface that this is written for."""


@hookimpl
def realtime_check_deployment(deployment: Deployment) -> list[Problem]:
    """Wrong settings, another model, a missing template, a deploy config for native duplex or without a talker."""
    return check(deployment)


@hookimpl
def realtime_capabilities(deployment: Deployment) -> Capabilities:
    """Speech and text both ways, images in, and tools; without the talker text alone goes out."""
    settings = read_settings(deployment)
    sees = settings.image_parts != 0
    return Capabilities(
        output_modalities=("audio", "text") if settings.speaks else ("text",),
        audio_input=True,
        voices=voices_of(settings) if settings.speaks else (),
        tools=settings.has_tools,
        audio_tokens_per_second=13,
        audio_parts=settings.audio_parts,
        image_input=sees,
        image_tokens=image_tokens(settings) if sees else 0,
        image_parts=settings.image_parts,
    )


@hookimpl
def realtime_resample_rates() -> ResampleRates:
    """The audio encoder's rate in, the vocoder's rate out."""
    return ResampleRates(input=16000, output=24000)


@hookimpl
def realtime_engine(deployment: Deployment, hook: pluggy.HookRelay) -> Engine | None:
    """vLLM-Omni; or vLLM with the thinker alone, or a server over HTTP."""
    return create_engine(complete(deployment), hook)


@hookimpl
def realtime_build_prompt(turn: Turn, deployment: Deployment) -> ChatPrompt:
    """The conversation, with the voice to speak with."""
    return build_prompt(turn, deployment)
