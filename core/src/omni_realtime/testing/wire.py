"""Checks a server's frames against the official client's own models (``pip install openai``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter

_SESSION_KEYS = frozenset({"id", "object", "expires_at"})
"""Keys of the effective session that the API sends beyond the official class."""


def check_server_event(frame: str) -> dict[str, Any]:
    """Return the event of a frame that is valid by ``openai.types.realtime`` in strict mode and holds no key of our own.

    Raises:
        AssertionError: the event has a key that the API lacks, or an item has a null or lacks a transcript key where clients fail.
        ValueError: the frame is not strict JSON, or the event does not validate.
    """
    event: dict[str, Any] = orjson.loads(frame)
    model = _server_events().validate_json(frame, strict=True)
    extra = set(_extra(model, "")) - {f".session.{key}" for key in _SESSION_KEYS}
    assert not extra, f"{event['type']}: keys that the API lacks: {sorted(extra)}"
    for item in (event.get("item"), *event.get("response", {}).get("output", ())):
        _check_item(item or {})
    return event


@cache
def _server_events() -> TypeAdapter[Any]:
    from openai.types.realtime import RealtimeServerEvent  # noqa: PLC0415 - only tests have this package

    return TypeAdapter(RealtimeServerEvent)


def _extra(value: object, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for inner in value:
            yield from _extra(inner, f"{path}[]")
    if isinstance(value, BaseModel):
        yield from (f"{path}.{key}" for key in value.model_extra or {})
        for name in value.model_fields_set & type(value).model_fields.keys():
            yield from _extra(getattr(value, name), f"{path}.{name}")


def _check_item(item: dict[str, Any]) -> None:
    nulls = [key for key, value in item.items() if value is None]
    assert not nulls, f"an item's keys are null instead of absent: {nulls}"
    for part in item.get("content", ()):
        nulls = [key for key, value in part.items() if value is None and key != "transcript"]
        assert not nulls, f"a part's keys are null instead of absent: {nulls}"
        assert part["type"] != "input_audio" or "transcript" in part, "user audio lacks its transcript key"
