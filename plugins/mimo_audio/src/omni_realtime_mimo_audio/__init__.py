"""The MiMo-Audio adapter, on vLLM-Omni.

Nothing heavy is imported before a deployment starts.
"""

from __future__ import annotations

import os

import pluggy

from omni_realtime.chat import ChatPrompt, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import create_engine
from omni_realtime.engine.port import Engine
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime_mimo_audio.check import check
from omni_realtime_mimo_audio.prompt import RATE, build_prompt, load_voice
from omni_realtime_mimo_audio.settings import TOKENIZER_VARIABLE, complete, read_settings

__version__ = "0.1.0"

OMNI_REALTIME_API = 1
"""The version of the plugin interface that this is written for."""


@hookimpl
def realtime_check_deployment(deployment: Deployment) -> list[Problem]:
    """Wrong settings, another model, a missing audio tokenizer or voice, a deploy config that mixes up replies."""
    return check(deployment)


@hookimpl
def realtime_capabilities(deployment: Deployment) -> Capabilities:
    """Speech and text both ways, without tools."""
    return Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        voices=read_settings(deployment).voice_files.names,
        audio_tokens_per_second=6.25,
    )


@hookimpl
def realtime_resample_rates() -> ResampleRates:
    """The audio tokenizer's rate, both ways."""
    return ResampleRates(input=RATE, output=RATE)


@hookimpl
def realtime_engine(deployment: Deployment, hook: pluggy.HookRelay) -> Engine | None:
    """vLLM-Omni, told where the audio tokenizer is, or a server over HTTP."""
    settings = read_settings(deployment)
    for voice in settings.voice_files.all:
        load_voice(voice)
    if settings.audio_tokenizer is not None and not settings.is_remote:
        os.environ[TOKENIZER_VARIABLE] = str(settings.audio_tokenizer.absolute())
    return create_engine(complete(deployment), hook)


@hookimpl
def realtime_build_prompt(turn: Turn, deployment: Deployment) -> ChatPrompt:
    """The conversation by the model's own template, with the voice to speak with."""
    return build_prompt(turn, read_settings(deployment))
