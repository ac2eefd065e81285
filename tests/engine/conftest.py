"""The engine part of the tests; it runs in an environment of its own: ``make test-engine``."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these tests out of a run of all tests; ``pytest.toml`` beside this names the plugin, and fails where the engine is missing."""
    return None if config.pluginmanager.has_plugin("engine_fixtures") else True
