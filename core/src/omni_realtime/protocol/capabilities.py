"""What a deployment can serve, as the one check of sessions and responses reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AudioFormatType: TypeAlias = Literal["audio/pcm", "audio/pcmu", "audio/pcma"]
TurnDetectionType: TypeAlias = Literal["server_vad", "semantic_vad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Everything is off until a plugin says otherwise; the first of several is the default."""

    output_modalities: tuple[Literal["text", "audio"], ...] = ("text",)
    """What a response can be: ``audio`` (with its transcript) or ``text``."""

    audio_input: bool = False
    """Takes audio; without it the input buffer and ``input_audio`` parts are refused."""

    input_formats: tuple[AudioFormatType, ...] = ("audio/pcm", "audio/pcmu", "audio/pcma")
    """Formats of ``session.audio.input.format``; the core converts all three."""

    output_formats: tuple[AudioFormatType, ...] = ("audio/pcm", "audio/pcmu", "audio/pcma")
    """Formats of ``session.audio.output.format``; the core converts all three."""

    turn_detection: tuple[TurnDetectionType, ...] = ()
    """Detectors of ``session.audio.input.turn_detection``; ``null`` (manual turns) is always served."""

    transcription_models: tuple[str, ...] = ()
    """Names of ``session.audio.input.transcription.model``; empty where nothing transcribes."""

    transcription_languages: tuple[str, ...] = ()
    """ISO-639-1 codes of ``transcription.language``; empty means any."""

    voices: tuple[str, ...] = ()
    """Names of ``session.audio.output.voice``; empty where the model has one nameless voice."""

    tools: bool = False
    """Serves ``tools`` and the choices ``auto``, ``none``, ``required`` and a named function."""

    out_of_band_responses: bool = True
    """Serves ``response.create`` with ``conversation: "none"``, beside the default response."""

    max_output_tokens: int = 4096
    """The largest ``max_output_tokens``; ``"inf"`` is always served."""

    audio_tokens_per_second: float = 0
    """An upper bound of the prompt tokens that a second of user audio costs; ``0`` where unknown."""

    audio_parts: int | None = None
    """The most audio parts that one prompt can hold; ``None`` for no limit."""

    default_instructions: str = ""
    """Instructions of a session that brings none."""
