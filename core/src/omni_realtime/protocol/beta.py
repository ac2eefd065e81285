"""The beta dialect of 2024, as a translation of GA at the edge: flat sessions, and other names for the same things.

What is GA's own or the beta's own is in the tables here and in ``docs/beta_dialect.md``; every other name means the same in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias

from omni_realtime.protocol.client_events import ClientEvent, ResponseCancel, ResponseCreate
from omni_realtime.protocol.decode import DecodeLimits, decode
from omni_realtime.protocol.dialect import Dialect
from omni_realtime.protocol.encode import event_to_wire
from omni_realtime.protocol.frame import to_frame
from omni_realtime.protocol.items import FunctionCall
from omni_realtime.protocol.server_events import (
    ResponseCreated,
    ResponseDone,
    ResponseOutputItemDone,
    ServerEvent,
    SessionCreated,
)
from omni_realtime.protocol.validation import pick, refuse_type, refuse_unknown, refuse_value, shown

_Json: TypeAlias = dict[str, Any]

TEMPERATURE: Final = 0.8
"""The dialect's default, and the only value served: sampling belongs to the deployment."""

MOST_TOKENS: Final = 4096
"""The dialect's largest limit of tokens. Its clients send it by default, and mean ``"inf"``: as many as the model makes."""

_LONGEST_NAME = 80
"""Characters of a client's own key that an error message repeats."""

_AUDIO_AND_TEXT = ["audio", "text"]
_FORMATS: Mapping[str, _Json] = MappingProxyType({
    "pcm16": {"type": "audio/pcm", "rate": 24000},
    "g711_ulaw": {"type": "audio/pcmu"},
    "g711_alaw": {"type": "audio/pcma"},
})
_FORMAT_NAMES: Mapping[str, str] = MappingProxyType({wire["type"]: name for name, wire in _FORMATS.items()})
_ASSISTANT_PARTS: Mapping[str, str] = MappingProxyType({"text": "output_text", "audio": "output_audio"})
_PART_NAMES: Mapping[str, str] = MappingProxyType({ga: beta for beta, ga in _ASSISTANT_PARTS.items()})
_USER_PARTS = ("input_text", "input_audio")


def _same(value: Any, _param: str = "") -> Any:
    return value


@dataclass(frozen=True, slots=True)
class _Field:
    """Where GA has a field of a flat object, and how its value is said; ``words`` are those of error messages, GA's to the beta's."""

    path: str
    to_ga: Callable[[Any, str], Any] = _same
    to_beta: Callable[[Any], Any] = _same
    words: Mapping[str, str] | None = None


def _modalities_to_ga(value: object, param: str) -> list[str]:
    if not isinstance(value, list):
        refuse_type(param, "an array", value)
    if value not in (["text"], _AUDIO_AND_TEXT, _AUDIO_AND_TEXT[::-1]):
        refuse_value(param, f'{shown(value)} is not one of ["audio", "text"], ["text"].')
    return ["audio"] if "audio" in value else ["text"]


def _modalities_to_beta(value: Sequence[str]) -> list[str]:
    return _AUDIO_AND_TEXT if "audio" in value else ["text"]


def _format_to_ga(value: object, param: str) -> _Json:
    name = param.rpartition(".")[2]
    return _FORMATS[pick({name: value}, name, _FORMATS, param.removesuffix(f".{name}"))]


def _format_to_beta(value: Mapping[str, Any]) -> str:
    return _FORMAT_NAMES[value["type"]]


def _only(*names: str) -> tuple[Callable[[Any, str], Any], Callable[[Any], Any]]:
    """Keep an object to the dialect's own keys, in both directions."""

    def to_ga(value: Any, param: str) -> Any:
        for name in value if isinstance(value, Mapping) else ():
            if name not in names:
                _refuse_unknown(param, name)
        return value

    def to_beta(value: Any) -> Any:
        return value and {name: value[name] for name in names if name in value}

    return to_ga, to_beta


def _limit_to_ga(value: Any, _param: str) -> Any:
    return "inf" if isinstance(value, int) and value == MOST_TOKENS else value


def _tool_choice_to_ga(value: Any, _param: str) -> Any:
    """Take the nested form of a named function too, which the beta's documents show."""
    if not isinstance(value, Mapping) or not isinstance(function := value.get("function"), Mapping):
        return value
    return {**{name: given for name, given in value.items() if name != "function"}, **function}


def _items_to_ga(value: Any, param: str) -> Any:
    return [_item_to_ga(item, f"{param}.{index}") for index, item in enumerate(value)] if isinstance(value, list) else value


