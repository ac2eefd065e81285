"""What plugins check of a deployment before anything loads: settings, and a checkpoint that is a local folder."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from omni_realtime.deployment import Deployment, Problem

MODEL = "settings.engine.model"
TEMPLATE = "settings.engine.chat_template"
TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json")
"""Where a checkpoint has its chat template, if not in ``tokenizer_config.json``."""
HUB_NAME_PARTS = 2
"""An organisation and a name."""


def setting_problems(settings: type[BaseModel], deployment: Deployment) -> list[Problem]:
    """What is wrong with a plugin's settings, one problem a setting."""
    try:
        settings.model_validate(dict(deployment.settings))
    except ValidationError as error:
        return [_problem(settings, details["loc"], details["type"], details["msg"]) for details in error.errors()]
    return []


def with_engine_defaults(deployment: Deployment, **defaults: Any) -> Deployment:
    """The deployment with these settings of its engine, where it has none of its own."""
    engine = deployment.settings.get("engine")
    if not isinstance(engine, Mapping):
        return deployment
    return replace(deployment, settings={**deployment.settings, "engine": {**defaults, **engine}})


def checkpoint_problems(model: str, architectures: Collection[str], **fields: str) -> list[Problem]:
    """Whether a model that is a local folder is the one that the plugin is for; a name on the hub is taken as it is.

    Args:
        model: a folder, or a name on the Hugging Face hub.
        architectures: what ``config.json`` may name as its architecture.
        fields: other fields of ``config.json``, and what they must be.
    """
    folder = Path(model)
    if not folder.is_dir():
        return [] if _may_be_on_hub(model) else [Problem(where=MODEL, message=f"There is no folder {model}: correct the path.")]
    config = _read_json(folder / "config.json")
    if config is None:
        return [Problem(where=MODEL, message=f"{folder / 'config.json'} is missing or no JSON: name the folder of a whole checkpoint.")]
    found = config.get("architectures") or []
    if not set(architectures) & set(found):
        wanted = " or ".join(sorted(architectures))
        message = f"{model} holds {', '.join(map(str, found)) or 'a model without a name'}, and this plugin serves {wanted}: "
        return [Problem(where=MODEL, message=message + "name such a checkpoint, or the plugin of that model.")]
    return [
        Problem(where=MODEL, message=f"{model} has {name} {config.get(name)!r}, and this plugin serves {wanted!r}: name such a checkpoint.")
        for name, wanted in fields.items()
        if str(config.get(name)) != wanted
    ]


def template_problems(model: str, chat_template: str | None) -> list[Problem]:
    """Whether there is a chat template: the deployment's own, or that of a model that is a local folder."""
    if chat_template is not None:
        return [] if Path(chat_template).is_file() else [Problem(where=TEMPLATE, message=f"There is no file {chat_template}: correct it.")]
    folder = Path(model)
    if not folder.is_dir() or any((folder / name).is_file() for name in TEMPLATE_FILES):
        return []
    if "chat_template" in (_read_json(folder / "tokenizer_config.json") or {}):
        return []
    message = f"{model} has no chat template: put the model's chat_template.jinja there, or name a file with one here."
    return [Problem(where=TEMPLATE, message=message)]


def _may_be_on_hub(model: str) -> bool:
    return not model.startswith((".", "~", os.sep)) and len(model.split("/")) <= HUB_NAME_PARTS


def _read_json(file: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _problem(settings: type[BaseModel], path: tuple[int | str, ...], kind: str, message: str) -> Problem:
    where = ".".join(("settings", *map(str, path)))
    if kind == "extra_forbidden":
        message = f"There is no such setting. Known here: {', '.join(sorted(settings.model_fields))}."
    elif kind == "missing":
        message = "This setting is missing: add it."
    return Problem(where=where, message=message.removeprefix("Value error, "))
