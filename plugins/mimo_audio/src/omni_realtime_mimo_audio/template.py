"""The chat template that this distribution brings; the one in the checkpoint knows no speech."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

FILE = files(__package__) / "chat_template.jinja"


@cache
def chat_template() -> str:
    """The text of the template, read once."""
    return FILE.read_text(encoding="utf-8")
