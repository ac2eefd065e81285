"""vLLM-Omni's deploy YAML, read without vLLM-Omni: what a deployment will run with, for plugins that check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from omni_realtime.deployment import Problem

WHERE = "settings.engine.deploy_config"


class DeployConfigError(Exception):
    """The deploy YAML cannot be read; the message says how to mend that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployConfig:
    """A deploy YAML with what the deployment sets over it."""

    document: Mapping[str, Any]
    engine_args: Mapping[str, Any]
    stage_overrides: Mapping[str, Mapping[str, Any]]

    def get(self, name: str, default: Any = None) -> Any:
        """A setting of the whole pipeline."""
        return self.engine_args.get(name, self.document.get(name, default))

    def get_of_stage(self, stage_id: int, name: str, default: Any = None) -> Any:
        """A setting of one stage."""
        written: Mapping[str, Any] = next((stage for stage in self.document.get("stages") or [] if stage["stage_id"] == stage_id), {})
        for source in (self.stage_overrides.get(str(stage_id), {}), self.engine_args, written):
            if name in source:
                return source[name]
        return default

    @property
    def stage_ids(self) -> tuple[int, ...]:
        """The stages that the YAML names."""
        return tuple(stage["stage_id"] for stage in self.document.get("stages") or [])


def read_deploy_config(engine: Mapping[str, Any]) -> DeployConfig:
    """Read what ``settings.engine`` of a deployment on vLLM-Omni will run with.

    Args:
        engine: these settings, with a ``deploy_config``: a path, or the name of a YAML that vLLM-Omni ships.

    Raises:
        DeployConfigError: if there is no such YAML, or it is none.
    """
    return DeployConfig(
        document=_read(_find(str(engine["deploy_config"]))),
        engine_args=engine.get("engine_args") or {},
        stage_overrides={str(stage): given for stage, given in (engine.get("stage_overrides") or {}).items()},
    )


def parts_limit(limits: Mapping[str, Any], modality: str) -> int | None:
    """The most parts of a modality in one prompt by ``limit_mm_per_prompt``; ``None`` where it says nothing of it."""
    limit = limits.get(modality)
    return int(limit["count"] if isinstance(limit, Mapping) else limit) if limit is not None else None


def installation_problems() -> list[Problem]:
    """Whether vLLM-Omni is installed."""
    if find_spec("vllm_omni"):
        return []
    message = "vLLM-Omni is not installed: pip install vllm==0.30.0 vllm-omni==0.30.0, or let settings.engine name another engine."
    return [Problem(where="settings.engine.type", message=message)]


def duplex_problems(config: DeployConfig, mend: str) -> list[Problem]:
    """Whether the YAML is for turns; ``mend`` names one that is."""
    if config.get("session_mode", "turn") == "turn":
        return []
    return [Problem(where=WHERE, message=f"This deploy config is for native duplex, and this plugin serves turns: {mend}")]


def _find(name: str) -> Path:
    file = Path(name)
    if file.is_file():
        return file
    if file.parent == Path() and (shipped := shipped_folder()) is not None:
        if (shipped / file).is_file():
            return shipped / file
        raise DeployConfigError(f"There is no deploy config {name}, here or among vLLM-Omni's own in {shipped}: correct its name.")
    raise DeployConfigError(f"There is no deploy config {name}: give a path that exists, or the name of one that vLLM-Omni ships.")


def shipped_folder() -> Path | None:
    """Where an installed vLLM-Omni has its deploy YAMLs."""
    package = find_spec("vllm_omni")
    return Path(package.submodule_search_locations[0], "deploy") if package and package.submodule_search_locations else None


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DeployConfigError(f"{file} cannot be read as YAML: mend it.") from error
    if not isinstance(document, dict) or not _are_stages(document.get("stages") or []):
        raise DeployConfigError(f"{file} is no deploy config: it has to be a mapping whose stages each have a stage_id.")
    base = document.pop("base_config", None)
    if base is None:
        return document
    inherited = _read(file.parent / str(base))
    return {**inherited, **document, "stages": _merged(inherited.get("stages") or [], document.get("stages") or [])}


def _are_stages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(stage, dict) and isinstance(stage.get("stage_id"), int) for stage in value)


def _merged(inherited: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    stages = {stage["stage_id"]: dict(stage) for stage in inherited}
    for stage in own:
        stages.setdefault(stage["stage_id"], {}).update(stage)
    return list(stages.values())
