"""What keeps a host from serving, in words for the person who runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omni_realtime_host.yaml_locations import Path

if TYPE_CHECKING:
    from omni_realtime_host.config import ConfigFile


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing to mend."""

    where: str
    """``FILE:LINE``, the file alone, or the command-line option at fault."""
    path: Path
    """The keys that lead to the value at fault; empty for the whole."""
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, dotted(self.path), self.message) if part)


class ConfigError(Exception):
    """The configuration cannot be used; every problem that was found, and the file as far as it could be read."""

    def __init__(self, problems: list[ConfigProblem], config_file: ConfigFile | None = None) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
        self.config_file = config_file


def dotted(path: Path) -> str:
    """``("deployments", 0, "name")`` as ``deployments[0].name``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".")
