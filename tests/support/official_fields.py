"""Every field of the official client events, as events that set it, null it, or give it a wrong type."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from openai.types.realtime import RealtimeClientEvent
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

Json: TypeAlias = dict[str, Any]
Value = TypeVar("Value")
Variation: TypeAlias = Literal["set", "null", "wrong type", "unset"]

EVENT_ID = "of-the-client"

_WRONG: tuple[object, ...] = (5, "x", {"strange": 1}, [5], True)
_ANY = {str: "x", int: 1, float: 0.5, bool: True, object: {"strange": 1}}


@dataclass(frozen=True)
class Case:
    """One event that tries one field in one way; ``label`` is the field with the kinds of the objects on its way in brackets."""

    label: str
    param: str
    variation: Variation
    value: object
    event: Json

    def __str__(self) -> str:
        return f"{self.event['type']} {self.label} {self.variation} {self.value!r}"[:120]


def client_events() -> dict[str, type[BaseModel]]:
    """The official classes of client events, by type."""
    union = typing.get_args(RealtimeClientEvent)[0]
    return {typing.get_args(cls.model_fields["type"].annotation)[0]: cls for cls in typing.get_args(union)}


class Fields:
    """Walks an event class.

    ``samples`` gives the values of a field, ``around`` the rest of the object that it stands in, and ``before`` what goes before an object
    in its list; all by the end of a label.
    """

    def __init__(
        self, samples: Mapping[str, tuple[object, ...]], around: Mapping[str, Json], before: Mapping[str, tuple[Json, ...]]
    ) -> None:
        self._samples = samples
        self._around = around
        self._before = before

    def cases(self, kind: str) -> Iterator[Case]:
        """Yield the cases of an event type, the bare one first."""
        cls = client_events()[kind]
        bare = {"event_id": EVENT_ID, **self._minimal(cls, "")}
        yield Case("", "", "unset", None, bare)
        yield from self._of_model(cls, "", "", bare, lambda event: event)

    def _of_model(self, cls: type[BaseModel], label: str, param: str, bare: Json, build: Callable[[Json], Json]) -> Iterator[Case]:
        for name, field in cls.model_fields.items():
            where, at = f"{label}.{name}".lstrip("."), f"{param}.{name}".lstrip(".")

            around = _by_end(self._around, where) or bare

            def put(value: object, name: str = name, around: Json = around) -> Json:
                return build({**around, name: value})

            yield from self._of_field(field, where, at, put)

    def _of_field(self, field: FieldInfo, label: str, param: str, put: Callable[[object], Json]) -> Iterator[Case]:
        for value in self._values(field.annotation, label):
            yield Case(label, param, "set", value, put(value))
        if not field.is_required():
            yield Case(label, param, "null", None, put(None))
        if (wrong := _wrong(field.annotation)) is not None:
            yield Case(label, param, "wrong type", wrong, put(wrong))
        for option in _options(field.annotation):
            if isinstance(option, type) and issubclass(option, BaseModel):
                where = f"{label}{_kind(option)}"
                yield from self._of_model(option, where, param, self._minimal(option, where), put)
            elif typing.get_origin(option) is list:
                yield from self._of_list(option, label, param, put)

    def _of_list(self, option: object, label: str, param: str, put: Callable[[object], Json]) -> Iterator[Case]:
        for inner in _options(typing.get_args(option)[0]):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                where = f"{label}[]{_kind(inner)}"
                before = _by_end(self._before, where) or ()
                at = f"{param}.{len(before)}"
                yield from self._of_model(inner, where, at, self._minimal(inner, where), lambda value, before=before: put([*before, value]))

    def _values(self, annotation: object, label: str) -> Iterator[object]:
        if (samples := _by_end(self._samples, label)) is not None:
            yield from samples
            return
        for option in _options(annotation):
            if typing.get_origin(option) is Literal:
                yield from typing.get_args(option)
            elif typing.get_origin(option) is list:
                yield []
                yield from ([value] for value in self._values(typing.get_args(option)[0], f"{label}[]"))
            elif typing.get_origin(option) is dict:
                yield {"key": next(self._values(typing.get_args(option)[1], f"{label}.key"))}
            elif isinstance(option, type) and issubclass(option, BaseModel):
                yield self._minimal(option, f"{label}{_kind(option)}")
            elif option is not type(None):
                yield _ANY[typing.cast("Any", option)]

    def _minimal(self, cls: type[BaseModel], label: str) -> Json:
        needed = {}
        for name, field in cls.model_fields.items():
            where = f"{label}.{name}".lstrip(".")
            if field.is_required() or name == "type":
                needed[name] = next(self._values(field.annotation, where))
        return needed


def _by_end(table: Mapping[str, Value], label: str) -> Value | None:
    """The value at the longest key that the label ends with; a key that begins with ``=`` is the whole label."""
    if (whole := table.get(f"={label}")) is not None:
        return whole
    keys = [key for key in table if label.endswith(key) and (label == key or key[0] == "(" or label[-len(key) - 1] in ".]")]
    return table[max(keys, key=len)] if keys else None


def _kind(cls: type[BaseModel]) -> str:
    """The type and role of an object that has but one, in brackets."""
    found = [list(_options(cls.model_fields[name].annotation)) for name in ("type", "role") if name in cls.model_fields]
    names = [typing.get_args(option)[0] for (option, *_) in found if len(typing.get_args(option)) == 1]
    return f"({' '.join(names)})" if names else ""


def _options(annotation: object) -> Iterator[object]:
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        for option in typing.get_args(annotation):
            yield from _options(option)
    elif typing.get_origin(annotation) is typing.Annotated:
        yield from _options(typing.get_args(annotation)[0])
    elif annotation is not type(None):
        yield annotation


def _wrong(annotation: object) -> object:
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for value in _WRONG:
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError:
            return value
    return None
