"""From the configured deployments to models that can be served, and every problem on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath

from omni_realtime.adapter import Adapter, check_deployment, resolve
from omni_realtime.deployment import Deployment
from omni_realtime.plugins import PluginError, load_plugin
from omni_realtime.protocol import ProtocolError, default_session
from omni_realtime_host.config import ConfigFile, load_config
from omni_realtime_host.config_schema import Config
from omni_realtime_host.problems import ConfigError, ConfigProblem
from omni_realtime_host.yaml_locations import Path, parse_dotted


def load_deployments(file: FilePath, *, host: str | None = None, port: int | None = None) -> tuple[Config, list[Adapter]]:
    """Read a configuration, check every deployment, and ask its plugin for what it needs; nothing heavy loads.

    ``host`` and ``port`` come from the command line and replace those of the file.

    Raises:
        ConfigError: with every problem of the file and of every deployment that can be read.
    """
    try:
        config_file = load_config(file, host=host, port=port)
    except ConfigError as error:
        problems = _resolve_all(error.config_file)[0] if error.config_file else []
        raise ConfigError([*error.problems, *problems]) from error
    problems, adapters = _resolve_all(config_file)
    if problems:
        raise ConfigError(problems)
    return config_file.config, adapters


def _resolve_all(config_file: ConfigFile) -> tuple[list[ConfigProblem], list[Adapter]]:
    adapters: list[Adapter] = []
    problems: list[ConfigProblem] = []
    for index, section in config_file.sound_deployments:
        found, adapter = _resolve(section.deployment())
        problems += [config_file.problem(("deployments", index, *path), message) for path, message in found]
        if adapter:
            adapters.append(adapter)
    return problems, adapters


def _resolve(deployment: Deployment) -> tuple[Sequence[tuple[Path, str]], Adapter | None]:
    found = [(parse_dotted(problem.where), problem.message) for problem in check_deployment(deployment)]
    if found:
        return found, None
    try:
        adapter = resolve(deployment, load_plugin(deployment.plugin))
    except PluginError as error:
        return [(("plugin",), str(error))], None
    try:
        default_session(
            session_id="sess_check", model=deployment.name, capabilities=adapter.capabilities, defaults=deployment.session, expires_at=0
        )
    except ProtocolError as error:
        return [(parse_dotted(error.param or "session"), error.message)], None
    return [], adapter