def _item_to_ga(item: Any, param: str) -> Any:
    if not isinstance(item, Mapping) or not isinstance(content := item.get("content"), list):
        return item
    assistant = item.get("role") == "assistant"
    parts = [_part_to_ga(part, f"{param}.content.{index}", assistant=assistant) for index, part in enumerate(content)]
    return {**item, "content": parts}


def _part_to_ga(part: Any, param: str, *, assistant: bool) -> Any:
    if not isinstance(part, Mapping):
        return part
    if assistant:
        return {**part, "type": _ASSISTANT_PARTS[pick(part, "type", _ASSISTANT_PARTS, param)]}
    pick(part, "type", _USER_PARTS, param)
    return part


_MODALITIES = _Field("output_modalities", _modalities_to_ga, _modalities_to_beta, MappingProxyType({'["audio"]': '["audio", "text"]'}))
_FORMAT_WORDS = MappingProxyType({f"'{ga}'": f"'{name}'" for ga, name in _FORMAT_NAMES.items()})
_INPUT_FORMAT = _Field("audio.input.format", _format_to_ga, _format_to_beta, _FORMAT_WORDS)
_OUTPUT_FORMAT = _Field("audio.output.format", _format_to_ga, _format_to_beta, _FORMAT_WORDS)
_INPUT = {
    "input_audio_format": _INPUT_FORMAT,
    "input_audio_transcription": _Field("audio.input.transcription", *_only("model", "language", "prompt")),
    "input_audio_noise_reduction": _Field("audio.input.noise_reduction", *_only("type")),
    "turn_detection": _Field(
        "audio.input.turn_detection",
        *_only("type", "threshold", "prefix_padding_ms", "silence_duration_ms", "eagerness", "create_response", "interrupt_response"),
    ),
}
_FIXED = {name: _Field(name) for name in ("id", "object", "model", "expires_at")}
_LIMIT = _Field("max_output_tokens", _limit_to_ga)
_TOOLS = {"tools": _Field("tools"), "tool_choice": _Field("tool_choice", _tool_choice_to_ga)}

SESSION: Mapping[str, _Field] = MappingProxyType({
    **_FIXED,
    "modalities": _MODALITIES,
    "instructions": _Field("instructions"),
    "voice": _Field("audio.output.voice"),
    "output_audio_format": _OUTPUT_FORMAT,
    **_INPUT,
    **_TOOLS,
    "max_response_output_tokens": _LIMIT,
    "speed": _Field("audio.output.speed"),
    "tracing": _Field("tracing"),
})
"""The session's fields, and where GA has them."""

TRANSCRIPTION_SESSION: Mapping[str, _Field] = MappingProxyType({
    **{name: field for name, field in _FIXED.items() if name != "model"},
    **_INPUT,
    "include": _Field("include"),
})
"""The fields of a session that only transcribes."""

RESPONSE: Mapping[str, _Field] = MappingProxyType({
    "modalities": _MODALITIES,
    "instructions": _Field("instructions"),
    "voice": _Field("audio.output.voice"),
    "output_audio_format": _OUTPUT_FORMAT,
    **_TOOLS,
    "max_response_output_tokens": _LIMIT,
    "max_output_tokens": _LIMIT,
    "conversation": _Field("conversation"),
    "input": _Field("input", _items_to_ga),
    "metadata": _Field("metadata"),
})
"""The parameters of ``response.create``; the dialect had two names for the limit of tokens."""


def _nested(flat: Mapping[str, Any], fields: Mapping[str, _Field], param: str) -> _Json:
    """Return GA's object of a flat one; ``null`` stays ``null``."""
    nested: _Json = {}
    for name, value in flat.items():
        if name not in fields:
            _refuse_unknown(param, name)
        field = fields[name]
        *path, last = field.path.split(".")
        place = nested
        for step in path:
            place = place.setdefault(step, {})
        if last in place:
            refuse_value(f"{param}.{name}", "it is given under both of its names; send one.")
        place[last] = None if value is None else field.to_ga(value, f"{param}.{name}")
    return nested


def _flat(nested: Mapping[str, Any], fields: Mapping[str, _Field]) -> _Json:
    """Return the complete flat object of GA's; what GA leaves out is ``null``."""
    flat = {}
    for name, field in fields.items():
        value: Any = nested
        for step in field.path.split("."):
            value = value.get(step)
        flat[name] = None if value is None else field.to_beta(value)
    return flat


def _without_temperature(flat: Mapping[str, Any], param: str) -> _Json:
    """Take the only temperature that is served, for which GA has no name."""
    value, where = flat.get("temperature"), f"{param}.temperature"
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        refuse_type(where, "a number", value)
    if value not in {None, TEMPERATURE}:
        refuse_value(where, f"{shown(value)} is not served; served: {TEMPERATURE}. Sampling is set in the deployment.")
    return {name: given for name, given in flat.items() if name != "temperature"}


