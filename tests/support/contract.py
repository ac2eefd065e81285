"""Plays single client events to a deployment that serves all that the core can serve, and says what came of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from official_fields import EVENT_ID, Case, Fields, Json, client_events
from omni_realtime.protocol import Capabilities
from omni_realtime.protocol.prompt_template import PromptTemplate
from omni_realtime.session import SessionSettings
from omni_realtime.testing import MemoryClient, Script, call_reply, spoken_reply, tone

SECOND: Final = base64.b64encode(bytes(48_000)).decode()
TOOL: Final = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}

SETTINGS: Final = SessionSettings(
    model="scripted",
    capabilities=Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        image_input=True,
        turn_detection=("server_vad", "semantic_vad"),
        transcription_models=("ears",),
        transcription_logprobs=True,
        voices=("anna", "bert"),
        tools=True,
        prompts=(PromptTemplate(id="pmpt_greeting", version="2", instructions="Greet {{name}}."),),
    ),
    input_rate=16000,
    detector_rate=16000,
    detector_frame=512,
    scorer_rate=16000,
    scorer_window=128_000,
)

PROMPT: Final = {"id": "pmpt_greeting", "variables": {"name": "Anna"}}
PNG: Final = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
_TEXT: Final = {"type": "input_text", "text": "Hello."}

CALL: Final = {"type": "function_call", "name": "look", "arguments": "{}"}

_SAMPLES: Final[dict[str, tuple[object, ...]]] = {
    "event_id": (EVENT_ID,),
    "previous_item_id": ("root", "item_user"),
    "=audio": (SECOND,),
    "content[].audio": (SECOND,),
    "audio_end_ms": (100,),
    "content_index": (0,),
    "object": ("realtime.item",),
    "arguments": ("{}",),
    "parameters": ({"type": "object", "properties": {}},),
    "(realtime).model": ("scripted", "gpt-realtime"),
    "transcription.model": ("ears", "whisper-1"),
    "language": ("en",),
    "voice": ("anna", "marin", {"id": "anna"}),
    "prompt": (PROMPT,),
    "prompt.id": ("pmpt_greeting",),
    "prompt.version": ("2",),
    "prompt.variables": (PROMPT["variables"],),
    "voice.id": ("anna",),
    "speed": (1.0, 1.25),
    "max_output_tokens": (1, 4096, "inf"),
    "output_modalities": (["audio"], ["text"]),
    "conversation": ("auto", "none"),
    "create_response": (True, False),
    "interrupt_response": (True, False),
    "threshold": (0.7,),
    "idle_timeout_ms": (5000,),
    "retention_ratio": (0.8,),
    "content": ([],),
    "(message user).content": (
        [_TEXT],
        [{"type": "input_audio", "audio": SECOND}],
        [{"type": "input_image", "image_url": PNG}],
        [_TEXT, {"type": "input_audio", "transcript": "Hello."}],
    ),
    "(message assistant).content": ([{"type": "output_text", "text": "Hi."}], [{"type": "output_audio", "transcript": "Hi."}]),
    "(message system).content": ([_TEXT],),
    "content[].type": ("input_text",),
    "(message assistant).content[].type": ("output_text",),
    "content[].image_url": (PNG,),
    "(function_call).name": ("look",),
    "(function_call).call_id": ("call_of_the_client",),
    "response.input": ([], [{"type": "message", "role": "user", "content": [_TEXT]}], [{"type": "item_reference", "id": "item_user"}]),
    "tools[](function).name": ("look",),
    "tool_choice(function).name": ("look",),
    "tools": ([TOOL], []),
    "tool_choice": ("none", "auto", {"type": "function", "name": "look"}, "required", {"type": "mcp", "server_label": "x"}),
}
"""The values that are tried for a field, by the end of its label; elsewhere the kind of the field suggests one."""

_AROUND: Final[dict[str, Json]] = {
    "content[].type": _TEXT,
    "content[].text": {"type": "input_text"},
    "content[].audio": {"type": "input_audio"},
    "content[].transcript": {"type": "input_audio", "audio": SECOND},
    "content[].image_url": {"type": "input_image"},
    "content[].detail": {"type": "input_image", "image_url": PNG},
    "content[](input_text).type": _TEXT,
    "tools[](function).type": TOOL,
    "(message assistant).content[].type": {"type": "output_text", "text": "Hello."},
    "(message assistant).content[].text": {"type": "output_text"},
    "(message assistant).content[].transcript": {"type": "output_audio"},
    "(message assistant).content[].audio": {"type": "output_audio", "transcript": "Hello."},
    "prompt.id": PROMPT,
    "prompt.version": PROMPT,
    "prompt.variables": PROMPT,
    "tools[](function).description": TOOL,
    "tools[](function).parameters": TOOL,
}
"""The object that a field stands in, where it needs more than its required fields."""


_ANSWERS: Final[dict[str, tuple[str, ...]]] = {
    "session.update": ("session.updated",),
    "input_audio_buffer.append": (),
    "input_audio_buffer.commit": ("input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"),
    "input_audio_buffer.clear": ("input_audio_buffer.cleared",),
    "conversation.item.create": ("conversation.item.added", "conversation.item.done"),
    "conversation.item.delete": ("conversation.item.deleted",),
    "conversation.item.retrieve": ("conversation.item.retrieved",),
    "conversation.item.truncate": ("conversation.item.truncated",),
    "response.create": ("response.created",),
    "response.cancel": ("response.done",),
}
"""What the contract answers to an event that is served, before the model says anything."""


@dataclass(frozen=True)
class Played:
    """What a case came to: the answers to its event, and to an update that was sent after it."""

    case: Case
    answers: tuple[Json, ...]
    afterwards: tuple[Json, ...]
    closed: bool

    @property
    def error(self) -> Json | None:
        """The error, where the event was refused."""
        return next((event["error"] for event in self.answers if event["type"] == "error"), None)

    @property
    def served(self) -> bool:
        """Whether the answers are those of the contract."""
        return tuple(event["type"] for event in self.answers) == _ANSWERS.get(self.case.event["type"])

    @property
    def refused(self) -> bool:
        """Whether the one answer is an error that names the field, an object that holds it, or the kind of such an object.

        What null lacks may be named too.
        """
        if self.error is None or len(self.answers) > 1:
            return False
        param = self.error["param"] or ""
        named = param.removesuffix(".type") if "." in param else param
        if param in {"type", self.case.param}:
            return True
        outer, inner = f"{self.case.param}.", f"{named}."
        return bool(named) and (outer.startswith(inner) or (self.case.variation == "null" and inner.startswith(outer)))


@cache
def played() -> tuple[Played, ...]:
    """Every case, each sent to a client of its own."""
    return tuple(map(_play, _cases()))


def _play(case: Case) -> Played:
    client = _connect(case.event["type"], transcription=_transcription(case))
    answers = tuple(client.send(case.event))
    kind = "transcription" if _transcription(case) else "realtime"
    afterwards = tuple(client.send({"type": "session.update", "session": {"type": kind}}))
    return Played(case, answers, afterwards, client.closed is not None)


def _cases() -> Iterator[Case]:
    reference = _connect("response.cancel")
    _, spoken, call = (event["item"] for event in reference.events if event["type"] == "conversation.item.done")
    ids: Mapping[str, tuple[object, ...]] = {
        "item_id": (spoken["id"],),
        "call_id": (call["call_id"],),
        "response_id": reference.waiting,
    }
    walk = Fields(_SAMPLES | ids, _AROUND, {"response.input[](function_call_output)": (CALL | {"call_id": call["call_id"]},)})
    for kind in client_events():
        yield from walk.cases(kind)


def _connect(kind: str, *, transcription: bool = False) -> MemoryClient:
    """A client amid a conversation: the user's text, a spoken answer, a call without its output, a second of audio in the buffer.

    ``response.cancel`` finds a response that runs.
    """
    client = MemoryClient(SETTINGS, *_scripts(), autoplay=False, opening={"type": "transcription"} if transcription else {})
    if transcription:
        return client
    text = {"id": "item_user", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
    client.send({"type": "conversation.item.create", "item": text})
    for _ in range(2):
        client.send({"type": "response.create"})
        client.play()
    client.send({"type": "session.update", "session": {"type": "realtime", "tools": [TOOL]}})
    client.send({"type": "input_audio_buffer.append", "audio": SECOND})
    if kind == "response.cancel":
        client.send({"type": "response.create"})
    return client


def _transcription(case: Case) -> bool:
    session: Any = case.event.get("session")
    return isinstance(session, dict) and session.get("type") == "transcription"


def _scripts() -> list[Script]:
    answer = spoken_reply("Hello there.", tone(1.0))
    return [answer, call_reply("look", "{}"), answer]
