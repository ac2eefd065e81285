"""The command ``omni-realtime``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from omni_realtime.plugins import installed_plugins
from omni_realtime_host import __version__
from omni_realtime_host.deployments import load_deployments
from omni_realtime_host.problems import ConfigError
from omni_realtime_host.served_model import StartError
from omni_realtime_host.server import ListenError, open_socket, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, or 1 where something has to be mended first."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("omni_realtime_host").setLevel(logging.INFO)  # at INFO other packages may log what is private
    try:
        status: int = options.command(options)
    except ConfigError as error:
        for problem in error.problems:
            _tell(str(problem))
        count = len(error.problems)
        _tell(f"{count} problem{'' if count == 1 else 's'} to mend.")
        return 1
    except (ListenError, StartError) as error:
        _tell(f"omni-realtime: {error}")
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="omni-realtime", description="Serve omni models through the OpenAI Realtime API.")
    parser.add_argument("--version", action="version", version=f"omni-realtime-host {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve the deployments of a configuration file")
    serve.add_argument("config", type=Path, metavar="CONFIG", help="a YAML file")
    serve.add_argument("--host", help="listen here instead of where the file says")
    serve.add_argument("--port", type=int, help="listen on this port instead of the file's; 0 lets the system choose")
    serve.set_defaults(command=_serve)
    check = commands.add_parser("check", help="find every problem of a configuration file, and load nothing heavy")
    check.add_argument("config", type=Path, metavar="CONFIG", help="a YAML file")
    check.set_defaults(command=_check)
    plugins = commands.add_parser("plugins", help="list what is installed, with versions and hooks")
    plugins.set_defaults(command=_plugins)
    return parser


def _serve(options: argparse.Namespace) -> int:
    config, adapters = load_deployments(options.config, host=options.host, port=options.port)
    run(config.server, adapters, open_socket(config.server), _tell)
    return 0


def _check(options: argparse.Namespace) -> int:
    _, adapters = load_deployments(options.config)
    for adapter in adapters:
        _say(f"{adapter.deployment.name}: {adapter.plugin}")
    _say(f"{options.config}: no problem found.")
    return 0


def _plugins(_options: argparse.Namespace) -> int:
    found = installed_plugins()
    for plugin in found:
        _say(f"{plugin.name}: {plugin.distribution} {plugin.version} ({plugin.entry_point})")
        _say(f"  broken: {plugin.error}" if plugin.error else f"  hooks: {', '.join(plugin.hooks)}")
    if not found:
        _tell("No plugin is installed. Install one, such as omni-realtime-local.")
    return 1 if any(plugin.error for plugin in found) else 0


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the answer of a command


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - for the person at the terminal
