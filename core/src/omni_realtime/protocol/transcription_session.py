"""What makes a session one of transcription: it hears, and never answers.

Source: ``RealtimeTranscriptionSessionCreateRequest`` of the Realtime API reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.protocol.client_events import ClientEvent, ConversationItemCreate, ResponseCreate
from omni_realtime.protocol.session_object import ServerVad, SessionConfig, Transcription, TurnDetection
from omni_realtime.protocol.validation import refuse_unknown, refuse_value

_FIELDS = frozenset({"type", "object", "id", "expires_at", "audio", "include"})
_ANSWERS = ("create_response", "interrupt_response")
_OTHER_EVENTS: Mapping[type[ClientEvent], str] = MappingProxyType({
    ConversationItemCreate: "it writes down what comes with 'input_audio_buffer.append'",
    ResponseCreate: "it has no responses; connect without `intent` for a conversation",
})


def as_transcription(config: SessionConfig, capabilities: Capabilities) -> SessionConfig:
    """Return the transcription session that begins where ``config`` does: its input, written down.

    Raises:
        ProtocolError: nothing transcribes.
    """
    if not capabilities.transcribes:
        refuse_value("session.type", "this model does not transcribe; 'realtime' is served.")
    transcription = config.audio.input.transcription or Transcription(model=capabilities.transcription_models[0])
    config = config.model_copy(update={"type": "transcription", "object": "realtime.transcription_session"})
    return _with_input(config, transcription=transcription, turn_detection=_without_answers(config.audio.input.turn_detection))


def refuse_other_fields(patch: Mapping[str, Any]) -> None:
    """Refuse what only a session that answers has.

    Raises:
        ProtocolError: ``patch`` names such a field.
    """
    known = SessionConfig.model_fields.keys() - _FIELDS
    for name in patch:
        if name in known:
            refuse_unknown(f"session.{name}", " A transcription session has `audio.input` and `include` alone.")
    audio = patch.get("audio")
    if isinstance(audio, Mapping) and "output" in audio:
        refuse_unknown("session.audio.output", " A transcription session makes no audio.")


def refuse_other_events(event: ClientEvent) -> None:
    """Refuse what means nothing where no model answers.

    Raises:
        ProtocolError: ``event`` is of such a type.
    """
    if why := _OTHER_EVENTS.get(type(event)):
        refuse_value("type", f"'{event.type}' is not served in a transcription session: {why}.")


def unanswered(config: SessionConfig, patch: Mapping[str, Any]) -> SessionConfig:
    """Return ``config``, made under the well-formed ``patch``, with turns that nothing answers.

    Raises:
        ProtocolError: ``patch`` asks for answers.
    """
    asked = ((patch.get("audio") or {}).get("input") or {}).get("turn_detection") or {}
    for name in _ANSWERS:
        if asked.get(name):
            refuse_value(f"session.audio.input.turn_detection.{name}", "a transcription session has no responses; send false.")
    if asked.get("idle_timeout_ms") is not None:
        refuse_value("session.audio.input.turn_detection.idle_timeout_ms", "a transcription session has no responses; send null.")
    return _with_input(config, turn_detection=_without_answers(config.audio.input.turn_detection))


def _without_answers(detection: TurnDetection | None) -> TurnDetection | None:
    if detection is None:
        return None
    idle = {"idle_timeout_ms": None} if isinstance(detection, ServerVad) else {}
    return detection.model_copy(update={"create_response": False, "interrupt_response": False, **idle})


def _with_input(config: SessionConfig, **changes: object) -> SessionConfig:
    audio = config.audio
    return config.model_copy(update={"audio": audio.model_copy(update={"input": audio.input.model_copy(update=changes)})})
