"""Prints how long the core takes to import, as seconds and as a multiple of a bare interpreter's start."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import time

import omni_realtime

RUNS = 5


def start(modules: list[str]) -> float:
    script = "\n".join(f"import {name}" for name in modules)
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True)
    return time.perf_counter() - begin


def public_modules() -> list[str]:
    """Every module of the core but the test tools and the engine adapters, which a deployment asks for by itself."""
    found = [module.name for module in pkgutil.walk_packages(omni_realtime.__path__, "omni_realtime.")]
    return [
        name
        for name in found
        if name == "omni_realtime.engine.port" or not name.startswith(("omni_realtime.testing", "omni_realtime.engine."))
    ]


def main() -> None:
    cases: dict[str, list[str]] = {
        "bare interpreter": [],
        "import omni_realtime": ["omni_realtime"],
        "every public module": public_modules(),
    }
    rounds = [{name: start(modules) for name, modules in cases.items()} for _ in range(RUNS)]
    best = {name: min(times[name] for times in rounds) for name in cases}
    bare = best.pop("bare interpreter")
    print(f"{'bare interpreter':22} {bare:6.3f} s")
    for name, seconds in best.items():
        print(f"{name:22} {seconds - bare:6.3f} s more, {seconds / bare:5.1f} times a bare start")


if __name__ == "__main__":
    main()
