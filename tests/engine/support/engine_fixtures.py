"""The fixtures of the engine tests, as a pytest plugin of their own environment."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_host import EngineHost, serving
from omni_models import MODELS, OmniModel

TEST_S = 240.0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of a model one after another, so that each engine starts once."""

    def place(item: pytest.Item) -> tuple[int, bool]:
        model = item.callspec.params.get("omni_host") if hasattr(item, "callspec") else None
        return (MODELS.index(model) + 1 if model in MODELS else 0), item.get_closest_marker("kills_engine") is not None

    items.sort(key=place)


@pytest.fixture(scope="session")
def checkpoints() -> Path:
    """The folder of the generated checkpoints, in the tests' environment: they are made again only when a generator changes."""
    directory = Path(sys.prefix) / "checkpoints"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.fixture(scope="session", params=MODELS, ids=str)
def omni_host(request: pytest.FixtureRequest, checkpoints: Path) -> Iterator[EngineHost]:
    """A host on the real engine, for each model; a test of one model says ``parametrize("omni_host", [MODEL], indirect=True)``."""
    model: OmniModel = request.param
    with serving(model, checkpoints) as running:
        yield running


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, None]], None]:
    """Run a test's coroutine on a loop of its own."""

    def run_bounded(test: Coroutine[Any, Any, None]) -> None:
        asyncio.run(asyncio.wait_for(test, TEST_S))

    return run_bounded
