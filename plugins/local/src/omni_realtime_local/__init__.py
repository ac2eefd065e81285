"""The local Realtime adapter: speech to text, a small language model and text to speech, all on the CPU.

Nothing heavy is imported before a deployment starts.
"""

from __future__ import annotations

from omni_realtime.chat import ChatPrompt, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.port import Detector, Engine, Transcriber, TurnScorer
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime_local import asr, tts, turns, vad
from omni_realtime_local.check import check
from omni_realtime_local.engine import LocalEngine
from omni_realtime_local.prompt import build_prompt
from omni_realtime_local.settings import read_settings

__version__ = "0.1.0"

OMNI_REALTIME_API = 1
"""The version of the plugin interface that this is written for."""

INSTRUCTIONS = "You are a helpful AI assistant. Keep answers short."


@hookimpl
def realtime_check_deployment(deployment: Deployment) -> list[Problem]:
    """Wrong settings, missing files and missing packages."""
    return check(deployment)


@hookimpl
def realtime_capabilities(deployment: Deployment) -> Capabilities:
    """Speech and text both ways, in English."""
    settings = read_settings(deployment)
    return Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        turn_detection=("server_vad", "semantic_vad"),
        transcription_models=("whisper-tiny.en",),
        transcription_languages=("en",),
        transcription_logprobs=True,
        voices=(tts.voice_name(settings.piper),),
        tools=True,
        max_output_tokens=settings.smollm2.max_output_tokens,
        default_instructions=INSTRUCTIONS,
    )


@hookimpl
def realtime_resample_rates(deployment: Deployment) -> ResampleRates:
    """Whisper's rate in, the voice's rate out."""
    return ResampleRates(input=asr.RATE, output=tts.voice_rate(read_settings(deployment).piper))


@hookimpl
def realtime_engine(deployment: Deployment) -> Engine:
    """Whisper, SmolLM2 and Piper in a row."""
    return LocalEngine(read_settings(deployment))


@hookimpl
def realtime_detector(deployment: Deployment) -> Detector:
    """Silero VAD."""
    return vad.SileroDetector(read_settings(deployment).silero)


@hookimpl
def realtime_turn_scorer(deployment: Deployment) -> TurnScorer:
    """Smart-turn v3."""
    return turns.SmartTurnScorer(read_settings(deployment).smart_turn)


@hookimpl
def realtime_transcriber(deployment: Deployment) -> Transcriber:
    """Whisper, shared with the engine."""
    return asr.shared_transcriber(read_settings(deployment).whisper)


@hookimpl
def realtime_build_prompt(turn: Turn, deployment: Deployment) -> ChatPrompt:
    """The instructions, the system messages and the last turns."""
    return build_prompt(turn, read_settings(deployment).smollm2.history_turns)
