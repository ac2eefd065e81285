"""The settings that every engine in process with vLLM has."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class VllmSettings(BaseModel):
    """``settings.engine`` of a deployment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    model: str = Field(min_length=1)
    """A local folder, or a name on the Hugging Face hub."""
    engine_args: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the engine, by vLLM's names, passed through."""
    tool_parser: str | None = None
    """vLLM's own parser of the model's tool calls; without one the model gets no tools."""
    chat_template: str | None = None
    """A file with a Jinja template, over the model's own and the plugin's."""
