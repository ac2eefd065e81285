"""The host's README names every key of the configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from omni_realtime_host.config_schema import TLS, DeploymentConfig, Limits, PromptConfig, RateLimitsConfig, Server

README = Path(__file__).parents[2] / "hostapp" / "README.md"


@pytest.mark.parametrize("section", [Server, Limits, TLS, DeploymentConfig, PromptConfig, RateLimitsConfig])
def test_every_key_is_documented_with_its_default(section):
    text = README.read_text(encoding="utf-8")
    for name, field in section.model_fields.items():
        assert f"`{name}`" in text or f".{name}`" in text, name
        if isinstance(field.default, int | float | str):
            assert f"{field.default}" in text, name
