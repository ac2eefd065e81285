"""docs/conformance.md says what the tests saw, of everything that the official package has."""

from __future__ import annotations

from conformance_table import ELSEWHERE, PAGE, markdown, server_events
from server_event_scenes import sent_types


def test_the_page_is_what_the_events_came_to() -> None:
    command = "PYTHONPATH=tests/support .venv/bin/python -m conformance_table"
    assert PAGE.read_text() == markdown(), f"docs/conformance.md is stale; write it anew with `{command}`"


def test_every_official_server_event_is_sent_or_has_its_reason() -> None:
    assert sent_types() | ELSEWHERE.keys() == set(server_events())
    assert not sent_types() & ELSEWHERE.keys()
