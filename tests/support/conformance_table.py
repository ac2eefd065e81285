"""Writes docs/conformance.md: what the server did with every client event, every field of one, and every server event.

Run it from the checkout after a change of the vocabulary: ``PYTHONPATH=tests/support .venv/bin/python -m conformance_table``.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from openai.types.realtime import RealtimeServerEvent

from contract import Played, played
from official_fields import client_events
from server_event_scenes import sent_types

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
REFUSED = "refused by name"
WITHOUT_EFFECT = dict.fromkeys(("reasoning", "reasoning.effort"), "accepted and echoed: no model here reasons") | dict.fromkeys(
    ("tracing", "tracing.group_id", "tracing.metadata", "tracing.workflow_name"), "accepted and echoed: this server keeps no traces"
)
"""What is in force and changes nothing, by the path in a session or a response."""
ELSEWHERE = {
    "conversation.created": "beta dialect only",
    "conversation.item.created": "beta dialect only; `conversation.item.added` and `.done` here",
    "conversation.item.input_audio_transcription.segment": "not sent: transcription by speakers is refused by name",
    "input_audio_buffer.dtmf_event_received": "not on this transport: SIP",
    "output_audio_buffer.started": "not on this transport: WebRTC and SIP",
    "output_audio_buffer.stopped": "not on this transport: WebRTC and SIP",
    "output_audio_buffer.cleared": "not on this transport: WebRTC and SIP",
    "mcp_list_tools.in_progress": "not sent: MCP tools are refused by name",
    "mcp_list_tools.completed": "not sent: MCP tools are refused by name",
    "mcp_list_tools.failed": "not sent: MCP tools are refused by name",
    "response.mcp_call_arguments.delta": "not sent: MCP tools are refused by name",
    "response.mcp_call_arguments.done": "not sent: MCP tools are refused by name",
    "response.mcp_call.in_progress": "not sent: MCP tools are refused by name",
    "response.mcp_call.completed": "not sent: MCP tools are refused by name",
    "response.mcp_call.failed": "not sent: MCP tools are refused by name",
}
"""Server events that this server does not send in a GA session over a WebSocket, and why."""

_HEAD = """# Conformance

What this server does with the vocabulary of the OpenAI Realtime API, as the types of the official `openai` package have it. The tests write
this page: they send every client event with every field to a deployment that serves all that the core can serve, and a test fails when the
page is stale. A deployment serves less where its model does: each refusal names the field and says what is served.

*Supported* means that the event had its documented answer, with the value in force, *refused by name* that it was answered by one error
with the field's path. A field is named by its path: `[]` is any entry of a list, `(message user)` the kind of object that the field is
in, and `{function}` an object of that type. `type` and `event_id`, which every event has, are left out.
"""


def server_events() -> list[str]:
    """The types of the official server events."""
    union = typing.get_args(RealtimeServerEvent)[0]
    return sorted(typing.get_args(cls.model_fields["type"].annotation)[0] for cls in typing.get_args(union))


def markdown() -> str:
    """Return the page."""
    sections = [_HEAD, "## Client events", _table(("event", "answer"), _client_rows())]
    for kind in client_events():
        if rows := list(_field_rows([case for case in played() if case.case.event["type"] == kind])):
            sections += [f"## Fields of `{kind}`", _table(("field", "answer"), rows)]
    sections += ["## Server events", _table(("event", "sent"), _server_rows())]
    return "\n\n".join(section.strip() for section in sections) + "\n"


def _client_rows() -> Iterator[tuple[str, str]]:
    for kind in client_events():
        bare = next(case for case in played() if case.case.event["type"] == kind and case.case.variation == "unset")
        yield f"`{kind}`", "supported" if bare.served else "not on this transport: WebRTC and SIP; refused by name"


def _server_rows() -> Iterator[tuple[str, str]]:
    for kind in server_events():
        yield f"`{kind}`", "supported" if kind in sent_types() else ELSEWHERE[kind]


def _field_rows(cases: Sequence[Played]) -> Iterator[tuple[str, str]]:
    """A row for each field; one for an object that is refused as a whole."""
    refused_whole: list[str] = []
    for label in dict.fromkeys(case.case.label for case in cases if case.case.label):
        if label.startswith(tuple(f"{whole}." for whole in refused_whole)) or label in {"type", "event_id"}:
            continue
        whole = _refused_whole(cases, label) or label
        answer = _answer([case for case in cases if case.case.label == label and case.case.variation == "set"])
        answer = answer if answer == REFUSED else WITHOUT_EFFECT.get(label.partition(".")[2], answer)
        if answer == REFUSED:
            refused_whole.append(whole)
        yield f"`{whole}`", answer


def _refused_whole(cases: Sequence[Played], label: str) -> str | None:
    """The outermost object of one kind around a field, if nothing in it is served."""
    for end in (index + 1 for index, letter in enumerate(label) if letter == ")"):
        inside = [case for case in cases if case.case.label.startswith(label[:end] + ".")]
        if not any(case.served for case in inside):
            return label[:end]
    return None


def _answer(cases: Sequence[Played]) -> str:
    served, refused = ([case for case in cases if case.served is wanted] for wanted in (True, False))
    if not refused:
        return "supported"
    if not served:
        return REFUSED
    return f"supported: {_values(served)}; refused by name: {_values(refused)}"


def _values(cases: Iterable[Played]) -> str:
    return ", ".join(f"`{_shown(case.case.value)}`" for case in cases)


def _shown(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(_shown(inner) for inner in value)}]"
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        return "{" + " ".join(str(value[name]) for name in ("type", "role") if name in value) + "}"
    return json.dumps(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(markdown())
