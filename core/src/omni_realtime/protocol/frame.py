"""The last step of a server event: JSON text, whatever an engine has written."""

from __future__ import annotations

from typing import Any

import orjson


def to_frame(wire: dict[str, Any]) -> str:
    """Return the text frame of a JSON object; half a surrogate pair, which no UTF-8 can carry, becomes U+FFFD."""
    try:
        return orjson.dumps(wire).decode()
    except TypeError:
        return orjson.dumps(_whole(wire)).decode()


def whole_characters(text: str) -> str:
    """Return text with U+FFFD for each half of a surrogate pair that stands alone; halves that belong together join."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value
