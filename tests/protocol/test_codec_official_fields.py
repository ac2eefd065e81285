from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from openai.types.realtime import RealtimeResponseCreateParams, RealtimeSessionCreateRequest
from pydantic import BaseModel

from omni_realtime.protocol import Capabilities, ProtocolError, SessionConfig, response_settings, update_session

TOOL = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}

SESSION: dict[str, tuple[object, bool]] = {
    "type": ("realtime", True),
    "model": ("served", True),
    "output_modalities": (["text"], True),
    "instructions": ("x", True),
    "tools": ([TOOL], True),
    "tool_choice": ("none", True),
    "parallel_tool_calls": (True, True),
    "max_output_tokens": (5, True),
    "tracing": ({"workflow_name": "w"}, True),
    "truncation": ({"type": "retention_ratio", "retention_ratio": 0.8, "token_limits": {"post_instructions": 500}}, True),
    "prompt": ({"id": "p"}, False),
    "include": (["item.input_audio_transcription.logprobs"], False),
    "reasoning": ({"effort": "low"}, True),
    "audio.input.format": ({"type": "audio/pcmu"}, True),
    "audio.input.noise_reduction": ({"type": "far_field"}, False),
    "audio.input.transcription.model": ("gpt-4o-mini-transcribe", True),
    "audio.input.transcription.language": ("en", True),
    "audio.input.transcription.prompt": ("x", True),
    "audio.input.transcription.keywords": (["x"], False),
    "audio.input.transcription.languages": (["en"], True),
    "audio.input.transcription.delay": ("low", False),
    "audio.input.turn_detection": ({"type": "semantic_vad", "eagerness": "high"}, True),
    "audio.output.format": ({"type": "audio/pcma"}, True),
    "audio.output.voice": ("marin", True),
    "audio.output.speed": (1.0, True),
}
"""A value for every field of the official session, and whether it is served."""

RESPONSE: dict[str, tuple[object, bool]] = {
    "conversation": ("none", True),
    "input": ([{"type": "item_reference", "id": "i"}], True),
    "instructions": ("x", True),
    "metadata": ({"k": "v"}, True),
    "output_modalities": (["text"], True),
    "tools": ([TOOL], True),
    "tool_choice": ("none", True),
    "parallel_tool_calls": (True, True),
    "max_output_tokens": (5, True),
    "prompt": ({"id": "p"}, False),
    "reasoning": ({"effort": "low"}, True),
    "audio.output.format": ({"type": "audio/pcma"}, True),
    "audio.output.voice": ("marin", True),
}


def leaves(model: type[BaseModel], whole: set[str], path: str = "") -> Iterator[str]:
    """Yield the paths of a model's fields; those in ``whole`` are not gone into."""
    for name, field in model.model_fields.items():
        where = f"{path}{name}"
        inner = [cls for cls in _options(field.annotation) if isinstance(cls, type) and issubclass(cls, BaseModel)]
        if where in whole or len(inner) != 1:
            yield where
        else:
            yield from leaves(inner[0], whole, f"{where}.")


def _options(annotation: object) -> Iterator[object]:
    if typing.get_origin(annotation) in {typing.Union, types.UnionType, typing.Annotated}:
        for option in typing.get_args(annotation):
            yield from _options(option)
    else:
        yield annotation


def nest(path: str, value: object) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return typing.cast("dict[str, Any]", value)


def test_samples_cover_every_field_of_the_official_objects() -> None:
    assert set(leaves(RealtimeSessionCreateRequest, SESSION.keys())) == SESSION.keys()
    assert set(leaves(RealtimeResponseCreateParams, RESPONSE.keys())) == RESPONSE.keys()


@pytest.mark.parametrize("path", SESSION)
def test_session_field_is_in_force_or_refused_by_name(session: SessionConfig, capabilities: Capabilities, path: str) -> None:
    value, served = SESSION[path]
    RealtimeSessionCreateRequest.model_validate({"type": "realtime", **nest(path, value)})

    def update(patch: dict[str, Any]) -> SessionConfig:
        return update_session(session, {"type": "realtime", **patch}, capabilities, default=session, voice_locked=False)

    if served:
        update(nest(path, value))
    else:
        with pytest.raises(ProtocolError) as refused:
            update(nest(path, value))
        assert refused.value.param == f"session.{path}"
    if path != "type":
        update(nest(path, None))


@pytest.mark.parametrize("path", RESPONSE)
def test_response_field_is_in_force_or_refused_by_name(session: SessionConfig, capabilities: Capabilities, path: str) -> None:
    value, served = RESPONSE[path]
    if served:
        response_settings(session, nest(path, value), capabilities)
    else:
        with pytest.raises(ProtocolError) as refused:
            response_settings(session, nest(path, value), capabilities)
        assert refused.value.param == f"response.{path}"
    assert response_settings(session, nest(path, None), capabilities) == response_settings(session, {}, capabilities)
