"""From the configured deployments to models that can be served, and every problem on the way."""

from __future__ import annotations

from collections.abc import Sequence

from omni_realtime.adapter import Adapter, check_deployment, resolve
from omni_realtime.deployment import Deployment
from omni_realtime.plugins import PluginError, load_plugin
from omni_realtime.protocol import ProtocolError, default_session
from omni_realtime_host.config import ConfigFile
from omni_realtime_host.problems import ConfigError, ConfigProblem
from omni_realtime_host.yaml_locations import Path, parse_dotted


def resolve_deployments(config_file: ConfigFile) -> list[Adapter]:
    """Check every deployment and ask its plugin for what it needs; nothing heavy loads.

    Raises:
        ConfigError: with every problem of every deployment.
    """
    adapters: list[Adapter] = []
    problems: list[ConfigProblem] = []
    for index, section in enumerate(config_file.config.deployments):
        found, adapter = _resolve(section.deployment())
        problems += [config_file.problem(("deployments", index, *path), message) for path, message in found]
        if adapter:
            adapters.append(adapter)
    if problems:
        raise ConfigError(problems)
    return adapters


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
