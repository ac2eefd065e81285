from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from omni_realtime.protocol import (
    Capabilities,
    FunctionTool,
    FunctionToolChoice,
    InputText,
    ItemReference,
    Message,
    ProtocolError,
    SessionConfig,
    check_item,
    decode,
    default_session,
    response_settings,
    update_session,
)
from pictures import input_image, png

TEXT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
AUDIO = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]}
IMAGE = {"type": "message", "role": "user", "content": [input_image(png())]}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


@pytest.fixture
def busy(session: SessionConfig, capabilities: Capabilities) -> SessionConfig:
    """A session in which nothing is as it was at the start."""
    patch = {
        "type": "realtime",
        "instructions": "Rhyme.",
        "output_modalities": ["audio"],
        "tools": [{"name": "f"}],
        "tool_choice": "required",
        "max_output_tokens": 9,
        "audio": {"output": {"voice": "bert", "format": {"type": "audio/pcmu"}}},
    }
    return update_session(session, patch, capabilities, default=session, voice_locked=False)


def test_without_parameters_the_session_holds(busy: SessionConfig, capabilities: Capabilities) -> None:
    settings = response_settings(busy, {}, capabilities)
    assert (settings.conversation, settings.input, settings.metadata) == ("auto", None, None)
    assert settings.instructions == "Rhyme."
    assert settings.output_modalities == ("audio",)
    assert settings.tools == (FunctionTool(name="f"),)
    assert settings.tool_choice == "required"
    assert settings.max_output_tokens == 9
    assert settings.parallel_tool_calls is True
    assert (settings.output_format, settings.voice) == ("audio/pcmu", "bert")


PARAMETERS: dict[str, Any] = {
    "conversation": "none",
    "input": [TEXT, {"type": "item_reference", "id": "item_1"}],
    "instructions": "",
    "output_modalities": ["text"],
    "tools": [{"type": "function", "name": "g"}],
    "tool_choice": {"type": "function", "name": "g"},
    "max_output_tokens": "inf",
    "metadata": {"k": "v"},
    "audio": {"output": {"voice": "anna", "format": {"type": "audio/pcm"}}},
    "parallel_tool_calls": False,
    "reasoning": {"effort": "high"},
}


def test_parameters_lie_over_the_session_for_this_response_alone(busy: SessionConfig, capabilities: Capabilities) -> None:
    settings = response_settings(busy, PARAMETERS, capabilities)
    assert settings.conversation == "none"
    assert settings.input == (Message(role="user", content=(InputText(text="hi"),)), ItemReference(id="item_1"))
    assert settings.instructions == ""
    assert settings.output_modalities == ("text",)
    assert settings.tools == (FunctionTool(name="g"),)
    assert settings.tool_choice == FunctionToolChoice(type="function", name="g")
    assert settings.max_output_tokens == "inf"
    assert settings.metadata == {"k": "v"}
    assert (settings.output_format, settings.voice) == ("audio/pcm", "anna")
    assert settings.parallel_tool_calls is False
    assert response_settings(busy, {}, capabilities).instructions == "Rhyme.", "one response's instructions do not leak"


@pytest.mark.parametrize("name", [*PARAMETERS, "prompt"])
def test_null_is_absent(busy: SessionConfig, capabilities: Capabilities, name: str) -> None:
    assert response_settings(busy, {name: None}, capabilities) == response_settings(busy, {}, capabilities)


@pytest.mark.parametrize("audio", [{"output": None}, {"output": {"voice": None, "format": None}}, {}])
def test_null_is_absent_in_audio(busy: SessionConfig, capabilities: Capabilities, audio: object) -> None:
    assert response_settings(busy, {"audio": audio}, capabilities) == response_settings(busy, {}, capabilities)


def test_empty_input_is_an_empty_context(session: SessionConfig, capabilities: Capabilities) -> None:
    assert response_settings(session, {"input": []}, capabilities).input == ()


def test_openai_voice_stands_for_the_voice_in_force(busy: SessionConfig, capabilities: Capabilities) -> None:
    assert response_settings(busy, {"audio": {"output": {"voice": "alloy"}}}, capabilities).voice == "bert"


def test_metadata_limits_are_exact(session: SessionConfig, capabilities: Capabilities) -> None:
    full = {f"{index:064}": "v" * 512 for index in range(16)}
    assert response_settings(session, {"metadata": full}, capabilities).metadata == full


