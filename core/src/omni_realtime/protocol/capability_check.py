"""The one check of a session, a response or an item against what a deployment serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.protocol.items import InputAudio, InputImage, Item, Message
from omni_realtime.protocol.session_object import INCLUDE_LOGPROBS, FunctionToolChoice
from omni_realtime.protocol.validation import refuse_value, shown

Read: TypeAlias = Callable[[str], Any]
"""Gives the value in force at a path of the object under check, ``None`` where there is none."""

OPENAI_VOICES = frozenset({"alloy", "ash", "ballad", "cedar", "coral", "echo", "marin", "sage", "shimmer", "verse"})
"""The API's own voices: clients name one by default, so each stands for the deployment's default voice."""

OPENAI_TRANSCRIPTION_MODELS = frozenset({
    "gpt-4o-mini-transcribe",
    "gpt-4o-mini-transcribe-2025-12-15",
    "gpt-4o-transcribe",
    "gpt-4o-transcribe-diarize",
    "gpt-live-transcribe",
    "gpt-realtime-whisper",
    "gpt-transcribe",
    "whisper-1",
})
"""The API's own transcription models: clients name one by default, so each stands for the deployment's first."""

OPENAI_MAX_OUTPUT_TOKENS = 4096
"""The API's largest limit: clients send it by default, so it is taken where the model's own answers are shorter."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A value that must be ``None`` or one of those served; ``aliases`` are taken too but not offered."""

    path: str
    served: Callable[[Capabilities], Iterable[object]]
    aliases: frozenset[str] = frozenset()


def _only(*values: object) -> Callable[[Capabilities], Iterable[object]]:
    return lambda _: values


def _detectors(capabilities: Capabilities) -> Iterable[object]:
    return (*(capabilities.turn_detection if capabilities.audio_input else ()), None)


def _includes(capabilities: Capabilities) -> Iterable[object]:
    return ((), None, *([(INCLUDE_LOGPROBS,)] if capabilities.transcribes and capabilities.transcription_logprobs else []))


_CHOICES = (
    _Choice("output_modalities", lambda served: [(modality,) for modality in served.output_modalities]),
    _Choice("audio.input.format.type", lambda served: served.input_formats),
    _Choice("audio.input.turn_detection.type", _detectors),
    _Choice("audio.input.transcription.model", lambda served: served.transcription_models, OPENAI_TRANSCRIPTION_MODELS),
    _Choice("audio.input.transcription.keywords", _only((), None)),
    _Choice("audio.input.transcription.delay", _only(None)),
    _Choice("audio.input.noise_reduction", _only(None)),
    _Choice("audio.output.format.type", lambda served: served.output_formats),
    _Choice("audio.output.voice", lambda served: served.voices, OPENAI_VOICES),
    _Choice("audio.output.speed", _only(1.0)),
    _Choice("include", _includes),
    _Choice("conversation", lambda served: ("auto", *(["none"] if served.out_of_band_responses else []))),
)


def _transcription(read: Read, capabilities: Capabilities) -> str | None:
    if read("audio.input.transcription") is None or capabilities.transcribes:
        return None
    return "this model does not transcribe; send null."


def _language(read: Read, capabilities: Capabilities) -> str | None:
    return _unserved_language(read("audio.input.transcription.language"), capabilities)


def _languages(read: Read, capabilities: Capabilities) -> str | None:
    language, languages = read("audio.input.transcription.language"), read("audio.input.transcription.languages")
    if not languages:
        return None
    if len(languages) > 1:
        return "this model is told one language at most; send one, or null for any."
    if language not in {None, *languages}:
        return f"it contradicts 'language', which is {shown(language)}; send null for one of them."
    return _unserved_language(languages[0], capabilities)


def _unserved_language(language: str | None, capabilities: Capabilities) -> str | None:
    served = capabilities.transcription_languages
    if not served or language is None or language in served:
        return None
    return f"{shown(language)} is not served; served: {_listed(served)}."


def _tools(read: Read, capabilities: Capabilities) -> str | None:
    names = Counter(tool.name for tool in read("tools"))
    if names and not capabilities.tools:
        return "this model does not call tools; send []."
    twice = [name for name, count in names.items() if count > 1]
    return f"the name {shown(twice[0])} stands there twice; give each tool its own name." if twice else None


def _tool_choice(read: Read, _: Capabilities) -> str | None:
    choice, names = read("tool_choice"), [tool.name for tool in read("tools")]
    if isinstance(choice, FunctionToolChoice) and choice.name not in names:
        return f"there is no tool {shown(choice.name)}; the tools are: {_listed(names) or 'none'}."
    if choice == "required" and not names:
        return "'required' needs at least one tool."
    return None


def _max_output_tokens(read: Read, capabilities: Capabilities) -> str | None:
    value, limit = read("max_output_tokens"), max(OPENAI_MAX_OUTPUT_TOKENS, capabilities.max_output_tokens)
    return None if value == "inf" or value <= limit else f'{value} is not served; served: 1 to {limit}, or "inf".'


_RULES: tuple[tuple[str, Callable[[Read, Capabilities], str | None]], ...] = (
    ("audio.input.transcription", _transcription),
    ("audio.input.transcription.language", _language),
    ("audio.input.transcription.languages", _languages),
    ("tools", _tools),
    ("tool_choice", _tool_choice),
    ("max_output_tokens", _max_output_tokens),
)


def check(read: Read, capabilities: Capabilities, param: str) -> None:
    """Check a session or a response, read by path, against what is served.

    Raises:
        ProtocolError: something is not served; ``param`` is its path and the message names what is.
    """
    for path, rule in _RULES:
        if why := rule(read, capabilities):
            refuse_value(f"{param}.{path}", why)
    for choice in _CHOICES:
        value, served = read(choice.path), list(choice.served(capabilities))
        if value is not None and value not in served and not (isinstance(value, str) and value in choice.aliases):
            refuse_value(f"{param}.{choice.path}", f"{shown(value)} is not served; served: {_listed(served) or 'null'}.")


def check_item(item: Item, capabilities: Capabilities, param: str = "item") -> None:
    """Check an item that a client brings against what is served.

    Raises:
        ProtocolError: a part's kind is not served; ``param`` is its path and the message names what is.
    """
    if not isinstance(item, Message):
        return
    hears, sees = capabilities.audio_input, capabilities.image_input
    served = ["input_text", *(["input_audio"] if hears else []), *(["input_image"] if sees else [])]
    for index, part in enumerate(item.content):
        kind = {InputAudio: "input_audio", InputImage: "input_image"}.get(type(part), "input_text")
        if kind not in served:
            refuse_value(f"{param}.content.{index}.type", f"'{kind}' is not served; served: {_listed(served)}.")


def _listed(values: Iterable[object]) -> str:
    return ", ".join(shown(value) for value in values)
