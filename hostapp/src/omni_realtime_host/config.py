"""Loads the configuration file and says everything that is wrong with it, where, and how to mend it."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from omni_realtime_host.config_schema import Config, DeploymentConfig
from omni_realtime_host.problems import ConfigError, ConfigProblem
from omni_realtime_host.yaml_locations import Document, Key, read_document
from omni_realtime_host.yaml_locations import Path as KeyPath

_MENDS = {
    "missing": "this key is required; add it",
    "tuple_type": "this must be a list: one entry a line, each behind a dash",
    "model_type": "this must hold keys of its own, indented below it",
    "dict_type": "this must hold keys of its own, indented below it",
    "too_short": "at least one is required; see deployments/local.yaml for one that works",
    "string_pattern_mismatch": "a name begins with a letter or a digit, and holds letters, digits and . _ : / - alone",
}


class ConfigFile:
    """A configuration and the file that it came from.

    Attributes:
        config: the whole, once nothing is wrong with it.
        sound_deployments: the deployments that can be read by themselves, each with its index.
    """

    def __init__(self, file: Path, document: Document, overrides: Mapping[KeyPath, str]) -> None:
        self._file = file
        self._document = document
        self._overrides = overrides
        self.config: Config
        self.sound_deployments = _sound_deployments(document.value)

    def problem(self, path: KeyPath, message: str) -> ConfigProblem:
        """Make a problem of the value at ``path``."""
        where = self._overrides.get(path) or f"{self._file}:{self._document.line(path)}"
        return ConfigProblem(where, path, message)


def load_config(file: Path, *, host: str | None = None, port: int | None = None) -> ConfigFile:
    """Read and check ``file``; ``host`` and ``port`` come from the command line and replace those of the file.

    Raises:
        ConfigError: with every problem that was found.
    """
    document = _read(file)
    value, overrides = _override(document.value, {"host": host, "port": port})
    config_file = ConfigFile(file, document, overrides)
    problems = [
        config_file.problem(duplicate.path, f"this key stands here and in line {duplicate.first_line}; keep one of them")
        for duplicate in document.duplicates
    ]
    problems += _duplicate_names(config_file, value)
    try:
        config_file.config = Config.model_validate(value, context={"directory": file.parent})
    except ValidationError as error:
        found = _without_echoes(error.errors(include_url=False, include_input=False))
        problems += [_explain(config_file, details) for details in found]
    if problems:
        raise ConfigError(problems, config_file)
    return config_file


def _sound_deployments(value: Any) -> tuple[tuple[int, DeploymentConfig], ...]:
    """Return the deployments that can be read by themselves, whatever else is wrong, each with its index."""
    sections = value.get("deployments")
    found = []
    for index, section in enumerate(sections if isinstance(sections, list) else ()):
        with contextlib.suppress(ValidationError):
            found.append((index, DeploymentConfig.model_validate(section)))
    return tuple(found)


def _read(file: Path) -> Document:
    try:
        document = read_document(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError([ConfigProblem(str(file), (), f"cannot be read: {reason}; give the path of a YAML file")]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
        raise ConfigError([ConfigProblem(where, (), f"this is not YAML: {error.problem or error.context}")]) from error
    except yaml.YAMLError as error:
        raise ConfigError([ConfigProblem(str(file), (), f"this is not YAML: {error}")]) from error
    except RecursionError as error:
        raise ConfigError([ConfigProblem(str(file), (), "this is nested too deep; a configuration needs a few levels")]) from error
    if not isinstance(document.value, dict):
        raise ConfigError([ConfigProblem(str(file), (), "the file holds no keys; it needs at least `deployments:`")])
    return document


def _override(value: dict[Any, Any], options: Mapping[str, Any]) -> tuple[dict[Any, Any], dict[KeyPath, str]]:
    given = {key: option for key, option in options.items() if option is not None}
    server = value.get("server") or {}
    if not given or not isinstance(server, dict):
        return value, {}
    overrides: dict[KeyPath, str] = {("server", key): f"--{key}" for key in given}
    return {**value, "server": {**server, **given}}, overrides


def _duplicate_names(config_file: ConfigFile, value: dict[Any, Any]) -> list[ConfigProblem]:
    seen: set[str] = set()
    problems = []
    deployments = value.get("deployments")
    for index, deployment in enumerate(deployments if isinstance(deployments, list) else ()):
        name = deployment.get("name") if isinstance(deployment, dict) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            problems.append(config_file.problem(("deployments", index, "name"), f"another deployment is named {name!r}; names must differ"))
        seen.add(name)
    return problems


def _without_echoes(found: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out that a list is too short where its entries are at fault: pydantic counts the good ones."""
    places = [details["loc"] for details in found]
    return [
        details
        for details in found
        if details["type"] != "too_short" or not any(place[: len(details["loc"])] == details["loc"] != place for place in places)
    ]


def _explain(config_file: ConfigFile, details: ErrorDetails) -> ConfigProblem:
    path: KeyPath = tuple(details["loc"])
    message = _MENDS.get(details["type"]) or details["msg"]
    if details["type"] == "extra_forbidden":
        message = _unknown_key(path)
    elif details["type"] == "keys":
        path = (*path, "host")
    return config_file.problem(path, message)


def _unknown_key(path: KeyPath) -> str:
    known = _keys_at(path[:-1])
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
    return f"this key is unknown; {hint}"


def _keys_at(path: KeyPath) -> list[str]:
    model: type[BaseModel] = Config
    for key in path:
        if isinstance(key, str):
            model = _section(model, key)
    return sorted(model.model_fields)


def _section(model: type[BaseModel], key: Key) -> type[BaseModel]:
    annotation = model.model_fields[str(key)].annotation
    candidates = (annotation, *get_args(annotation))
    return next(each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel))
