"""Importing the core, all of it, loads no server, no engine, no test tool and no plugin."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import omni_realtime

HEAVY = {"starlette", "uvicorn", "uvloop", "websockets", "torch", "vllm", "vllm_omni", "openai", "httpx", "pytest", "omni_realtime_host"}
ON_DEMAND = "omni_realtime.testing.conformance"
"""The module that needs pytest; no other module of the core imports it."""


def core_modules() -> list[str]:
    found = [module.name for module in pkgutil.walk_packages(omni_realtime.__path__, "omni_realtime.")]
    adapters = [name for name in found if name.startswith("omni_realtime.engine.") and name != "omni_realtime.engine.port"]
    return ["omni_realtime", *(name for name in found if name not in {ON_DEMAND, *adapters})]


def loaded_by(*modules: str) -> set[str]:
    script = (
        f"import importlib, json, sys\nfor name in {modules!r}:\n    importlib.import_module(name)\nprint(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_the_whole_core_is_looked_at() -> None:
    assert {"omni_realtime.plugins", "omni_realtime.session", "omni_realtime.engine.port", "omni_realtime.testing"} <= set(core_modules())


@pytest.mark.parametrize("modules", [("omni_realtime",), tuple(core_modules())], ids=["the package", "every module"])
def test_core_loads_nothing_heavy(modules: tuple[str, ...]) -> None:
    plugins = {entry_point.module.partition(".")[0] for entry_point in entry_points(group="omni_realtime")}
    loaded = loaded_by(*modules)
    assert "omni_realtime" in loaded
    assert not loaded & (HEAVY | plugins)


def test_importing_the_package_alone_loads_no_numbers() -> None:
    assert not loaded_by("omni_realtime") & {"numpy", "pydantic", "soxr", "pluggy"}
