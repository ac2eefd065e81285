"""Find, load and check the one plugin that a deployment names.

A plugin is a module (or any object) with hook implementations and ``OMNI_REALTIME_API``, named by an entry point in the group
``omni_realtime``. Only the entry point that is asked for is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from omni_realtime import __version__, defaults, hookspecs

API_VERSION = 1
"""The version of hooks, ports and value types; a plugin declares the one it was written for as ``OMNI_REALTIME_API``."""

GROUP = hookspecs.PROJECT
"""The group of entry points."""

HOOK_NAMES: tuple[str, ...] = tuple(sorted(name for name in vars(hookspecs) if name.startswith("realtime_")))
"""Every hook that a plugin can implement."""


class PluginError(Exception):
    """A plugin is missing, broken or incompatible; the message names it, the cause, and what to do.

    ``cause`` is the message without the names before it and the alternatives after it.
    """

    def __init__(self, subject: str, cause: str, alternatives: str = "") -> None:
        super().__init__(" ".join(filter(None, (subject, cause, alternatives))))
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A loaded plugin; each has a hook manager of its own, so that no plugin answers for another."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...]
    """The hooks that it implements itself, in alphabetical order."""
    hook: pluggy.HookRelay
    """Calls a hook: the plugin answers, else the default."""

    def __str__(self) -> str:
        return f"Plugin '{self.name}' of {self.distribution} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """What is installed under one name: its hooks, or the error that loading it gives."""

    name: str
    distribution: str
    version: str
    entry_point: str
    hooks: tuple[str, ...] = ()
    error: str | None = None


def load_plugin(name: str) -> Plugin:
    """Import the plugin of this name, and no other.

    Raises:
        PluginError: if it is missing, named twice, cannot be imported, or does not fit this version of the core.
    """
    entry_point = _find(name)
    try:
        loaded = entry_point.load()
    except (Exception, SystemExit) as error:
        cause = f"cannot be imported: {type(error).__name__}: {error}. Mend or reinstall {_distribution(entry_point)}."
        raise _refusal(entry_point, cause) from error
    _check_api(entry_point, loaded)
    manager = _register(entry_point, loaded)
    distribution, version = _origin(entry_point)
    hooks = tuple(sorted(caller.name for caller in manager.get_hookcallers(loaded) or () if caller.has_spec()))
    return Plugin(name=name, distribution=distribution, version=version, hooks=hooks, hook=manager.hook)


def installed_plugins() -> list[PluginInfo]:
    """Import every installed plugin and tell its hooks; a broken one is told as such and stops nothing."""
    return [_inspect(entry_point) for entry_point in _entry_points()]


def _entry_points(name: str | None = None) -> Sequence[EntryPoint]:
    found = entry_points(group=GROUP) if name is None else entry_points(group=GROUP, name=name)
    return sorted(found, key=lambda entry_point: (entry_point.name, *_origin(entry_point)))


def _find(name: str) -> EntryPoint:
    found = _entry_points(name)
    if not found:
        cause = (
            f"is not installed: no distribution has the entry point '{name}' in the group '{GROUP}'. "
            "Install the distribution that brings it, or name another plugin in the deployment."
        )
        raise PluginError(f"Plugin '{name}'", cause, _alternatives(name))
    if len(found) > 1:
        owners = " and ".join(f"{_distribution(entry_point)} ({entry_point.value})" for entry_point in found)
        cause = f"is named by more than one entry point in the group '{GROUP}': {owners}. Uninstall all but one."
        raise PluginError(f"Plugin '{name}'", cause, _alternatives(name))
    return found[0]


def _inspect(entry_point: EntryPoint) -> PluginInfo:
    hooks: tuple[str, ...] = ()
    problem = None
    try:
        hooks = load_plugin(entry_point.name).hooks
    except PluginError as error:
        problem = error.cause
    distribution, version = _origin(entry_point)
    return PluginInfo(
        name=entry_point.name, distribution=distribution, version=version, entry_point=entry_point.value, hooks=hooks, error=problem
    )


def _check_api(entry_point: EntryPoint, loaded: object) -> None:
    declared = getattr(loaded, "OMNI_REALTIME_API", None)
    if not isinstance(declared, int):
        cause = f"declares no API version: set OMNI_REALTIME_API = {API_VERSION} in {entry_point.value}."
        raise _refusal(entry_point, cause)
    if declared != API_VERSION:
        stale = "omni-realtime" if declared > API_VERSION else _origin(entry_point)[0]
        cause = f"is written for API version {declared}, and omni-realtime {__version__} offers version {API_VERSION}: upgrade {stale}."
        raise _refusal(entry_point, cause)


def _register(entry_point: EntryPoint, loaded: Any) -> pluggy.PluginManager:
    if inspect.isclass(loaded):
        raise _refusal(entry_point, "is a class: let the entry point name a module or an instance.")
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(defaults)
    try:
        manager.register(loaded)
    except pluggy.PluginValidationError as error:
        cause = f"does not fit a hook's signature: {' '.join(str(error).split())}. Take the argument names from omni_realtime.hookspecs."
        raise _refusal(entry_point, cause) from error
    _check_hooks(entry_point, loaded, manager.get_hookcallers(loaded) or [])
    return manager


def _check_hooks(entry_point: EntryPoint, loaded: object, callers: Sequence[pluggy.HookCaller]) -> None:
    known = f"The hooks of omni-realtime {__version__} are {', '.join(HOOK_NAMES)}."
    unmarked = [name for name in HOOK_NAMES if inspect.isroutine(getattr(loaded, name, None)) and name not in {c.name for c in callers}]
    if unmarked:
        raise _refusal(entry_point, f"defines {', '.join(unmarked)} without the decorator omni_realtime.hookspecs.hookimpl: add it.")
    if not callers:
        raise _refusal(entry_point, f"is no plugin: {entry_point.value} implements no hook. {known}")
    unknown = [c.name for c in callers if not (c.has_spec() or all(impl.optionalhook for impl in c.get_hookimpls()))]
    if unknown:
        raise _refusal(entry_point, f"implements the unknown hook {', '.join(unknown)}. {known}")


def _refusal(entry_point: EntryPoint, cause: str) -> PluginError:
    subject = f"Plugin '{entry_point.name}' of {_distribution(entry_point)} (entry point {entry_point.value})"
    return PluginError(subject, cause, _alternatives(entry_point.name))


def _alternatives(name: str) -> str:
    others = [f"{entry_point.name} ({_distribution(entry_point)})" for entry_point in _entry_points() if entry_point.name != name]
    return f"Other installed plugins: {', '.join(others)}." if others else "No other plugin is installed."


def _distribution(entry_point: EntryPoint) -> str:
    return " ".join(_origin(entry_point))


def _origin(entry_point: EntryPoint) -> tuple[str, str]:
    distribution = entry_point.dist
    return (distribution.name, distribution.version) if distribution else ("an unknown distribution", "without a version")