REFUSED = [
    ("unknown key", {"colour": 1}, "unknown_parameter", "response.colour"),
    ("unknown null", {"colour": None}, "unknown_parameter", "response.colour"),
    ("session's key", {"turn_detection": None}, "unknown_parameter", "response.turn_detection"),
    ("beta modalities", {"modalities": ["text"]}, "unknown_parameter", "response.modalities"),
    ("beta voice", {"voice": "anna"}, "unknown_parameter", "response.voice"),
    ("beta format", {"output_audio_format": "pcm16"}, "unknown_parameter", "response.output_audio_format"),
    ("input audio", {"audio": {"input": {}}}, "unknown_parameter", "response.audio.input"),
    ("conversation", {"conversation": "conv_1"}, "invalid_value", "response.conversation"),
    ("conversation type", {"conversation": 5}, "invalid_type", "response.conversation"),
    ("both modalities", {"output_modalities": ["text", "audio"]}, "invalid_value", "response.output_modalities"),
    ("voice", {"audio": {"output": {"voice": "x"}}}, "invalid_value", "response.audio.output.voice"),
    ("voice by id", {"audio": {"output": {"voice": {"id": "x"}}}}, "invalid_value", "response.audio.output.voice"),
    ("format", {"audio": {"output": {"format": {"type": "x"}}}}, "invalid_value", "response.audio.output.format.type"),
    ("mcp tool", {"tools": [{"type": "mcp", "server_label": "x"}]}, "invalid_value", "response.tools.0.type"),
    ("unknown choice", {"tool_choice": {"type": "function", "name": "x"}}, "invalid_value", "response.tool_choice"),
    ("required without tools", {"tools": [], "tool_choice": "required"}, "invalid_value", "response.tool_choice"),
    ("many tokens", {"max_output_tokens": 4097}, "invalid_value", "response.max_output_tokens"),
    ("17 pairs", {"metadata": {str(index): "" for index in range(17)}}, "invalid_value", "response.metadata"),
    ("long key", {"metadata": {"k" * 65: ""}}, "invalid_value", "response.metadata." + "k" * 65),
    ("long value", {"metadata": {"k": "v" * 513}}, "invalid_value", "response.metadata.k"),
    ("metadata of numbers", {"metadata": {"k": 1}}, "invalid_type", "response.metadata.k"),
    ("prompt", {"prompt": {"id": "p"}}, "invalid_value", "response.prompt"),
    ("reasoning", {"reasoning": {"effort": "none"}}, "invalid_value", "response.reasoning.effort"),
    ("parallel_tool_calls", {"parallel_tool_calls": 1}, "invalid_type", "response.parallel_tool_calls"),
    ("tracing", {"tracing": "auto"}, "unknown_parameter", "response.tracing"),
    ("input as object", {"input": {}}, "invalid_type", "response.input"),
    ("input of text", {"input": ["hi"]}, "invalid_type", "response.input.0"),
    ("bad item", {"input": [TEXT, {"type": "mcp_call"}]}, "invalid_value", "response.input.1.type"),
    (
        "bad audio",
        {"input": [AUDIO | {"content": [{"type": "input_audio", "audio": "?"}]}]},
        "invalid_value",
        "response.input.0.content.0.audio",
    ),
    ("image", {"input": [IMAGE]}, "invalid_value", "response.input.0.content.0.type"),
    ("reference without id", {"input": [{"type": "item_reference"}]}, "missing_required_parameter", "response.input.0.id"),
]


@pytest.mark.parametrize(("params", "code", "param"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_response(session: SessionConfig, capabilities: Capabilities, params: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        response_settings(session, params, capabilities)
    assert (refused.value.code, refused.value.param) == (code, param)


def test_out_of_band_responses_must_be_served(session: SessionConfig, capabilities: Capabilities) -> None:
    with pytest.raises(ProtocolError) as refused:
        response_settings(session, {"conversation": "none"}, replace(capabilities, out_of_band_responses=False))
    assert refused.value.param == "response.conversation"
    assert "served: 'auto'." in refused.value.message


def test_items_are_checked_against_what_is_served(capabilities: Capabilities) -> None:
    deaf = replace(capabilities, audio_input=False)
    config = default_session(session_id="s", model="m", capabilities=deaf, defaults={}, expires_at=0)
    with pytest.raises(ProtocolError) as refused:
        response_settings(config, {"input": [CALL, AUDIO]}, deaf)
    assert refused.value.param == "response.input.1.content.0.type"
    assert "served: 'input_text'." in refused.value.message
    check_item(decode('{"type":"conversation.item.create","item":{"type":"function_call","name":"f","arguments":""}}').item, deaf)
