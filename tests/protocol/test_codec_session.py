from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.realtime import RealtimeSessionCreateRequest

from omni_realtime.protocol import (
    Capabilities,
    ProtocolError,
    SemanticVad,
    ServerVad,
    SessionConfig,
    default_session,
    to_wire,
    update_session,
)

Update = Callable[..., SessionConfig]


@pytest.fixture
def update(session: SessionConfig, capabilities: Capabilities) -> Update:
    def apply(
        patch: dict[str, Any],
        *,
        config: SessionConfig = session,
        served: Capabilities = capabilities,
        default: SessionConfig = session,
        voice_locked: bool = False,
    ) -> SessionConfig:
        return update_session(config, {"type": "realtime", **patch}, served, default=default, voice_locked=voice_locked)

    return apply


def audio_in(**fields: object) -> dict[str, Any]:
    return {"audio": {"input": fields}}


def audio_out(**fields: object) -> dict[str, Any]:
    return {"audio": {"output": fields}}


def detector(**fields: object) -> dict[str, Any]:
    return audio_in(turn_detection=fields)


def start(capabilities: Capabilities, **defaults: object) -> SessionConfig:
    return default_session(session_id="sess_1", model="served", capabilities=capabilities, defaults=defaults, expires_at=1_700_000_000)


def test_new_session_on_the_wire(session: SessionConfig) -> None:
    wire = to_wire(session)
    assert wire == {
        "type": "realtime",
        "object": "realtime.session",
        "id": "sess_1",
        "model": "served",
        "expires_at": 1_700_000_000,
        "output_modalities": ["audio"],
        "instructions": "Be brief.",
        "tools": [],
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "truncation": "auto",
        "tracing": None,
        "prompt": None,
        "include": None,
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "transcription": None,
                "noise_reduction": None,
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": 0.5,
                    "prefix_padding_ms": 300,
                    "silence_duration_ms": 500,
                    "idle_timeout_ms": None,
                    "create_response": True,
                    "interrupt_response": True,
                },
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "anna", "speed": 1.0},
        },
    }
    extra = {"id", "object", "expires_at"}
    RealtimeSessionCreateRequest.model_validate({key: value for key, value in wire.items() if key not in extra}, strict=True)


def test_new_session_of_a_text_model() -> None:
    wire = to_wire(start(Capabilities()))
    assert wire["output_modalities"] == ["text"]
    assert wire["audio"]["input"]["turn_detection"] is None
    assert "voice" not in wire["audio"]["output"]


def test_server_vad_is_off_where_it_is_not_served(capabilities: Capabilities) -> None:
    for served in (replace(capabilities, turn_detection=("semantic_vad",)), replace(capabilities, audio_input=False)):
        assert start(served).audio.input.turn_detection is None


def test_deployment_defaults_lie_over_the_apis(capabilities: Capabilities) -> None:
    config = start(
        capabilities,
        instructions="Sing.",
        audio={"input": {"turn_detection": {"silence_duration_ms": 200}, "transcription": {}}, "output": {"voice": "bert"}},
    )
    assert config.instructions == "Sing."
    assert config.audio.input.turn_detection == ServerVad(silence_duration_ms=200)
    assert config.audio.input.transcription is not None
    assert config.audio.input.transcription.model == "tiny"
    assert config.audio.output.voice == "bert"


def test_deployment_defaults_can_turn_the_detector_off(capabilities: Capabilities) -> None:
    assert start(capabilities, audio={"input": {"turn_detection": None}}).audio.input.turn_detection is None


