"""The real clients against real servers; each in an environment of its own: ``make test-clients``."""

from __future__ import annotations

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave these tests out of a run of all tests; ``pytest.toml`` beside this names the plugin with their servers."""
    return None if config.pluginmanager.has_plugin("client_servers") else True
