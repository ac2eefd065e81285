"""What ``settings:`` of a deployment of this plugin may say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from omni_realtime.deployment import Deployment, Problem

Threads = Annotated[int, Field(ge=1, le=256)]


class Section(BaseModel):
    """Refuses unknown names; frozen, so that equal settings can share a loaded model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SileroSettings(Section):
    """Speech detection."""

    model_file: Path | None = None
    """A ``silero_vad.onnx`` of yours (v5 or later); the packaged one by default."""


class SmartTurnSettings(Section):
    """Ends of turns by meaning, for ``semantic_vad``."""

    model_file: Path | None = None
    """A smart-turn v3 ``.onnx`` of yours; the packaged v3.2 by default."""


class WhisperSettings(Section):
    """Speech recognition."""

    model_dir: Path | None = None
    """A folder in CTranslate2's form (``model.bin``, ``config.json``, ``tokenizer.json``); the packaged tiny.en by default."""
    threads: Threads = 2


class SmolLm2Settings(Section):
    """The language model."""

    model_file: Path | None = None
    """A GGUF file with a chat template; the packaged SmolLM2-135M-Instruct by default."""
    threads: Threads = 1
    """Of generation. More than one makes llama.cpp's barriers spin, and a busy core then stalls every token."""
    prompt_threads: Threads = 1
    """Of prompt reading; the same holds, so raise it only where cores are idle."""
    context: Annotated[int, Field(ge=512, le=8192)] = 2048
    """Tokens that a prompt and its reply share."""
    max_concurrent: Annotated[int, Field(ge=1, le=32)] = 2
    """Replies that are generated at once; more wait for their turn."""
    max_output_tokens: Annotated[int, Field(ge=1, le=8192)] = 512
    """The longest reply."""
    history_turns: Annotated[int, Field(ge=0, le=100)] = 1
    """Earlier turns that the model sees beside the current one."""


class PiperSettings(Section):
    """Speech synthesis."""

    model_file: Path | None = None
    """A Piper voice (``.onnx``, with its ``.onnx.json`` beside it); the packaged en_US-joe-medium by default."""
    threads: Threads = 1


class LocalSettings(Section):
    """All settings; each has a default."""

    silero: SileroSettings = SileroSettings()
    smart_turn: SmartTurnSettings = SmartTurnSettings()
    whisper: WhisperSettings = WhisperSettings()
    smollm2: SmolLm2Settings = SmolLm2Settings()
    piper: PiperSettings = PiperSettings()


def read_settings(deployment: Deployment) -> LocalSettings:
    """The settings of a deployment.

    Raises:
        pydantic.ValidationError: if they are wrong.
    """
    return LocalSettings.model_validate(dict(deployment.settings))


def setting_problems(deployment: Deployment) -> list[Problem]:
    """What is wrong with the settings of a deployment, one problem a setting."""
    try:
        read_settings(deployment)
    except ValidationError as error:
        return [_problem(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors()]
    return []


def _problem(location: tuple[int | str, ...], kind: str, message: str) -> Problem:
    where = ".".join(str(part) for part in ("settings", *location))
    if kind == "extra_forbidden":
        message = f"Unknown setting. Known here: {', '.join(_names_beside(location))}."
    return Problem(where=where, message=message)


def _names_beside(location: tuple[int | str, ...]) -> list[str]:
    section: type[BaseModel] = LocalSettings
    for part in location[:-1]:
        inner = section.model_fields[str(part)].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            section = inner
    return sorted(section.model_fields)
