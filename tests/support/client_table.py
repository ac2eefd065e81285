"""Writes the table of tested clients into README.md, from what the clients' tests recorded.

Run it from the checkout after ``make test-clients``: ``PYTHONPATH=tests/support .venv/bin/python -m client_table``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
RESULTS = ROOT / "tests" / "clients" / "results"
BEGIN, END = "<!-- the table of clients: written by the tests -->\n", "<!-- end of the table of clients -->\n"

CLIENTS = {
    "openai-sync": "`openai`, Python",
    "openai-async": "`openai`, Python, async",
    "openai-agents": "`openai-agents`, Python",
    "livekit-plugins-openai": "LiveKit Agents, `livekit-plugins-openai`",
    "pipecat-ai": "Pipecat, `pipecat-ai`",
    "openai-node": "`openai`, Node, over wss",
    "openai-agents-node": "`@openai/agents-realtime`, Node",
    "openai-agents-browser": "`@openai/agents-realtime`, in a browser",
    "openai-realtime-api": "`openai-realtime-api`, Node, the beta of 2024",
    "twilio": "a Twilio-style stream of 20 ms μ-law frames, `websockets`",
}
CHECKS = {
    "conversation": "two spoken turns",
    "tool_call": "tool call",
    "barge_in": "barge-in",
    "errors": "outlives every error",
    "refused_upgrades": "refused upgrade",
    "session_ends": "end of a session",
}


def table() -> str:
    """Return the table, with what a client does otherwise in notes below it."""
    notes: list[str] = []
    lines = [["client", "version", *CHECKS.values()], ["---"] * (len(CHECKS) + 2)]
    for name, title in CLIENTS.items():
        result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
        lines.append([title, result["version"], *(_cell(result["checks"].get(check, "no"), notes) for check in CHECKS)])
    told = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), *(["", *told] if told else [])]) + "\n"


def _cell(outcome: str, notes: list[str]) -> str:
    if outcome in {"yes", "no"}:
        return outcome
    if outcome not in notes:
        notes.append(outcome)
    return f"note {notes.index(outcome) + 1}"


def in_readme() -> str:
    """Return the table that the README has."""
    return README.read_text().partition(BEGIN)[2].partition(END)[0].strip("\n") + "\n"


def _write() -> None:
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    _write()
