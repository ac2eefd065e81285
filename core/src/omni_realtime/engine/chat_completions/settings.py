"""``settings.engine`` of a deployment whose model another server runs."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, field_validator, model_validator

OWN_FIELDS = frozenset({
    "audio", "chat_template", "chat_template_kwargs", "max_completion_tokens", "max_tokens", "messages", "modalities", "model", "n",
    "stream", "stream_options", "tool_choice", "tools", "voice",
})  # fmt: skip
"""Fields of the request that the response decides, so ``extra_body`` may not."""


class Timeouts(BaseModel):
    """How long to wait for what, in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: PositiveFloat = 600
    """For the server to come up when the host starts; a large model takes minutes to load."""
    connect: PositiveFloat = 5
    """For one connection."""
    first_chunk: PositiveFloat = 60
    """From a response's start to its first chunk: uploading, retries, the server's queue and the prompt are in it."""
    between_chunks: PositiveFloat = 30
    """Between two chunks of one response."""


class ChatCompletionsSettings(BaseModel):
    """Where the server is, and what it understands."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["chat_completions"]
    base_url: str
    """The address of the API, with its ``/v1``."""
    model: str = Field(min_length=1)
    """The name by which the server knows the model."""
    api: Literal["vllm", "openai"] = "vllm"
    """Whose request fields to send.

    ``vllm`` (vLLM and vLLM-Omni, also behind a router) takes the limit as ``max_tokens`` and the voice as ``voice``: vLLM-Omni ignores
    ``max_completion_tokens`` and ``audio.voice``. ``openai`` takes them as ``max_completion_tokens`` and ``audio.voice``, and refuses
    fields that it does not know.
    """
    api_key_env: str | None = None
    """The environment variable that holds the key; the key itself never stands in a file."""
    context_window: Annotated[int, Field(ge=1)] | None = None
    """Tokens that a prompt and its output share; by default what the server's list of models says."""
    tokenize: Literal["auto", "off"] = "auto"
    """``auto`` counts prompts by the server's ``/tokenize``, where it has one; else an upper bound counts (``tokens.py``)."""
    audio_tokens_per_second: PositiveFloat = 25
    """Of that upper bound: the most prompt tokens that a second of audio can take."""
    image_tokens: PositiveInt = 4096
    """Of that upper bound: the most prompt tokens that an image can take."""
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Further tries after a refused connection, or an answer of 429, 502, 503 or 504; none once a byte of the answer has come."""
    timeouts: Timeouts = Timeouts()
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request, such as ``temperature``, passed through."""

    @field_validator("base_url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("Give the address of the server's API, such as http://127.0.0.1:8000/v1.")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("Give the address without a key, query or fragment; api_key_env names the variable with the key.")
        return url.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _check_key(cls, name: str | None) -> str | None:
        if name is not None and not os.environ.get(name):
            raise ValueError("There is no environment variable of this name, or it is empty: set it to the server's key.")
        return name

    @field_validator("extra_body")
    @classmethod
    def _check_extra(cls, fields: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(OWN_FIELDS & fields.keys()):
            raise ValueError(f"Remove {', '.join(taken)}: the responses decide these.")
        return fields

    @model_validator(mode="after")
    def _check_client(self) -> ChatCompletionsSettings:
        if find_spec("httpx") is None:
            raise ValueError("This engine needs httpx: pip install 'omni-realtime[http]'.")
        return self

    @property
    def root_url(self) -> str:
        """Where the server's endpoints outside the OpenAI API are."""
        return self.base_url.removesuffix("/v1")

    @property
    def api_key(self) -> str | None:
        """The key, from the environment."""
        return os.environ.get(self.api_key_env) if self.api_key_env else None
