"""The engines that a deployment can name in ``settings.engine.type``; each is imported only when one names it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

import pluggy
from pydantic import ValidationError

from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.port import Engine

ADAPTERS = ("vllm_omni", "vllm", "chat_completions")
"""The engine types, which are also the names of their packages below ``omni_realtime.engine``."""


class EngineAdapter(Protocol):
    """What each of these packages offers; importing it imports no engine."""

    def read_settings(self, section: Mapping[str, Any]) -> Any:
        """Check ``settings.engine``.

        Raises:
            pydantic.ValidationError: if something in it is wrong.
        """
        ...

    def make_engine(self, settings: Any, hook: pluggy.HookRelay) -> Engine:
        """Make the engine of settings that ``read_settings`` returned, without loading it."""
        ...


class UnknownEngineError(ValueError):
    """``settings.engine`` names no engine that there is."""


def create_engine(deployment: Deployment, hook: pluggy.HookRelay) -> Engine | None:
    """Make the engine that a deployment's settings describe; ``None`` where they describe none.

    Raises:
        UnknownEngineError: if there is no engine of that type.
        pydantic.ValidationError: if a setting is wrong.
    """
    section = deployment.settings.get("engine")
    if section is None:
        return None
    adapter = _adapter(section)
    return adapter.make_engine(adapter.read_settings(section), hook)


def engine_problems(deployment: Deployment) -> list[Problem]:
    """Every fault of ``settings.engine``, each with the words that mend it; nothing is loaded."""
    section = deployment.settings.get("engine")
    if section is None:
        return [Problem(where="settings.engine", message=f"Describe the engine: at least its type, one of {', '.join(ADAPTERS)}.")]
    try:
        _adapter(section).read_settings(section)
    except UnknownEngineError as error:
        return [Problem(where="settings.engine.type", message=str(error))]
    except ValidationError as error:
        return [_problem(details["loc"], details["msg"], details["type"]) for details in error.errors()]
    return []


def _adapter(section: Any) -> EngineAdapter:
    kind = section.get("type") if isinstance(section, Mapping) else None
    if kind not in ADAPTERS:
        raise UnknownEngineError(f"There is no engine {kind!r}: name one of {', '.join(ADAPTERS)}.")
    return cast("EngineAdapter", import_module(f"omni_realtime.engine.{kind}"))


def _problem(path: tuple[int | str, ...], message: str, kind: str) -> Problem:
    where = ".".join(("settings", "engine", *map(str, path)))
    if kind == "extra_forbidden":
        message = "There is no such setting: remove it or correct its name; what goes to the engine itself stands under engine_args."
    elif kind == "missing":
        message = "This setting is missing: add it."
    return Problem(where=where, message=message)
