"""The session object's beginning and its partial updates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.protocol.capability_check import check
from omni_realtime.protocol.errors import ProtocolError
from omni_realtime.protocol.prompts import session_instructions
from omni_realtime.protocol.session_object import (
    FORMATS,
    AudioInput,
    AudioOutput,
    SemanticVad,
    ServerVad,
    SessionAudio,
    SessionConfig,
    SessionType,
)
from omni_realtime.protocol.transcription_session import as_transcription, refuse_other_fields, unanswered
from omni_realtime.protocol.validation import WireModel, refuse_missing, refuse_unknown, refuse_value, shown, validate

_Json: TypeAlias = Mapping[str, Any]
_Model = TypeVar("_Model", bound=WireModel)

_OFF = frozenset({
    "audio.input.noise_reduction",
    "audio.input.transcription",
    "audio.input.transcription.delay",
    "audio.input.transcription.keywords",
    "audio.input.transcription.language",
    "audio.input.transcription.languages",
    "audio.input.transcription.prompt",
    "audio.input.turn_detection",
    "audio.input.turn_detection.idle_timeout_ms",
    "include",
    "parallel_tool_calls",
    "prompt",
    "reasoning",
    "tracing",
})
"""Where ``null`` means off; elsewhere it brings back the deployment's default."""

_MERGED = frozenset({"audio", "audio.input", "audio.output", "audio.input.transcription", "audio.input.turn_detection"})
"""Objects that are merged; all others are replaced whole."""

OPENAI_MODELS = "gpt-"
"""How the API's own models begin: clients name one by default, so each stands for the model that the URL chose."""

_OTHER_TYPE: Mapping[SessionType, str] = {
    "realtime": "to transcribe alone, connect with `?intent=transcription` or with a client secret for a transcription session",
    "transcription": "to have responses, connect without `intent` and without a client secret for a transcription session",
}
_FIXED = ("type", "id", "object", "model", "expires_at")

RESPONSE_SPELLINGS = {
    "modalities": "output_modalities",
    "voice": "audio.output.voice",
    "output_audio_format": "audio.output.format",
    "max_response_output_tokens": "max_output_tokens",
}
"""Names of the beta dialect, and where GA has the same in a session and in a response."""

_SESSION_SPELLINGS = RESPONSE_SPELLINGS | {
    "speed": "audio.output.speed",
    "input_audio_format": "audio.input.format",
    "input_audio_transcription": "audio.input.transcription",
    "input_audio_noise_reduction": "audio.input.noise_reduction",
    "turn_detection": "audio.input.turn_detection",
}
_INPUT_SPELLINGS = {name: spelling for name, spelling in _SESSION_SPELLINGS.items() if spelling.startswith("audio.input.")}
_DETECTORS: dict[object, type[ServerVad | SemanticVad]] = {"server_vad": ServerVad, "semantic_vad": SemanticVad}


def default_session(
    *, session_id: str, model: str, capabilities: Capabilities, defaults: Mapping[str, Any], expires_at: int
) -> SessionConfig:
    """Return a new session: the API's defaults as far as they are served, under the deployment's partial session object ``defaults``.

    Raises:
        ProtocolError: ``defaults`` is malformed or asks for what is not served.
    """
    has_server_vad = capabilities.audio_input and "server_vad" in capabilities.turn_detection
    base = SessionConfig(
        id=session_id,
        model=model,
        expires_at=expires_at,
        output_modalities=capabilities.output_modalities[:1],
        instructions=capabilities.default_instructions,
        audio=SessionAudio(
            input=AudioInput(format=FORMATS[capabilities.input_formats[0]](), turn_detection=ServerVad() if has_server_vad else None),
            output=AudioOutput(format=FORMATS[capabilities.output_formats[0]](), voice=next(iter(capabilities.voices), None)),
        ),
    )
    return _apply(base, defaults, capabilities, base)


def open_session(default: SessionConfig, opening: Mapping[str, Any], capabilities: Capabilities) -> tuple[SessionConfig, SessionConfig]:
    """Return what ``null`` brings back in a session, and the session at its start.

    Args:
        default: the deployment's session.
        opening: a partial session object; its ``type`` chooses the kind of session, ``realtime`` if it has none.
        capabilities: what is served.

    Raises:
        ProtocolError: ``opening`` is malformed or asks for what is not served.
    """
    if opening.get("type") == "transcription":
        default = as_transcription(default, capabilities)
    return default, _apply(default, opening, capabilities, default)


