"""Takes out of streamed text what the model writes beside its words."""

from __future__ import annotations


class HiddenText:
    """Removes given strings, also where they arrive in pieces."""

    def __init__(self, hidden: tuple[str, ...]) -> None:
        self._hidden = hidden
        self._held = ""

    def read(self, text: str) -> str:
        """The visible part of what has come; the beginning of a hidden string is held until it is decided."""
        text = self._held + text
        for hidden in self._hidden:
            text = text.replace(hidden, "")
        held = max((_overlap(text, hidden) for hidden in self._hidden), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def end(self) -> str:
        """What was held, since nothing follows."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, hidden: str) -> int:
    return next((size for size in range(min(len(text), len(hidden) - 1), 0, -1) if hidden.startswith(text[-size:])), 0)