@pytest.mark.parametrize(
    ("defaults", "param"),
    [
        ({"colour": 1}, "session.colour"),
        ({"audio": {"output": {"voice": "nobody"}}}, "session.audio.output.voice"),
        ({"model": "other"}, "session.model"),
        ({"max_output_tokens": 10**30}, "session.max_output_tokens"),
        ({5: 1}, "session.5"),
    ],
)
def test_bad_deployment_defaults_are_refused(capabilities: Capabilities, defaults: dict[Any, Any], param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        default_session(session_id="s", model="m", capabilities=capabilities, defaults=defaults, expires_at=0)
    assert refused.value.param == param


def test_partial_turn_detection_keeps_type_and_the_rest(update: Update) -> None:
    once = update(detector(threshold=0.9, create_response=False))
    assert once.audio.input.turn_detection == ServerVad(threshold=0.9, create_response=False)
    twice = update(detector(silence_duration_ms=700), config=once)
    assert twice.audio.input.turn_detection == ServerVad(threshold=0.9, create_response=False, silence_duration_ms=700)


def test_absent_null_and_object_are_three_things(update: Update) -> None:
    off = update(audio_in(turn_detection=None))
    assert off.audio.input.turn_detection is None
    assert update(audio_in(format={"type": "audio/pcmu"}), config=off).audio.input.turn_detection is None
    on = update(detector(type="server_vad", threshold=0.1), config=off)
    assert on.audio.input.turn_detection == ServerVad(threshold=0.1)


def test_detector_turned_on_again_needs_its_type(update: Update) -> None:
    off = update(audio_in(turn_detection=None))
    for fields in ({"threshold": 0.1}, {}):
        with pytest.raises(ProtocolError) as refused:
            update(detector(**fields), config=off)
        assert (refused.value.code, refused.value.param) == ("missing_required_parameter", "session.audio.input.turn_detection.type")


def test_another_type_brings_its_own_defaults(update: Update) -> None:
    semantic = update(detector(type="semantic_vad", eagerness="low"), config=update(detector(create_response=False)))
    assert semantic.audio.input.turn_detection == SemanticVad(eagerness="low")
    assert update(detector(type="server_vad"), config=semantic).audio.input.turn_detection == ServerVad()


def test_detector_type_brings_the_deployments_defaults(update: Update, capabilities: Capabilities) -> None:
    default = start(capabilities, audio={"input": {"turn_detection": {"threshold": 0.7}}})
    off = update(audio_in(turn_detection=None), config=default, default=default)
    assert update(detector(type="server_vad"), config=off, default=default).audio.input.turn_detection == ServerVad(threshold=0.7)
    patched = update(detector(threshold=0.1), config=default, default=default)
    assert update(detector(threshold=None), config=patched, default=default).audio.input.turn_detection == ServerVad(threshold=0.7)


def test_null_inside_a_detector(update: Update) -> None:
    on = update(detector(threshold=0.1, idle_timeout_ms=5000, type=None))
    assert on.audio.input.turn_detection == ServerVad(threshold=0.1, idle_timeout_ms=5000)
    assert update(detector(threshold=None, idle_timeout_ms=None), config=on).audio.input.turn_detection == ServerVad()
    semantic = update(detector(type="semantic_vad", eagerness=None))
    assert semantic.audio.input.turn_detection == SemanticVad()


@pytest.mark.parametrize(
    ("change", "reset"),
    [
        ({"instructions": "x"}, {"instructions": None}),
        ({"output_modalities": ["text"]}, {"output_modalities": None}),
        ({"max_output_tokens": 5}, {"max_output_tokens": None}),
        ({"tools": [{"type": "function", "name": "f"}]}, {"tools": None}),
        ({"tool_choice": "none"}, {"tool_choice": None}),
        (audio_out(format={"type": "audio/pcma"}), audio_out(format=None)),
        (audio_out(voice="bert"), audio_out(voice=None, speed=None)),
        (audio_out(voice="bert"), {"audio": {"output": None}}),
        (audio_in(format={"type": "audio/pcma"}), {"audio": {"input": None}}),
        (audio_in(format={"type": "audio/pcma"}), {"audio": None}),
        (audio_in(transcription={"model": "large", "language": "de", "prompt": "x"}), audio_in(transcription=None)),
        ({"tracing": "auto"}, {"tracing": None, "prompt": None, "include": None, "reasoning": None}),
        ({"parallel_tool_calls": True}, {"parallel_tool_calls": None, "truncation": None, "model": None}),
    ],
)
def test_null_brings_the_default_back(update: Update, session: SessionConfig, change: dict[str, Any], reset: dict[str, Any]) -> None:
    changed = update(change)
    assert changed != session
    assert update(reset, config=changed) == session


def test_a_model_name_of_the_api_stands_for_the_served_model(update: Update) -> None:
    updated = update({"model": "gpt-realtime-2026", "instructions": "Be kind."})
    assert (updated.model, updated.instructions) == ("served", "Be kind.")


def test_transcription_is_merged_and_echoes_the_model_in_force(update: Update) -> None:
    on = update(audio_in(transcription={"model": "whisper-1", "language": "en"}))
    assert to_wire(on)["audio"]["input"]["transcription"] == {"model": "tiny", "language": "en"}
    on = update(audio_in(transcription={"prompt": "names"}), config=on)
    assert to_wire(on)["audio"]["input"]["transcription"] == {"model": "tiny", "language": "en", "prompt": "names"}
    on = update(audio_in(transcription={"model": "large", "language": None}), config=on)
    assert to_wire(on)["audio"]["input"]["transcription"] == {"model": "large", "prompt": "names"}


def test_any_language_where_none_is_listed(update: Update, capabilities: Capabilities) -> None:
    on = update(audio_in(transcription={"language": "xx"}), served=replace(capabilities, transcription_languages=()))
    assert on.audio.input.transcription is not None
    assert on.audio.input.transcription.language == "xx"


def test_openai_voices_stand_for_the_deployments(update: Update, capabilities: Capabilities) -> None:
    default = start(capabilities, audio={"output": {"voice": "bert"}})
    assert update(audio_out(voice="marin"), default=default).audio.output.voice == "bert"
    nameless = replace(capabilities, voices=())
    config = start(nameless)
    assert update(audio_out(voice="marin"), config=config, default=config, served=nameless) == config
    own = replace(capabilities, voices=("anna", "marin"))
    assert update(audio_out(voice="marin"), served=own).audio.output.voice == "marin"


def test_voice_is_locked_by_assistant_audio_but_the_same_voice_is_fine(update: Update) -> None:
    for same in ("anna", "alloy", None):
        assert update(audio_out(voice=same), voice_locked=True).audio.output.voice == "anna"
    with pytest.raises(ProtocolError) as refused:
        update(audio_out(voice="bert"), voice_locked=True)
    assert (refused.value.code, refused.value.param) == ("cannot_update_voice", "session.audio.output.voice")
    assert refused.value.message == "Cannot update a conversation's voice if assistant audio is present."


def test_formats_are_replaced_whole(update: Update) -> None:
    config = update({"audio": {"input": {"format": {"type": "audio/pcmu"}}, "output": {"format": {"type": "audio/pcma"}}}})
    wire = to_wire(config)["audio"]
    assert wire["input"]["format"] == {"type": "audio/pcmu"}
    assert wire["output"]["format"] == {"type": "audio/pcma"}
    again = update(audio_in(format={"type": "audio/pcm"}), config=config)
    assert to_wire(again)["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 24000}


def test_tools_absent_keeps_and_empty_clears(update: Update) -> None:
    tool = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": None}}}
    with_tool = update({"tools": [tool], "tool_choice": {"type": "function", "name": "f"}})
    assert to_wire(with_tool)["tools"] == [tool]
    assert to_wire(with_tool)["tool_choice"] == {"type": "function", "name": "f"}
    assert update({"instructions": "x"}, config=with_tool).tools == with_tool.tools
    assert update({"tools": [], "tool_choice": "auto"}, config=with_tool).tools == ()
    assert to_wire(update({"tools": [{"name": "g"}]}))["tools"] == [{"type": "function", "name": "g"}]


def test_tracing_and_parallel_tool_calls_are_echoed(update: Update) -> None:
    wire = to_wire(update({"tracing": {"workflow_name": "w", "metadata": {"a": None}}, "parallel_tool_calls": False}))
    assert wire["tracing"] == {"workflow_name": "w", "metadata": {"a": None}}
    assert wire["parallel_tool_calls"] is False
    assert to_wire(update({"tracing": "auto"}))["tracing"] == "auto"


@pytest.mark.parametrize("limit", [4096, 8000])
def test_max_output_tokens_is_from_1_to_what_the_plugin_names(update: Update, capabilities: Capabilities, limit: int) -> None:
    assert Capabilities().max_output_tokens == 4096, "the API's own range"
    served = replace(capabilities, max_output_tokens=limit)
    for value in (1, limit, "inf"):
        assert to_wire(update({"max_output_tokens": value}, served=served))["max_output_tokens"] == value
    for value in (0, -1, limit + 1, 1.5, "1", True):
        with pytest.raises(ProtocolError) as refused:
            update({"max_output_tokens": value}, served=served)
        assert refused.value.param == "session.max_output_tokens"


@pytest.mark.parametrize("effort", ["minimal", "low", "medium", "high", "xhigh"])
def test_reasoning_is_echoed_until_it_is_off(update: Update, effort: str) -> None:
    config = update({"reasoning": {"effort": effort}})
    assert to_wire(config)["reasoning"] == {"effort": effort}
    assert "reasoning" not in to_wire(update({"reasoning": None}, config=config))


def test_client_may_send_the_whole_session_back(update: Update, session: SessionConfig) -> None:
    config = update({**audio_in(transcription={}, turn_detection=None), "tools": [{"name": "f"}], "tracing": {"group_id": "g"}})
    assert update(to_wire(session)) == session
    assert update(to_wire(config)) == config


def test_type_is_required(session: SessionConfig, capabilities: Capabilities) -> None:
    with pytest.raises(ProtocolError) as refused:
        update_session(session, {"instructions": "x"}, capabilities, default=session, voice_locked=False)
    assert (refused.value.code, refused.value.param) == ("missing_required_parameter", "session.type")
    assert refused.value.message == "Missing required parameter: 'session.type'."


TOOL = {"type": "function", "name": "f"}
REFUSED = [
    ("transcription session", {"type": "transcription"}, "invalid_value", "session.type", "'realtime'"),
    ("type is a number", {"type": 5}, "invalid_type", "session.type", "'realtime'"),
    ("unknown key", {"colour": "red"}, "unknown_parameter", "session.colour", "Unknown parameter: 'session.colour'."),
    ("unknown key with null", {"colour": None}, "unknown_parameter", "session.colour", "colour"),
    ("unknown nested key", audio_in(echo=1), "unknown_parameter", "session.audio.input.echo", "echo"),
    ("unknown detector key", detector(echo=1), "unknown_parameter", "session.audio.input.turn_detection.echo", "echo"),
    ("unknown detector null", detector(echo=None), "unknown_parameter", "session.audio.input.turn_detection.echo", "echo"),
    ("another id", {"id": "sess_2"}, "invalid_value", "session.id", "sess_1"),
    ("another object", {"object": "x"}, "invalid_value", "session.object", "realtime.session"),
    ("another model", {"model": "other"}, "invalid_value", "session.model", "'served'"),
    ("another end", {"expires_at": 1}, "invalid_value", "session.expires_at", "1700000000"),
    ("both modalities", {"output_modalities": ["text", "audio"]}, "invalid_value", "session.output_modalities", '["audio"], ["text"]'),
    ("no modality", {"output_modalities": []}, "invalid_value", "session.output_modalities", '["audio"]'),
    ("unknown modality", {"output_modalities": ["video"]}, "invalid_value", "session.output_modalities.0", "'text' or 'audio'"),
    ("modality as text", {"output_modalities": "text"}, "invalid_type", "session.output_modalities", "array"),
    ("instructions", {"instructions": ["x"]}, "invalid_type", "session.instructions", "string"),
    ("format as text", audio_in(format="pcm16"), "invalid_type", "session.audio.input.format", "object"),
    ("unknown format", audio_in(format={"type": "audio/opus"}), "invalid_value", "session.audio.input.format.type", "audio/pcmu"),
    ("format without type", audio_in(format={"rate": 24000}), "missing_required_parameter", "session.audio.input.format.type", "type"),
    ("16 kHz", audio_in(format={"type": "audio/pcm", "rate": 16000}), "invalid_value", "session.audio.input.format.rate", "24000"),
    (
        "rate of G.711",
        audio_in(format={"type": "audio/pcmu", "rate": 8000}),
        "unknown_parameter",
        "session.audio.input.format.rate",
        "rate",
    ),
    ("audio is text", {"audio": "x"}, "invalid_type", "session.audio", "object"),
    (
        "unknown detector",
        detector(type="magic"),
        "invalid_value",
        "session.audio.input.turn_detection.type",
        "'server_vad', 'semantic_vad'",
    ),
    ("detector type", detector(type=["x"]), "invalid_type", "session.audio.input.turn_detection.type", "'server_vad'"),
    ("detector is text", audio_in(turn_detection="server_vad"), "invalid_type", "session.audio.input.turn_detection", "object"),
    ("threshold above", detector(threshold=1.01), "invalid_value", "session.audio.input.turn_detection.threshold", "1"),
    ("threshold below", detector(threshold=-0.01), "invalid_value", "session.audio.input.turn_detection.threshold", "0"),
    ("threshold as text", detector(threshold="0.5"), "invalid_type", "session.audio.input.turn_detection.threshold", "number"),
    ("padding", detector(prefix_padding_ms=10_001), "invalid_value", "session.audio.input.turn_detection.prefix_padding_ms", "10000"),
    ("silence", detector(silence_duration_ms=-1), "invalid_value", "session.audio.input.turn_detection.silence_duration_ms", "0"),
    ("fraction", detector(silence_duration_ms=1.5), "invalid_type", "session.audio.input.turn_detection.silence_duration_ms", "integer"),
    ("flag", detector(create_response="yes"), "invalid_type", "session.audio.input.turn_detection.create_response", "boolean"),
    ("eagerness", detector(type="semantic_vad", eagerness="x"), "invalid_value", "session.audio.input.turn_detection.eagerness", "'auto'"),
    ("transcriber", audio_in(transcription={"model": "x"}), "invalid_value", "session.audio.input.transcription.model", "'tiny', 'large'"),
    ("language", audio_in(transcription={"language": "fr"}), "invalid_value", "session.audio.input.transcription.language", "'en', 'de'"),
    ("keywords", audio_in(transcription={"keywords": ["x"]}), "invalid_value", "session.audio.input.transcription.keywords", "null"),
    (
        "languages",
        audio_in(transcription={"languages": ["en", "de"]}),
        "invalid_value",
        "session.audio.input.transcription.languages",
        "one",
    ),
    (
        "another of languages",
        audio_in(transcription={"languages": ["fr"]}),
        "invalid_value",
        "session.audio.input.transcription.languages",
        "'en', 'de'",
    ),
    (
        "two languages",
        audio_in(transcription={"language": "en", "languages": ["de"]}),
        "invalid_value",
        "session.audio.input.transcription.languages",
        "'en'",
    ),
    ("delay", audio_in(transcription={"delay": "low"}), "invalid_value", "session.audio.input.transcription.delay", "null"),
    ("noise", audio_in(noise_reduction={"type": "near_field"}), "invalid_value", "session.audio.input.noise_reduction", "null"),
    ("speed", audio_out(speed=1.2), "invalid_value", "session.audio.output.speed", "1.0"),
    ("speed out of range", audio_out(speed=9), "invalid_value", "session.audio.output.speed", "1.5"),
    ("voice", audio_out(voice="nobody"), "invalid_value", "session.audio.output.voice", "'anna', 'bert'"),
    ("voice by id", audio_out(voice={"id": "voice_1"}), "invalid_value", "session.audio.output.voice", "'anna'"),
    ("mcp tool", {"tools": [{"type": "mcp", "server_label": "x"}]}, "invalid_value", "session.tools.0.type", "'function'"),
    ("mcp choice", {"tool_choice": {"type": "mcp", "server_label": "x"}}, "invalid_value", "session.tool_choice.type", "'function'"),
    ("choice word", {"tool_choice": "maybe"}, "invalid_value", "session.tool_choice", "'required'"),
    ("choice number", {"tool_choice": 5}, "invalid_type", "session.tool_choice", "object"),
    ("choice of nothing", {"tool_choice": {"type": "function", "name": "f"}}, "invalid_value", "session.tool_choice", "none"),
    (
        "choice of another",
        {"tools": [TOOL], "tool_choice": {"type": "function", "name": "g"}},
        "invalid_value",
        "session.tool_choice",
        "'f'",
    ),
    ("required without tools", {"tool_choice": "required"}, "invalid_value", "session.tool_choice", "tool"),
    ("tool twice", {"tools": [TOOL, TOOL]}, "invalid_value", "session.tools", "'f'"),
    ("tool without name", {"tools": [{"type": "function"}]}, "missing_required_parameter", "session.tools.0.name", "name"),
    ("tool name", {"tools": [{"name": "a b"}]}, "invalid_value", "session.tools.0.name", "pattern"),
    ("tool parameters", {"tools": [{"name": "a", "parameters": []}]}, "invalid_type", "session.tools.0.parameters", "object"),
    ("tool key", {"tools": [{"name": "a", "strict": True}]}, "unknown_parameter", "session.tools.0.strict", "strict"),
    ("tools as object", {"tools": {}}, "invalid_type", "session.tools", "array"),
    ("no tokens", {"max_output_tokens": 0}, "invalid_value", "session.max_output_tokens", "inf"),
    ("many tokens", {"max_output_tokens": 4097}, "invalid_value", "session.max_output_tokens", "1 to 4096"),
    ("tokens flag", {"max_output_tokens": True}, "invalid_value", "session.max_output_tokens", "inf"),
    ("retention", {"truncation": {"type": "retention_ratio"}}, "missing_required_parameter", "session.truncation.retention_ratio", ""),
    ("prompt", {"prompt": {"id": "p"}}, "invalid_value", "session.prompt", "null"),
    ("prompt without id", {"prompt": {"version": "1"}}, "missing_required_parameter", "session.prompt.id", "id"),
    ("include", {"include": ["item.input_audio_transcription.logprobs"]}, "invalid_value", "session.include", "null"),
    ("reasoning", {"reasoning": {"effort": "none"}}, "invalid_value", "session.reasoning.effort", "'low'"),
    ("parallel_tool_calls", {"parallel_tool_calls": "yes"}, "invalid_type", "session.parallel_tool_calls", "boolean"),
    ("tracing", {"tracing": "on"}, "invalid_value", "session.tracing", "'auto'"),
    ("tracing key", {"tracing": {"x": 1}}, "unknown_parameter", "session.tracing.x", "x"),
]


@pytest.mark.parametrize(("patch", "code", "param", "named"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_update_names_the_field_and_what_is_served(
    update: Update, patch: dict[str, Any], code: str, param: str, named: str
) -> None:
    with pytest.raises(ProtocolError) as refused:
        update({"instructions": "a good field", **patch})
    assert (refused.value.code, refused.value.param) == (code, param)
    assert param in refused.value.message
    assert named in refused.value.message


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("modalities", "session.output_modalities"),
        ("voice", "session.audio.output.voice"),
        ("speed", "session.audio.output.speed"),
        ("input_audio_format", "session.audio.input.format"),
        ("output_audio_format", "session.audio.output.format"),
        ("input_audio_transcription", "session.audio.input.transcription"),
        ("input_audio_noise_reduction", "session.audio.input.noise_reduction"),
        ("turn_detection", "session.audio.input.turn_detection"),
        ("max_response_output_tokens", "session.max_output_tokens"),
    ],
)
@pytest.mark.parametrize("value", [None, "x"])
def test_beta_spelling_is_refused_with_the_ga_one(update: Update, name: str, spelling: str, value: object) -> None:
    with pytest.raises(ProtocolError) as refused:
        update({name: value})
    assert (refused.value.code, refused.value.param) == ("unknown_parameter", f"session.{name}")
    assert refused.value.message == f"Unknown parameter: 'session.{name}'. Use '{spelling}'."


NOT_SERVED = [
    (
        "detector",
        {"turn_detection": ("server_vad",)},
        detector(type="semantic_vad"),
        "session.audio.input.turn_detection.type",
        "'server_vad', null",
    ),
    ("no audio", {"audio_input": False}, detector(type="server_vad"), "session.audio.input.turn_detection.type", "null"),
    ("no ears", {"audio_input": False}, audio_in(transcription={}), "session.audio.input.transcription", "null"),
    (
        "no transcriber",
        {"transcription_models": ()},
        audio_in(transcription={"model": "whisper-1"}),
        "session.audio.input.transcription",
        "null",
    ),
    (
        "format in",
        {"input_formats": ("audio/pcm",)},
        audio_in(format={"type": "audio/pcmu"}),
        "session.audio.input.format.type",
        "'audio/pcm'",
    ),
    (
        "format out",
        {"output_formats": ("audio/pcm",)},
        audio_out(format={"type": "audio/pcma"}),
        "session.audio.output.format.type",
        "'audio/pcm'",
    ),
    ("text alone", {"output_modalities": ("text",)}, {"output_modalities": ["audio"]}, "session.output_modalities", '["text"]'),
    ("no tools", {"tools": False}, {"tools": [TOOL]}, "session.tools", "[]"),
    ("nameless voice", {"voices": ()}, audio_out(voice="anna"), "session.audio.output.voice", "null"),
]


@pytest.mark.parametrize(("served", "patch", "param", "named"), [row[1:] for row in NOT_SERVED], ids=[row[0] for row in NOT_SERVED])
def test_what_a_deployment_cannot_serve_is_refused(
    update: Update, *, capabilities: Capabilities, served: dict[str, Any], patch: dict[str, Any], param: str, named: str
) -> None:
    narrow = replace(capabilities, **served)
    config = start(narrow)
    with pytest.raises(ProtocolError) as refused:
        update(patch, config=config, default=config, served=narrow)
    assert (refused.value.code, refused.value.param) == ("invalid_value", param)
    assert named in refused.value.message


def test_error_of_a_huge_value_is_short(update: Update) -> None:
    with pytest.raises(ProtocolError) as refused:
        update({"output_modalities": ["x" * 1_000_000]})
    assert len(refused.value.message) < 1000


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


flags = st.none() | st.booleans()
milliseconds = st.none() | st.integers(-1, 10_001)
formats = st.none() | st.sampled_from([{"type": "audio/pcm"}, {"type": "audio/pcm", "rate": 24000}, {"type": "audio/pcmu"}, {"type": "x"}])
detectors = st.none() | optional(
    type=st.sampled_from(["server_vad", "semantic_vad", None]),
    threshold=st.none() | st.floats(-0.1, 1.1),
    prefix_padding_ms=milliseconds,
    silence_duration_ms=milliseconds,
    idle_timeout_ms=milliseconds,
    eagerness=st.sampled_from(["low", "auto", None]),
    create_response=flags,
    interrupt_response=flags,
)
transcriptions = st.none() | optional(
    model=st.sampled_from(["tiny", "large", "whisper-1", "other", None]),
    language=st.sampled_from(["en", "fr", None]),
    prompt=st.none() | st.text(max_size=3),
)
patches = optional(
    instructions=st.none() | st.text(max_size=3),
    output_modalities=st.none() | st.lists(st.sampled_from(["text", "audio"]), max_size=2),
    tools=st.none() | st.lists(st.sampled_from([{"name": "f"}, {"type": "function", "name": "g"}]), max_size=2),
    tool_choice=st.sampled_from([None, "auto", "none", "required", {"type": "function", "name": "f"}]),
    max_output_tokens=st.none() | st.integers(0, 4097) | st.just("inf"),
    tracing=st.sampled_from([None, "auto", {"group_id": "g"}]),
    unknown=st.none(),
    audio=st.none()
    | optional(
        input=st.none() | optional(format=formats, turn_detection=detectors, transcription=transcriptions, noise_reduction=st.none()),
        output=st.none() | optional(format=formats, voice=st.sampled_from([None, "anna", "bert", "alloy", "other"]), speed=st.just(1)),
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(history=st.lists(patches, max_size=3), patch=patches, locked=st.booleans())
def test_laws_of_the_merge(
    update: Update, session: SessionConfig, history: list[dict[str, Any]], patch: dict[str, Any], locked: bool
) -> None:
    config = session
    for earlier in history:
        try:
            config = update(earlier, config=config)
        except ProtocolError:
            continue
    before = to_wire(config)
    assert update({}, config=config) == config, "absent changes nothing"
    assert update(before, config=config) == config, "the echo is what is in force"
    try:
        once = update(patch, config=config, voice_locked=locked)
    except ProtocolError as refused:
        param = refused.param or ""
        assert param.startswith("session.")
    else:
        assert update(patch, config=once, voice_locked=locked) == once, "twice is once"
    assert to_wire(config) == before, "the session before is untouched"
