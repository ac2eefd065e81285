"""One deployment: a model that is served under a name, by a plugin, with the plugin's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What a host's configuration says of one model; the argument of most hooks."""

    name: str
    """The name that clients pass as ``?model=``."""
    plugin: str
    """The entry point of the plugin, in the group ``omni_realtime``."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The plugin's and its engine's settings, as the configuration file holds them; each plugin validates its own."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """Session defaults: a partial ``session`` object of the Realtime API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a deployment that would keep it from serving."""

    where: str
    """The setting at fault as a dotted path below the deployment, such as ``settings.whisper.model_dir``."""
    message: str
    """What is wrong and how to mend it, in one or two sentences."""