def _refuse_unknown(param: str, name: str) -> NoReturn:
    refuse_unknown(f"{param}.{name[:_LONGEST_NAME]}")


# From the client.


def _translated(key: str, translate: Callable[[Any, str], Any]) -> Callable[[_Json], _Json]:
    """Translate the object at one key; where there is none, GA says so."""
    return lambda event: {**event, key: translate(event[key], key)} if isinstance(event.get(key), Mapping) else event


def _session_to_ga(session: Mapping[str, Any], param: str) -> _Json:
    return {"type": "realtime"} | _nested(_without_temperature(session, param), SESSION, param)


def _transcription_to_ga(session: Mapping[str, Any], param: str) -> _Json:
    return {"type": "transcription"} | _nested(session, TRANSCRIPTION_SESSION, param)


def _response_to_ga(response: Mapping[str, Any], param: str) -> _Json:
    return _nested(_without_temperature(response, param), RESPONSE, param)


CLIENT_EVENTS: Mapping[str, Callable[[_Json], _Json]] = MappingProxyType({
    "session.update": _translated("session", _session_to_ga),
    "transcription_session.update": lambda event: _translated("session", _transcription_to_ga)(event) | {"type": "session.update"},
    "input_audio_buffer.append": _same,
    "input_audio_buffer.commit": _same,
    "input_audio_buffer.clear": _same,
    "conversation.item.create": _translated("item", _item_to_ga),
    "conversation.item.delete": _same,
    "conversation.item.retrieve": _same,
    "conversation.item.truncate": _same,
    "response.create": _translated("response", _response_to_ga),
    "response.cancel": _same,
})
"""Every event of the dialect, and how GA has it."""


def to_ga(event: _Json) -> _Json:
    """Return GA's event of a client's; one that the dialect lacks stays as it is, for GA to refuse.

    Raises:
        ProtocolError: it holds what the dialect lacks, or a value that it does not serve.
    """
    kind = event.get("type")
    translate = CLIENT_EVENTS.get(kind) if isinstance(kind, str) else None
    return translate(event) if translate else event


# To the client.


def _item_to_beta(item: _Json) -> _Json:
    for part in item.get("content", ()):
        part["type"] = _PART_NAMES.get(part["type"], part["type"])
    return item


def _response_to_beta(response: _Json) -> _Json:
    usage = response["usage"]
    if usage is not None:
        details = usage["input_token_details"]
        usage = usage | {"input_token_details": {name: details[name] for name in ("text_tokens", "audio_tokens", "cached_tokens")}}
    output = response.pop("audio")["output"]
    return response | {
        "output": [_item_to_beta(item) for item in response["output"]],
        "modalities": _modalities_to_beta(response.pop("output_modalities")),
        "voice": output.get("voice"),
        "output_audio_format": _format_to_beta(output["format"]),
        "temperature": TEMPERATURE,
        "usage": usage,
    }


def _session_event(event: _Json) -> _Json:
    session = event["session"]
    if session["type"] == "transcription":
        return event | {"type": f"transcription_{event['type']}", "session": _flat(session, TRANSCRIPTION_SESSION)}
    return event | {"session": {**_flat(session, SESSION), "temperature": TEMPERATURE}}


def _item_event(event: _Json) -> _Json:
    return event | {"item": _item_to_beta(event["item"])}


def _response_event(event: _Json) -> _Json:
    return event | {"response": _response_to_beta(event["response"])}


def _error(event: _Json) -> _Json:
    error = event["error"]
    name, words = _name(error["param"] or "", unknown=error["code"] == "unknown_parameter")
    if name is not None:
        message = error["message"]
        for ga, beta in {error["param"]: name, **words}.items():
            message = message.replace(ga, beta)
        error |= {"param": name, "message": message}
    return event


def _name(param: str, *, unknown: bool) -> tuple[str | None, Mapping[str, str]]:
    """Return the dialect's name of a GA path, ``None`` where it is the same, and the words of its values."""
    root, _, path = param.partition(".")
    for name, field in _ERROR_FIELDS.get(root, {}).items():
        if path == field.path and unknown:  # GA knows this field, and so it was refused here, under the name that the client gave
            break
        if f"{path}.".startswith(f"{field.path}."):
            rest = "" if field.words else path.removeprefix(field.path)  # a value that is one word here has no path of its own
            return f"{root}.{name}{rest}", field.words or {}
    return None, {}


