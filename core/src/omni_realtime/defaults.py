"""What a plugin need not write: the answers of plain chat semantics.

``realtime_detector``, ``realtime_turn_scorer`` and ``realtime_transcriber`` have no default: a plugin makes what its capabilities claim.
"""

from __future__ import annotations

from typing import Any

import pluggy

from omni_realtime.chat import ChatMessage, ChatPrompt, TextPart, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import create_engine
from omni_realtime.engine.port import Engine
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.protocol.capabilities import Capabilities


@hookimpl
def realtime_check_deployment() -> list[Problem]:
    """Find no problem."""
    return []


@hookimpl
def realtime_capabilities() -> Capabilities:
    """Text in, text out, manual turns."""
    return Capabilities()


@hookimpl
def realtime_resample_rates() -> ResampleRates:
    """16 kHz in, 24 kHz out: what most omni models take and make."""
    return ResampleRates(input=16000, output=24000)


@hookimpl
def realtime_engine(deployment: Deployment, hook: pluggy.HookRelay) -> Engine | None:
    """The engine that ``settings.engine.type`` names; none where the settings have no engine."""
    return create_engine(deployment, hook)


@hookimpl
def realtime_fix_sampling_params(params: list[Any]) -> list[Any]:
    """As the engine has set them."""
    return params


@hookimpl
def realtime_build_prompt(turn: Turn) -> ChatPrompt:
    """Put the instructions first as a system message and keep the rest as it is."""
    system = (ChatMessage(role="system", content=(TextPart(text=turn.instructions),)),) if turn.instructions else ()
    return ChatPrompt(messages=(*system, *turn.messages), tools=turn.tools, tool_choice=turn.tool_choice)