def update_session(
    config: SessionConfig, patch: Mapping[str, Any], capabilities: Capabilities, *, default: SessionConfig, voice_locked: bool
) -> SessionConfig:
    """Return ``config`` under the partial session object ``patch``.

    Absent keys leave things as they are; ``null`` turns off what can be off and brings back ``default`` elsewhere; an object turns on.
    ``voice_locked`` says that the conversation holds assistant audio.

    Raises:
        ProtocolError: the patch is malformed, or what it asks for is not served or not allowed now.
    """
    kind = patch.get("type")
    if kind is None:
        refuse_missing("session.type")
    if kind != config.type and kind in list(_OTHER_TYPE):  # a list: the client's value may have no hash
        refuse_value("session.type", f"it is '{config.type}' for the whole session; {_OTHER_TYPE[config.type]}.")
    updated = _apply(config, patch, capabilities, default)
    if voice_locked and updated.audio.output.voice != config.audio.output.voice:
        raise ProtocolError(
            "Cannot update a conversation's voice if assistant audio is present.",
            code="cannot_update_voice",
            param="session.audio.output.voice",
        )
    return updated


def refuse_beta_names(patch: Mapping[str, Any], spellings: Mapping[str, str], param: str) -> None:
    """Refuse names of the beta dialect with a message that says the GA spelling.

    Raises:
        ProtocolError: ``patch`` holds such a name.
    """
    for name, spelling in spellings.items():
        if name in patch:
            refuse_unknown(f"{param}.{name}", f" Use '{param}.{spelling}'.")


def value_at(root: object, path: str) -> Any:
    """Return the value at a dotted path of nested models, ``None`` where there is none."""
    value = root
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _apply(config: SessionConfig, patch: Mapping[str, Any], capabilities: Capabilities, default: SessionConfig) -> SessionConfig:
    transcribes = config.type == "transcription"
    refuse_beta_names(patch, _INPUT_SPELLINGS if transcribes else _SESSION_SPELLINGS, "session")
    if transcribes:
        refuse_other_fields(patch)
    merged = validate(SessionConfig, _merge(config.model_dump(), patch, default.model_dump(), ""), "session")
    if merged.model.startswith(OPENAI_MODELS):
        merged = _with(merged, model=config.model)
    for name in _FIXED:
        if getattr(merged, name) != (fixed := getattr(config, name)):
            refuse_value(f"session.{name}", f"it is {shown(fixed)} for the whole session.")
    if transcribes:
        merged = unanswered(merged, patch)
    check(partial(value_at, merged), capabilities, "session")
    merged = _with(merged, instructions=session_instructions(merged, patch, capabilities, before=config, default=default))
    return _without_aliases(merged, capabilities, default)


def _merge(current: _Json, patch: _Json, default: _Json, path: str) -> dict[str, Any]:
    merged = dict(current)
    for key, value in patch.items():
        where = f"{path}{key}"
        if value is None and where not in _OFF and key in default:
            merged[key] = default[key]
        elif where in _MERGED and isinstance(value, Mapping):
            own = _defaults_of(where, value, current.get(key), default.get(key))
            base = current.get(key) or own
            if base.get("type") != own.get("type"):
                base = own
            merged[key] = _merge(base, value, own, f"{where}.")
        else:
            merged[key] = value
    return merged


def _defaults_of(where: str, patch: _Json, current: _Json | None, default: _Json | None) -> _Json:
    """Return what ``null`` brings back inside an object, and what stands under a patch that turns it on."""
    if where != "audio.input.turn_detection":
        return default or {}
    kind = patch.get("type") or (current or {}).get("type")
    if default and default["type"] == kind:
        return default
    detector = _DETECTORS.get(kind) if isinstance(kind, str) else None
    return detector().model_dump() if detector else {}


def _without_aliases(config: SessionConfig, capabilities: Capabilities, default: SessionConfig) -> SessionConfig:
    """Put the names of what is really in force in the place of the API's own names and of absent ones."""
    audio = config.audio
    output, transcription = audio.output, audio.input.transcription
    if output.voice not in capabilities.voices:
        output = _with(output, voice=default.audio.output.voice if default.audio.output.voice in capabilities.voices else None)
    if transcription and transcription.model not in capabilities.transcription_models:
        transcription = _with(transcription, model=capabilities.transcription_models[0])
    return _with(config, audio=_with(audio, output=output, input=_with(audio.input, transcription=transcription)))


def _with(model: _Model, /, **changes: object) -> _Model:
    return model.model_copy(update=changes)