def _renamed(kind: str) -> Callable[[_Json], _Json]:
    return lambda event: event | {"type": kind}


def _without_name(event: _Json) -> _Json:
    del event["name"]
    return event


_ERROR_FIELDS = {"session": {**TRANSCRIPTION_SESSION, **SESSION}, "response": RESPONSE}

SERVER_EVENTS: Mapping[str, Callable[[_Json], _Json] | None] = MappingProxyType({
    "session.created": _session_event,
    "session.updated": _session_event,
    "error": _error,
    "conversation.item.added": lambda event: _item_event(event) | {"type": "conversation.item.created"},
    "conversation.item.done": None,
    "conversation.item.deleted": _same,
    "conversation.item.retrieved": _item_event,
    "conversation.item.truncated": _same,
    "conversation.item.input_audio_transcription.delta": _same,
    "conversation.item.input_audio_transcription.completed": _same,
    "conversation.item.input_audio_transcription.failed": _same,
    "input_audio_buffer.committed": _same,
    "input_audio_buffer.cleared": _same,
    "input_audio_buffer.speech_started": _same,
    "input_audio_buffer.speech_stopped": _same,
    "input_audio_buffer.timeout_triggered": None,
    "rate_limits.updated": _same,
    "response.created": _response_event,
    "response.done": _response_event,
    "response.output_item.added": _item_event,
    "response.output_item.done": _item_event,
    "response.content_part.added": _same,
    "response.content_part.done": _same,
    "response.output_text.delta": _renamed("response.text.delta"),
    "response.output_text.done": _renamed("response.text.done"),
    "response.output_audio.delta": _renamed("response.audio.delta"),
    "response.output_audio.done": _renamed("response.audio.done"),
    "response.output_audio_transcript.delta": _renamed("response.audio_transcript.delta"),
    "response.output_audio_transcript.done": _renamed("response.audio_transcript.done"),
    "response.function_call_arguments.delta": _same,
    "response.function_call_arguments.done": _without_name,
})
"""Every event that GA sends, and how the dialect has it; ``None`` where it has none."""


def to_beta(event: ServerEvent) -> _Json | None:
    """Return the dialect's event of a server event, ``None`` where it has none."""
    translate = SERVER_EVENTS[event.type]
    return None if translate is None else translate(event_to_wire(event))


class BetaDialect(Dialect):
    """The beta dialect of one connection.

    Its clients run a tool at ``response.output_item.done`` and ask for the next response at once, while the one that called still runs:
    such a ``response.create`` waits for the ``response.done``. A second one is the session's to refuse.
    """

    def __init__(self, *, conversation_id: str) -> None:
        """``conversation_id`` is announced, as GA does not."""
        self._conversation_id = conversation_id
        self._active: str | None = None
        self._called = False
        self._waiting: list[ClientEvent] = []
        self._released: list[ClientEvent] = []

    def decode(self, frame: str | bytes, *, limits: DecodeLimits) -> ClientEvent | None:
        """Return the event of a client's frame, ``None`` where it has to wait until ``released`` returns it.

        Raises:
            ProtocolError: the frame is no event of this dialect.
        """
        event = decode(frame, limits=limits, translate=to_ga)
        match event:
            case ResponseCreate() if self._called and not self._waiting and event.response.get("conversation") != "none":
                self._waiting.append(event)
                return None
            case ResponseCancel(response_id=None) if self._waiting:
                # It comes after the waiting create, and so stops that response too.
                self._waiting.append(event)
        return event

    def encode(self, event: ServerEvent) -> Sequence[str]:
        """Return the frames of a server event."""
        self._follow(event)
        wire = to_beta(event)
        frames = [] if wire is None else [wire]
        if isinstance(event, SessionCreated):
            frames.append(self._conversation_created(event))
        return [to_frame(frame) for frame in frames]

    def released(self) -> Sequence[ClientEvent]:
        """Return the events that waited and are to reach the session now, before any other."""
        released, self._released = self._released, []
        return released

    def _follow(self, event: ServerEvent) -> None:
        match event:
            case ResponseCreated(response=response) if response.conversation_id is not None:
                self._active = response.id
            case ResponseOutputItemDone(response_id=self._active, item=FunctionCall(status="completed")):
                self._called = True
            case ResponseDone(response=response) if response.id == self._active:
                self._active, self._called = None, False
                self._released += self._waiting
                self._waiting = []

    def _conversation_created(self, event: SessionCreated) -> _Json:
        return {
            "type": "conversation.created",
            "event_id": f"{event.event_id}_conversation",
            "conversation": {"id": self._conversation_id, "object": "realtime.conversation"},
        }
