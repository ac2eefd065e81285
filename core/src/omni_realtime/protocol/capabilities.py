"""What a deployment can serve, as the one check of sessions and responses reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from omni_realtime.protocol.prompt_template import PromptTemplate

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

    transcription_logprobs: bool = False
    """Serves ``include: ["item.input_audio_transcription.logprobs"]``."""

    voices: tuple[str, ...] = ()
    """Names of ``session.audio.output.voice``; empty where the model has one nameless voice."""

    tools: bool = False
    """Serves ``tools`` and the choices ``auto``, ``none``, ``required`` and a named function."""

    out_of_band_responses: bool = True
    """Serves ``response.create`` with ``conversation: "none"``, beside the default response."""

    max_output_tokens: int = 4096
    """The largest ``max_output_tokens`` that an engine is asked for; a client may name ``"inf"``, up to 4096, or more if this is more."""

    audio_tokens_per_second: float = 0
    """An upper bound of the prompt tokens that a second of user audio costs; ``0`` where unknown."""

    audio_parts: int | None = None
    """The most audio parts that one prompt can hold; ``None`` for no limit."""

    image_input: bool = False
    """Sees: takes ``input_image`` parts, which are refused without it."""

    image_tokens: int = 0
    """An upper bound of the prompt tokens that an image costs; ``0`` where unknown."""

    image_parts: int | None = None
    """The most images that one prompt can hold; ``None`` for no limit."""

    default_instructions: str = ""
    """Instructions of a session that brings none."""

    prompts: tuple[PromptTemplate, ...] = ()
    """The templates that ``session.prompt`` and ``response.prompt`` may name: those of the deployment's configuration."""

    @property
    def transcribes(self) -> bool:
        """Whether the user's audio can be written down."""
        return self.audio_input and bool(self.transcription_models)
