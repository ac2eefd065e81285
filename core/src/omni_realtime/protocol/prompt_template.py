"""A deployment's prompt template: instructions with named gaps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """Instructions that clients name by ``session.prompt`` and ``response.prompt``; ``{{name}}`` stands for a variable."""

    id: str
    version: str = "1"
    instructions: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order in which they first stand in the text."""
        return tuple(dict.fromkeys(_VARIABLE.findall(self.instructions)))

    @property
    def stray(self) -> str | None:
        """What looks like the beginning of a variable and is none, with a few characters of what follows."""
        rest = _VARIABLE.sub("", self.instructions)
        at = rest.find("{{")
        return None if at < 0 else rest[at : at + 20]

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with a value for every variable; a value is put in as it is, whatever braces it holds."""
        return _VARIABLE.sub(lambda variable: values[variable[1]], self.instructions)
