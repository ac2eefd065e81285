from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

Install = Callable[..., None]

GOOD = """
from omni_realtime.chat import ChatPrompt
from omni_realtime.hookspecs import hookimpl
from omni_realtime.testing import ScriptedEngine

OMNI_REALTIME_API = 1

@hookimpl
def realtime_engine(deployment):
    return ScriptedEngine()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a distribution on sys.path as an installer would: its modules, and a dist-info folder with its entry points."""
    before = set(sys.modules)

    def install(distribution: str, plugins: Mapping[str, str], modules: Mapping[str, str], *, version: str = "1.2") -> None:
        site = tmp_path / f"site-{distribution}"
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"{name} = {value}" for name, value in plugins.items()]
        (info / "entry_points.txt").write_text("\n".join(["[omni_realtime]", *lines, ""]))
        for name, source in modules.items():
            (site / f"{name}.py").write_text(dedent(source))
        monkeypatch.syspath_prepend(str(site))

    yield install
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def install_good(install: Install) -> Install:
    def install_good(name: str = "good", source: str = "", *, version: str = "1.2") -> None:
        """One working plugin; ``source`` adds to its module."""
        install(f"omni-realtime-{name}", {name: f"{name}_adapter"}, {f"{name}_adapter": GOOD + dedent(source)}, version=version)

    return install_good
