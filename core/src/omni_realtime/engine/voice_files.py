"""Voices that are recordings: a model that speaks like the audio it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omni_realtime.audio import read_wav
from omni_realtime.chat import Samples
from omni_realtime.deployment import Problem

DEFAULT = "default"
"""The name of a default recording that stands beside named ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceFiles:
    """One recording for all that is said, or recordings by name, or both."""

    default: Path | None
    named: Mapping[str, Path]

    @property
    def names(self) -> tuple[str, ...]:
        """The voices that a session can choose among, the default first; none where there is one, or the model's own."""
        return ((DEFAULT,) if self.default else ()) + tuple(self.named) if self.named else ()

    def find(self, voice: str | None) -> Path | None:
        """The recording of a voice, else that of the first; ``None`` for the model's own voice."""
        return self.named.get(voice or "") or self.default or next(iter(self.named.values()), None)

    def problems(self, default_setting: str) -> list[Problem]:
        """Recordings that are missing or no WAV files, or a name that is taken."""
        files = [(f"settings.voices.{name}", file) for name, file in self.named.items()]
        if self.default is not None:
            files.append((f"settings.{default_setting}", self.default))
        found = [Problem(where=where, message=message) for where, file in files if (message := _fault(file))]
        if self.default and DEFAULT in self.named:
            message = f"The name {DEFAULT} stands for settings.{default_setting}: choose another."
            found.append(Problem(where=f"settings.voices.{DEFAULT}", message=message))
        return found

    @property
    def all(self) -> tuple[Path, ...]:
        """Every recording; a plugin reads them at start, so that no response waits for it."""
        return (*self.named.values(), *((self.default,) if self.default else ()))


@cache
def read_voice(file: Path) -> tuple[Samples, int]:
    """Read a recording, once: mono float32 samples, and their rate in Hz.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is no WAV file.
    """
    return read_wav(file.read_bytes())


def _fault(file: Path) -> str | None:
    try:
        samples, _ = read_wav(file.read_bytes())
    except OSError:
        return f"There is no file {file} that can be read: give the path of a WAV file."
    except ValueError as error:
        return f"{file}: {error}"
    return None if samples.size else f"{file} is empty: record a few seconds of the voice."
