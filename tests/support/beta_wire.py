"""Checks a server's frames of the beta dialect against the official client's own models of it."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
from openai.types.beta.realtime import RealtimeServerEvent
from pydantic import BaseModel

_UNMODELLED = frozenset({".session.object", ".session.expires_at"})
_UNMODELLED_IN_TRANSCRIPTION = frozenset({
    ".session.id",
    ".session.include",
    ".session.input_audio_noise_reduction",
    ".session.turn_detection.create_response",
    ".session.turn_detection.interrupt_response",
})
"""What the dialect's sessions have beyond the official classes; a transcription session has what its update has."""


def check_beta_event(frame: str) -> dict[str, Any]:
    """Return the event of a frame that is valid by ``openai.types.beta.realtime`` in strict mode and holds no key of our own.

    Raises:
        AssertionError: the event has a key that the dialect lacks, or an item has a null.
        ValidationError: the event does not validate.
    """
    event: dict[str, Any] = orjson.loads(frame)
    modelled = _as_modelled(event)
    model = _classes()[modelled["type"]].model_validate_json(orjson.dumps(modelled), strict=True)
    extra = set(_extra(model, "")) - _UNMODELLED
    if modelled["type"] == "transcription_session.updated":
        extra -= _UNMODELLED_IN_TRANSCRIPTION
    assert not extra, f"{event['type']}: keys that the dialect lacks: {sorted(extra)}"
    for item in (event.get("item"), *event.get("response", {}).get("output", ())):
        nulls = [key for key, value in (item or {}).items() if value is None]
        assert not nulls, f"an item's keys are null instead of absent: {nulls}"
    return event


def beta_server_events() -> frozenset[str]:
    """Return the types of all events of the official union."""
    return frozenset(_classes())


@cache
def _classes() -> dict[str, type[BaseModel]]:
    union = typing.get_args(RealtimeServerEvent)[0]
    return {typing.get_args(cls.model_fields["type"].annotation)[0]: cls for cls in typing.get_args(union)}


def _as_modelled(event: dict[str, Any]) -> dict[str, Any]:
    """Put the official classes' own words where they know no others: OpenAI's models, a choice by name, a secret of the REST call."""
    if "session" not in event:
        return event
    session = dict(event["session"])
    if event["type"].startswith("transcription_"):
        session["client_secret"] = {"expires_at": 0, "value": ""}
        session["input_audio_transcription"] = (session["input_audio_transcription"] or {}) | {"model": "whisper-1"}
        kind = event["type"].replace(".created", ".updated")  # the union lacks the event of the beginning
        return event | {"session": session, "type": kind}
    if isinstance(session["tool_choice"], dict):
        session["tool_choice"] = session["tool_choice"]["name"]
    return event | {"session": session | {"model": "gpt-realtime"}}


def _extra(value: object, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for inner in value:
            yield from _extra(inner, f"{path}[]")
    if isinstance(value, BaseModel):
        yield from (f"{path}.{key}" for key in value.model_extra or {})
        for name in value.model_fields_set & type(value).model_fields.keys():
            yield from _extra(getattr(value, name), f"{path}.{name}")
