"""Every hook of a Realtime adapter plugin.

Each hook is ``firstresult``: the plugin answers, and where it does not (or returns ``None``) :mod:`omni_realtime.defaults` does. An
implementation may take any subset of the arguments. Results other than prompts and sampling parameters are asked for once per
deployment, at start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pluggy

from omni_realtime.chat import ChatPrompt, Modality, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.port import Detector, Engine, StageInfo, Transcriber, TurnScorer
from omni_realtime.protocol.capabilities import Capabilities

PROJECT = "omni_realtime"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class ResampleRates:
    """A model's native rates in Hz."""

    input: int
    output: int


@hookspec(firstresult=True)
def realtime_check_deployment(deployment: Deployment) -> list[Problem] | None:
    """Find what would keep this deployment from serving, before anything heavy loads.

    Called when a host starts and by ``omni-realtime check``. Imports nothing heavy and loads no weights.

    Args:
        deployment: the deployment as configured.

    Returns:
        The problems, each with the words that mend it; an empty list where all is well.
    """


@hookspec(firstresult=True)
def realtime_capabilities(deployment: Deployment) -> Capabilities | None:
    """State what this deployment serves; sessions and responses are checked against it.

    Called once per deployment, after its check found no problem.

    Args:
        deployment: the deployment as configured.

    Returns:
        The capabilities; the default is text in, text out, manual turns.
    """


@hookspec(firstresult=True)
def realtime_resample_rates(deployment: Deployment) -> ResampleRates | None:
    """Name the rates at which the model takes and makes audio.

    Called once per deployment, after its check found no problem.

    Args:
        deployment: the deployment as configured.

    Returns:
        Input and output rate in Hz; the default is 16000 and 24000.
    """


@hookspec(firstresult=True)
def realtime_engine(deployment: Deployment, hook: pluggy.HookRelay) -> Engine | None:
    """Make the engine of this deployment, without loading it.

    Called once per deployment; ``start`` of the engine follows, and ``close`` when the host stops.

    Args:
        deployment: the deployment as configured.
        hook: this plugin's hooks, for an engine that asks ``realtime_fix_sampling_params``.

    Returns:
        An object with the methods of :class:`omni_realtime.engine.port.Engine`; the default makes what ``settings.engine.type`` names.
    """


@hookspec(firstresult=True)
def realtime_fix_sampling_params(stages: Sequence[StageInfo], params: list[Any], modalities: Sequence[Modality]) -> list[Any] | None:
    """Change the sampling parameters of one response on an engine that runs in stages.

    Called once per response, on the engine's own event loop, after the engine has set everything itself: limits, and DELTA as the output
    kind of every stage.

    Args:
        stages: the engine's stages, in their order.
        params: vLLM's ``SamplingParams`` of each stage, cloned for this response and free to be changed in place.
        modalities: what the response asks for: ``("audio",)`` or ``("text",)``.

    Returns:
        The parameters to use, one for each stage; the default is ``params`` as they are.
    """


@hookspec(firstresult=True)
def realtime_detector(deployment: Deployment) -> Detector | None:
    """Make the speech detector behind ``server_vad`` and ``semantic_vad``, without loading it.

    Called once per deployment whose capabilities list either.

    Args:
        deployment: the deployment as configured.

    Returns:
        An object with the methods of :class:`omni_realtime.engine.port.Detector`.
    """


@hookspec(firstresult=True)
def realtime_turn_scorer(deployment: Deployment) -> TurnScorer | None:
    """Make the turn scorer behind ``semantic_vad``, without loading it.

    Called once per deployment whose capabilities list ``semantic_vad``.

    Args:
        deployment: the deployment as configured.

    Returns:
        An object with the methods of :class:`omni_realtime.engine.port.TurnScorer`.
    """


@hookspec(firstresult=True)
def realtime_transcriber(deployment: Deployment) -> Transcriber | None:
    """Make the transcriber behind ``session.audio.input.transcription``, without loading it.

    Called once per deployment whose capabilities list a transcription model.

    Args:
        deployment: the deployment as configured.

    Returns:
        An object with the methods of :class:`omni_realtime.engine.port.Transcriber`; its answers carry log probabilities where the
        capabilities have ``transcription_logprobs`` and the request asks for them.
    """


@hookspec(firstresult=True)
def realtime_build_prompt(turn: Turn, deployment: Deployment) -> ChatPrompt | None:
    """Make the chat prompt of one response.

    Called once per response, on the event loop: it orders and wraps messages, and leaves tokenising and decoding to the engine.

    Args:
        turn: the conversation in chat shape, audio at the model's input rate, and the response's parameters.
        deployment: the deployment as configured.

    Returns:
        The prompt; the default puts the instructions first as a system message and keeps the rest as it is.
    """
