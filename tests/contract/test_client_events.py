"""Every client event of the official client, with every field set, null, and of a wrong type: an effect, or one error that names it."""

from __future__ import annotations

import pytest

from contract import Played, played
from official_fields import EVENT_ID

ALIASES = {"gpt-realtime": "scripted", "marin": "anna", "whisper-1": "ears"}
"""Names of the API that stand for what the deployment has."""


@pytest.mark.parametrize("played", played(), ids=lambda played: str(played.case))
def test_an_event_has_its_effect_or_one_error_that_names_the_field(played: Played) -> None:
    case, error = played.case, played.error
    assert played.served or played.refused, (case, played.answers)
    assert [event["type"] for event in played.afterwards] == ["session.updated"]
    assert not played.closed
    if case.variation == "wrong type":
        assert error
    if error:
        assert error["type"] == "invalid_request_error"
        assert error["code"]
        assert error["event_id"] == (EVENT_ID if case.event["event_id"] == EVENT_ID else None)
    elif case.param.startswith("session."):
        _check_echo(played)


def _check_echo(played: Played) -> None:
    """What was set is in force."""
    case = played.case
    if case.variation != "set" or case.value in ({}, [], EVENT_ID) or case.label.endswith("voice.id"):
        return
    in_force = played.answers[0]
    for name in case.param.split("."):
        in_force = in_force[int(name)] if isinstance(in_force, list) else (in_force or {}).get(name)
    expected = ALIASES.get(case.value, case.value) if isinstance(case.value, str) else case.value
    if isinstance(expected, dict) and isinstance(in_force, str):
        assert in_force == expected["id"]
    elif isinstance(expected, dict):
        assert expected.items() <= in_force.items()
    else:
        assert in_force == expected
