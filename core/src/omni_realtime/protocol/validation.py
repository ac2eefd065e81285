"""Shape checks by pydantic, told in the API's words."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from omni_realtime.protocol.errors import ProtocolError

Model = TypeVar("Model", bound=BaseModel)
Choice = TypeVar("Choice", bound=str)

_SHOWN = 80
"""Characters of a client's own text that an error message repeats."""

_TAGS = frozenset({"~name", "~object", "server_vad", "semantic_vad", "audio/pcm", "audio/pcmu", "audio/pcma", "[key]"})
"""Steps of a pydantic location that are not keys of the client's JSON."""

_MISSING = frozenset({"missing", "union_tag_not_found"})
_CHOICES = frozenset({"literal_error", "union_tag_invalid"})


class WireModel(BaseModel):
    """A frozen object of the API that takes its own keys and no others, and no value of a wrong type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


def shown(value: object) -> str:
    """Return a client's value as JSON text that is short enough for a message."""
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    if text.startswith('"'):
        text = f"'{text[1:-1]}'"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def refuse_missing(param: str) -> NoReturn:
    """Refuse an object that lacks ``param``."""
    raise ProtocolError(f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param)


def refuse_unknown(param: str, hint: str = "") -> NoReturn:
    """Refuse a key that the API does not have at this place."""
    raise ProtocolError(f"Unknown parameter: '{param}'.{hint}", code="unknown_parameter", param=param)


def refuse_type(param: str, expected: str, value: object) -> NoReturn:
    """Refuse a value of a wrong JSON type."""
    message = f"Invalid type for '{param}': expected {expected}, but got {_json_type(value)} instead."
    raise ProtocolError(message, code="invalid_type", param=param)


def refuse_value(param: str, why: str) -> NoReturn:
    """Refuse a value of the right type."""
    raise ProtocolError(f"Invalid value for '{param}': {why}", code="invalid_value", param=param)


def pick(value: Mapping[str, Any], key: str, choices: Collection[Choice], param: str = "") -> Choice:
    """Return the string at ``key``, which must be one of ``choices``.

    Raises:
        ProtocolError: it is missing, no string, or another.
    """
    where = f"{param}.{key}" if param else key
    given = value.get(key)
    if given is None:
        refuse_missing(where)
    if not isinstance(given, str):
        refuse_type(where, "a string", given)
    for choice in choices:
        if given == choice:
            return choice
    refuse_value(where, f"{shown(given)} is not one of {', '.join(map(shown, choices))}.")


def validate(model: type[Model], value: object, param: str) -> Model:
    """Make ``model`` of a parsed JSON value.

    Raises:
        ProtocolError: the value has another shape; ``param`` is the path of the first fault, below the path given.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        _refuse(error.errors(include_url=False)[0], param)


def _refuse(fault: ErrorDetails, param: str) -> NoReturn:
    where = ".".join(step for step in (param, *map(_step, fault["loc"])) if step and step not in _TAGS)
    kind = fault["type"]
    context: Mapping[str, Any] = fault.get("ctx", {})
    if kind in _MISSING:
        refuse_missing(f"{where}.{context['discriminator'].strip(chr(39))}" if context else where)
    if kind == "extra_forbidden":
        refuse_unknown(where)
    if kind in _CHOICES:
        _refuse_choice(where, fault["input"], context)
    if kind.endswith("_type") or kind.startswith(("model_", "int_from", "dataclass_")):
        refuse_type(where, _EXPECTED.get(kind, kind.removesuffix("_type")), fault["input"])
    message = fault["msg"]
    refuse_value(where, f"{message[0].lower()}{message[1:]}.")


def _refuse_choice(where: str, value: object, context: Mapping[str, Any]) -> NoReturn:
    served: str = context.get("expected") or context["expected_tags"]
    if context.get("discriminator"):
        name = context["discriminator"].strip("'")
        where, value = f"{where}.{name}", value[name] if isinstance(value, Mapping) else value
    if not isinstance(value, str if "'" in served else int):
        refuse_type(where, f"one of {served}", value)
    refuse_value(where, f"{shown(value)} is not one of {served}.")


_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "an array",
    "none_required": "null",
}


def _plain(value: object) -> object:
    return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else str(value)


def _step(step: int | str) -> str:
    return str(step)[:_SHOWN]


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "an array")


_JSON_TYPES = ((bool, "a boolean"), (str, "a string"), (int, "an integer"), (float, "a number"), (Mapping, "an object"))
