"""What keeps a deployment from serving, found without loading anything heavy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from omni_realtime.deployment import Deployment, Problem
from omni_realtime_local import runtime
from omni_realtime_local.settings import LocalSettings, read_settings, setting_problems
from omni_realtime_local.weights import INSTALL_COMMAND, JOE, SILERO, SMART_TURN, SMOLLM2, WHISPER


def check(deployment: Deployment) -> list[Problem]:
    """Wrong settings; else missing files and packages, all of them."""
    problems = setting_problems(deployment)
    if problems:
        return problems
    settings = read_settings(deployment)
    return [*_missing_files(settings), *_missing_packages(settings)]


def _missing_files(settings: LocalSettings) -> Iterator[Problem]:
    silero, smart_turn, smollm2, piper, whisper = (
        settings.silero.model_file,
        settings.smart_turn.model_file,
        settings.smollm2.model_file,
        settings.piper.model_file,
        settings.whisper.model_dir,
    )
    files: list[tuple[str, Path]] = []
    if silero is not None:
        files.append(("settings.silero.model_file", silero))
    if smart_turn is not None:
        files.append(("settings.smart_turn.model_file", smart_turn))
    if smollm2 is not None:
        files.append(("settings.smollm2.model_file", smollm2))
    if piper is not None:
        files.append(("settings.piper.model_file", piper))
        files.append(("settings.piper.model_file", voice_config(piper)))
    if whisper is not None:
        files += [("settings.whisper.model_dir", whisper / name) for name in ("model.bin", "config.json", "tokenizer.json")]
    for where, path in files:
        if not path.is_file():
            yield Problem(
                where=where, message=f"There is no file {path}. Give a path that exists, or leave the setting out for the packaged model."
            )


def _missing_packages(settings: LocalSettings) -> Iterator[Problem]:
    wanted = [
        (SILERO, settings.silero.model_file),
        (SMART_TURN, settings.smart_turn.model_file),
        (WHISPER, settings.whisper.model_dir),
        (SMOLLM2, settings.smollm2.model_file),
        (JOE, settings.piper.model_file),
    ]
    absent = runtime.missing() + [package.distribution for package, override in wanted if override is None and package.folder() is None]
    if absent:
        yield Problem(where="plugin", message=f"Not installed: {', '.join(absent)}. Install them with: {INSTALL_COMMAND}")


def voice_config(model_file: Path) -> Path:
    """The configuration beside a Piper voice."""
    return model_file.with_name(model_file.name + ".json")
