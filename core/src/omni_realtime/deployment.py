"""One deployment: a model that is served under a name, by a plugin, with the plugin's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omni_realtime.protocol.prompt_template import PromptTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """What all sessions of a deployment may take together in a minute; ``None`` for no limit."""

    requests_per_minute: int | None = None
    """Responses."""
    tokens_per_minute: int | None = None
    """Tokens of prompts and answers, as ``usage`` counts them."""


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
    detector: str | None = None
    """Another plugin whose speech detector this deployment uses, for ``server_vad``, and whose turn scorer, if it has one."""
    transcriber: str | None = None
    """Another plugin whose transcriber this deployment uses, for input transcription."""
    prompts: tuple[PromptTemplate, ...] = ()
    """The templates that clients may name as ``session.prompt`` and ``response.prompt``."""
    rate_limits: RateLimits | None = None
    """What all sessions together may take in a minute."""
    on_active_response: Literal["refuse", "replace"] = "refuse"
    """What a ``response.create`` during a response does: ``refuse``, as the API does, or ``replace`` it if the new one can be served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a deployment that would keep it from serving."""

    where: str
    """The setting at fault as a dotted path below the deployment, such as ``settings.whisper.model_dir``."""
    message: str
    """What is wrong and how to mend it, in one or two sentences."""
