"""Sessions of type ``transcription``, and log probabilities, on the wire."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from openai.types.realtime import RealtimeTranscriptionSessionCreateRequest, RealtimeTranscriptionSessionCreateResponse

from omni_realtime.protocol import (
    Capabilities,
    ProtocolError,
    SessionConfig,
    TokenLogprob,
    default_session,
    encode,
    open_session,
    to_wire,
    update_session,
)
from omni_realtime.protocol.server_events import InputAudioTranscriptionCompleted, InputAudioTranscriptionDelta
from omni_realtime.testing.wire import check_server_event

LOGPROBS = "item.input_audio_transcription.logprobs"
CAPABILITIES = Capabilities(
    output_modalities=("audio", "text"),
    audio_input=True,
    turn_detection=("server_vad", "semantic_vad"),
    transcription_models=("ears", "pen"),
    transcription_languages=("en", "de"),
    transcription_logprobs=True,
    voices=("anna",),
    tools=True,
    default_instructions="Be brief.",
)
QUIET = {"create_response": False, "interrupt_response": False}


def opened(
    opening: Mapping[str, Any] = {"type": "transcription"},
    *,
    defaults: Mapping[str, Any] | None = None,
    capabilities: Capabilities = CAPABILITIES,
) -> tuple[SessionConfig, SessionConfig]:
    default = default_session(
        session_id="sess_1", model="served", capabilities=capabilities, defaults=defaults or {}, expires_at=1_700_000_000
    )
    return open_session(default, opening, capabilities)


def update(patch: Mapping[str, Any], config: SessionConfig | None = None, **options: Any) -> SessionConfig:
    default, opening = opened(**options)
    return update_session(config or opening, {"type": "transcription", **patch}, CAPABILITIES, default=default, voice_locked=False)


def heard(config: SessionConfig) -> dict[str, Any]:
    wire: dict[str, Any] = to_wire(config)["audio"]["input"]
    return wire


def test_a_transcription_session_has_its_own_object_and_only_its_fields() -> None:
    _, config = opened()
    wire = to_wire(config)
    assert wire == {
        "type": "transcription",
        "object": "realtime.transcription_session",
        "id": "sess_1",
        "expires_at": 1_700_000_000,
        "include": None,
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "noise_reduction": None,
                "transcription": {"model": "ears"},
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": 0.5,
                    "prefix_padding_ms": 300,
                    "silence_duration_ms": 500,
                    "idle_timeout_ms": None,
                    **QUIET,
                },
            }
        },
    }
    RealtimeTranscriptionSessionCreateRequest.model_validate_json(json.dumps(wire), strict=True)
    RealtimeTranscriptionSessionCreateResponse.model_validate_json(json.dumps(wire), strict=True)


def test_it_begins_with_the_deployments_input_and_leaves_the_rest_of_its_session_aside() -> None:
    turn_detection = {"type": "server_vad", "threshold": 0.7, "idle_timeout_ms": 5000}
    transcription = {"model": "pen", "language": "de", "prompt": "Names."}
    defaults = {
        "instructions": "Sing.",
        "output_modalities": ["text"],
        "include": [LOGPROBS],
        "audio": {"input": {"format": {"type": "audio/pcmu"}, "transcription": transcription, "turn_detection": turn_detection}},
    }
    _, config = opened(defaults=defaults)
    assert heard(config)["format"] == {"type": "audio/pcmu"}
    assert heard(config)["transcription"] == transcription
    assert heard(config)["turn_detection"]["threshold"] == 0.7
    assert heard(config)["turn_detection"]["idle_timeout_ms"] is None
    assert to_wire(config)["include"] == [LOGPROBS]


def test_an_opening_is_laid_over_the_defaults_and_null_brings_these_back() -> None:
    defaults = {"audio": {"input": {"format": {"type": "audio/pcma"}, "transcription": {"model": "pen"}}}}
    opening = {
        "type": "transcription",
        "audio": {"input": {"format": {"type": "audio/pcmu"}, "transcription": {"language": "en"}, "turn_detection": None}},
    }
    _, config = opened(opening, defaults=defaults)
    assert heard(config)["transcription"] == {"model": "pen", "language": "en"}
    assert heard(config)["turn_detection"] is None
    assert heard(update({"audio": {"input": {"format": None}}}, config, defaults=defaults))["format"] == {"type": "audio/pcma"}


@pytest.mark.parametrize("opening", [{}, {"type": None}, {"type": "realtime"}, {"instructions": "Sing."}])
def test_an_opening_without_a_type_is_of_a_conversation(opening: dict[str, Any]) -> None:
    default, config = opened(opening)
    assert (config.type, config.object) == ("realtime", "realtime.session")
    assert config.instructions == opening.get("instructions", "Be brief.")
    assert default.instructions == "Be brief."


@pytest.mark.parametrize(
    ("opening", "code", "param"),
    [
        ({"type": "translation"}, "invalid_value", "session.type"),
        ({"type": ["transcription"]}, "invalid_type", "session.type"),
        ({"type": "transcription", "instructions": "Sing."}, "unknown_parameter", "session.instructions"),
        ({"type": "realtime", "audio": {"output": {"speed": 1.2}}}, "invalid_value", "session.audio.output.speed"),
        ({"audio": {"input": {"transcription": {"model": "nobody"}}}}, "invalid_value", "session.audio.input.transcription.model"),
    ],
)
def test_an_opening_is_checked_as_an_update_is(opening: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        opened(opening)
    assert (refused.value.code, refused.value.param) == (code, param)


def test_a_deployments_defaults_do_not_choose_the_type() -> None:
    with pytest.raises(ProtocolError) as refused:
        opened(defaults={"type": "transcription"})
    assert (refused.value.code, refused.value.param) == ("invalid_value", "session.type")


@pytest.mark.parametrize("capabilities", [Capabilities(audio_input=True), Capabilities(transcription_models=("ears",))])
def test_nothing_opens_where_nothing_transcribes(capabilities: Capabilities) -> None:
    with pytest.raises(ProtocolError) as refused:
        opened(capabilities=capabilities)
    assert (refused.value.code, refused.value.param) == ("invalid_value", "session.type")


def test_an_update_may_name_the_apis_own_transcription_models() -> None:
    config = update({"audio": {"input": {"transcription": {"model": "gpt-4o-transcribe", "prompt": "Names."}}}})
    assert heard(config)["transcription"] == {"model": "ears", "prompt": "Names."}


def test_transcription_can_be_turned_off_and_on_again() -> None:
    off = update({"audio": {"input": {"transcription": None}}})
    assert heard(off)["transcription"] is None
    on = update({"audio": {"input": {"transcription": {"language": "de"}}}}, off)
    assert heard(on)["transcription"] == {"model": "ears", "language": "de"}


@pytest.mark.parametrize("turn_detection", [{"type": "semantic_vad", "eagerness": "low"}, {"type": "server_vad", "threshold": 0.2}, QUIET])
def test_turns_are_detected_and_never_answered(turn_detection: dict[str, Any]) -> None:
    config = update({"audio": {"input": {"turn_detection": turn_detection}}})
    assert heard(config)["turn_detection"] | turn_detection | QUIET == heard(config)["turn_detection"]
    again = update({"audio": {"input": {"turn_detection": {"create_response": None}}}}, config)
    assert heard(again)["turn_detection"] == heard(config)["turn_detection"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    *(
        ({name: None}, "unknown_parameter", f"session.{name}")
        for name in sorted(SessionConfig.model_fields.keys() - {"type", "object", "id", "expires_at", "audio", "include"})
    ),
    ({"instructions": "Sing."}, "unknown_parameter", "session.instructions"),
    ({"model": "served"}, "unknown_parameter", "session.model"),
    ({"audio": {"output": {"voice": "anna"}}}, "unknown_parameter", "session.audio.output"),
    ({"audio": {"output": None}}, "unknown_parameter", "session.audio.output"),
    ({"modalities": ["text"]}, "unknown_parameter", "session.modalities"),
    ({"input_audio_format": "pcm16"}, "unknown_parameter", "session.input_audio_format"),
    ({"frobnicate": 1}, "unknown_parameter", "session.frobnicate"),
    ({"id": "sess_2"}, "invalid_value", "session.id"),
    ({"object": "realtime.session"}, "invalid_value", "session.object"),
    ({"include": ["x"]}, "invalid_value", "session.include.0"),
    ({"audio": {"input": {"noise_reduction": {"type": "near_field"}}}}, "invalid_value", "session.audio.input.noise_reduction"),
    ({"audio": {"input": {"transcription": {"language": "fr"}}}}, "invalid_value", "session.audio.input.transcription.language"),
    ({"audio": {"input": {"turn_detection": "no"}}}, "invalid_type", "session.audio.input.turn_detection"),
    ({"audio": []}, "invalid_type", "session.audio"),
    *(
        ({"audio": {"input": {"turn_detection": {name: value}}}}, code, f"session.audio.input.turn_detection.{name}")
        for name, value, code in (
            ("create_response", True, "invalid_value"),
            ("interrupt_response", True, "invalid_value"),
            ("create_response", "yes", "invalid_type"),
            ("idle_timeout_ms", 5000, "invalid_value"),
            ("idle_timeout_ms", "long", "invalid_type"),
        )
    ),
]


@pytest.mark.parametrize(("patch", "code", "param"), REFUSED, ids=[f"{param} {patch}" for patch, _, param in REFUSED])
def test_what_only_a_conversation_has_is_refused_by_name(patch: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        update(patch)
    assert (refused.value.code, refused.value.param) == (code, param)
    assert param in refused.value.message


@pytest.mark.parametrize(("kind", "other"), [("realtime", "transcription"), ("transcription", "realtime")])
def test_the_type_cannot_be_switched(kind: str, other: str) -> None:
    default, config = opened({"type": kind})
    with pytest.raises(ProtocolError) as refused:
        update_session(config, {"type": other, "frobnicate": 1}, CAPABILITIES, default=default, voice_locked=False)
    assert (refused.value.code, refused.value.param) == ("invalid_value", "session.type")
    assert "intent" in refused.value.message
    assert "client secret" in refused.value.message


@pytest.mark.parametrize("kind", ["realtime", "transcription"])
def test_include_is_served_where_the_transcriber_has_log_probabilities(kind: str) -> None:
    default, config = opened({"type": kind, "include": [LOGPROBS]})
    assert config.includes_logprobs
    assert to_wire(config)["include"] == [LOGPROBS]
    for off in (None, []):
        updated = update_session(config, {"type": kind, "include": off}, CAPABILITIES, default=default, voice_locked=False)
        assert not updated.includes_logprobs
        assert to_wire(updated)["include"] == off


@pytest.mark.parametrize(
    "capabilities",
    [
        Capabilities(audio_input=True, transcription_models=("ears",)),
        Capabilities(audio_input=True, transcription_logprobs=True),
        Capabilities(),
    ],
)
def test_include_is_refused_by_name_where_it_has_none(capabilities: Capabilities) -> None:
    for neutral in (None, []):
        opened({"include": neutral}, capabilities=capabilities)
    with pytest.raises(ProtocolError) as refused:
        opened({"include": [LOGPROBS]}, capabilities=capabilities)
    assert (refused.value.code, refused.value.param) == ("invalid_value", "session.include")


def test_log_probabilities_on_the_wire() -> None:
    logprobs = (TokenLogprob(token="Grüße", logprob=-0.25), TokenLogprob(token=" 👋", logprob=0.0))
    fields: dict[str, Any] = {"event_id": "event_1", "item_id": "item_1", "content_index": 0, "logprobs": logprobs}
    told = [
        check_server_event(encode(InputAudioTranscriptionDelta(delta="Grüße 👋", **fields))),
        check_server_event(encode(InputAudioTranscriptionCompleted(transcript="Grüße 👋", seconds=1.5, **fields))),
    ]
    for event in told:
        assert [(each["token"], each["logprob"]) for each in event["logprobs"]] == [("Grüße", -0.25), (" 👋", 0.0)]
        assert b"".join(map(bytes, (each["bytes"] for each in event["logprobs"]))).decode() == "Grüße 👋"
    assert told[1]["usage"] == {"type": "duration", "seconds": 1.5}


def test_without_log_probabilities_their_key_is_absent() -> None:
    fields: dict[str, Any] = {"event_id": "event_1", "item_id": "item_1", "content_index": 0}
    assert "logprobs" not in check_server_event(encode(InputAudioTranscriptionDelta(delta="Hi", **fields)))
    assert "logprobs" not in check_server_event(encode(InputAudioTranscriptionCompleted(transcript="Hi", seconds=1.0, **fields)))


@pytest.mark.parametrize("logprob", [math.nan, -math.inf, math.inf, 0.1])
def test_what_is_no_log_probability_is_never_sent(logprob: float) -> None:
    with pytest.raises(ValueError, match="log probability"):
        TokenLogprob(token="Hi", logprob=logprob)
