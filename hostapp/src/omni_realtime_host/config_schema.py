"""The shape of the configuration file."""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from omni_realtime.deployment import Deployment, RateLimits
from omni_realtime.protocol import PromptTemplate

MEBIBYTE = 1024 * 1024
LARGEST_APPEND_FRAME = 21 * MEBIBYTE
"""15 MiB of audio, the API's limit for one append, as base64 in JSON."""
LONGEST_S = 30 * 24 * 3600
"""The longest time that a limit may name: far beyond any use, and within every timer."""
MOST_A_MINUTE = 10**12
"""The largest rate limit: far beyond any use, and a number that JSON can tell."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"
"""What a deployment and a prompt can be called."""

_KEY = re.compile(r"[\x21-\x7e]+")
_ENVIRONMENT_KEY = re.compile(r"\$\{(\w+)\}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _existing_file(path: str, info: ValidationInfo) -> str:
    absolute = Path((info.context or {}).get("directory", "."), path).absolute()
    if not absolute.is_file():
        raise PydanticCustomError(
            "file", "there is no file {file}; relative paths begin at the configuration file", {"file": str(absolute)}
        )
    if not os.access(absolute, os.R_OK):
        raise PydanticCustomError("file", "this user cannot read {file}; change its permissions", {"file": str(absolute)})
    return str(absolute)


def _resolve_key(secret: SecretStr) -> SecretStr:
    key = secret.get_secret_value()
    match = _ENVIRONMENT_KEY.fullmatch(key)
    if match:
        key = os.environ.get(match[1], "").strip()
        if not key:
            raise PydanticCustomError(
                "key", "the environment variable {name} is not set; export it before the host starts", {"name": match[1]}
            )
    elif "${" in key:
        raise PydanticCustomError("key", "`${NAME}` must be the whole key; put the whole key into the environment variable")
    if not _KEY.fullmatch(key):
        raise PydanticCustomError("key", "a key is printable ASCII without spaces; `openssl rand -hex 32` makes a good one")
    return SecretStr(key)


ApiKey = Annotated[SecretStr, AfterValidator(_resolve_key)]
ExistingFile = Annotated[str, AfterValidator(_existing_file)]


class TLS(_Section):
    """Serve wss and https."""

    cert: ExistingFile
    """PEM file of the certificate chain."""
    key: ExistingFile
    """PEM file of the private key, without a password."""

    @model_validator(mode="after")
    def _belong_together(self) -> TLS:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.cert, self.key, password="")
        except (ssl.SSLError, ValueError) as error:
            message = "cert and key are no PEM certificate chain and its private key without a password; give the files of one pair"
            raise PydanticCustomError("tls", message) from error
        return self


class Limits(_Section):
    """What one client, or all of them, may take."""

    sessions: int = Field(default=256, ge=1)
    """Sessions at a time; more are refused with 503."""
    session_duration_s: int = Field(default=3600, ge=1, le=LONGEST_S)
    """How long a session lasts."""
    frame_bytes: int = Field(default=LARGEST_APPEND_FRAME, ge=LARGEST_APPEND_FRAME)
    """The largest event that a client may send."""
    input_buffer_bytes: int = Field(default=32 * MEBIBYTE, ge=MEBIBYTE)
    """Audio in a session's input buffer before it is committed."""
    conversation_audio_bytes: int = Field(default=256 * MEBIBYTE, ge=MEBIBYTE)
    """Audio and images that a session's conversation keeps."""
    output_events: int = Field(default=8192, ge=64)
    """Events that wait for a client that does not read."""
    output_bytes: int = Field(default=32 * MEBIBYTE, ge=MEBIBYTE)
    """Bytes that wait for a client that does not read."""
    shutdown_s: float = Field(default=10, ge=0, le=LONGEST_S)
    """How long running responses may go on once the host is told to stop."""


class Server(_Section):
    """Where and for whom the host listens."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8000, ge=0, le=65535)
    """0 lets the system choose."""
    api_keys: tuple[ApiKey, ...] = Field(default=(), strict=False)
    """Keys that clients may present; ``${NAME}`` stands for an environment variable. None: loopback only."""
    tls: TLS | None = None
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="after")
    def _keys_off_loopback(self) -> Server:
        if not self.api_keys and not is_loopback(self.host):
            raise PydanticCustomError(
                "keys",
                "without an API key only this machine may be served, and others reach {host}; set server.api_keys, or host 127.0.0.1",
                {"host": self.host},
            )
        return self


def _version(value: object) -> object:
    return str(value) if type(value) is int else value


def _whole_variables(text: str) -> str:
    stray = PromptTemplate(id="", instructions=text).stray
    if stray is not None:
        message = "{stray} begins no variable; a variable is a name of letters, digits and _ in double braces, such as {{city}}"
        raise PydanticCustomError("variable", message, {"stray": repr(stray)})
    return text


class PromptConfig(_Section):
    """A template that clients may name as ``prompt``."""

    id: str = Field(pattern=NAME, max_length=128)
    version: Annotated[str, Field(min_length=1, max_length=64), BeforeValidator(_version)] = "1"
    instructions: Annotated[str, AfterValidator(_whole_variables)]
    """The text; ``{{name}}`` stands for a variable."""

    def template(self) -> PromptTemplate:
        """Return what the session is told of it."""
        return PromptTemplate(id=self.id, version=self.version, instructions=self.instructions)


def _different_prompts(prompts: tuple[PromptConfig, ...]) -> tuple[PromptConfig, ...]:
    names = Counter((prompt.id, prompt.version) for prompt in prompts)
    for (prompt_id, version), count in names.items():
        if count > 1:
            message = "the prompt {id} stands here twice with the version {version}; give each its own version"
            raise PydanticCustomError("prompts", message, {"id": repr(prompt_id), "version": repr(version)})
    return prompts


class RateLimitsConfig(_Section):
    """What all sessions of a deployment may take together in a minute; one of the two at least."""

    requests_per_minute: int | None = Field(default=None, ge=1, le=MOST_A_MINUTE)
    """Responses."""
    tokens_per_minute: int | None = Field(default=None, ge=1, le=MOST_A_MINUTE)
    """Tokens of prompts and answers, as ``usage`` counts them."""

    @model_validator(mode="after")
    def _limit_something(self) -> RateLimitsConfig:
        if self.requests_per_minute is None and self.tokens_per_minute is None:
            raise PydanticCustomError("rate_limits", "set requests_per_minute, tokens_per_minute or both")
        return self


class DeploymentConfig(_Section):
    """One served model."""

    name: str = Field(pattern=NAME, max_length=128)
    """What clients pass as ``?model=``."""
    plugin: str = Field(min_length=1)
    """The plugin's entry point."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The plugin's own settings."""
    session: dict[str, Any] = Field(default_factory=dict)
    """Session defaults: a part of the API's session object."""
    detector: str | None = None
    """Another plugin whose speech detector serves ``server_vad``, and whose turn scorer ``semantic_vad`` if it has one."""
    transcriber: str | None = None
    """Another plugin whose transcriber serves input transcription."""
    prompts: Annotated[tuple[PromptConfig, ...], Field(strict=False), AfterValidator(_different_prompts)] = ()
    """Templates that clients may name as ``prompt``; of several versions the last one is the current one."""
    rate_limits: RateLimitsConfig | None = None
    """What all sessions together may take in a minute; none: no limit."""
    on_active_response: Literal["refuse", "replace"] = "refuse"
    """Whether a ``response.create`` during a response is refused, as the API does, or replaces it."""

    def deployment(self) -> Deployment:
        """Return what plugins are told of this deployment."""
        limits = self.rate_limits
        return Deployment(**{
            **dict(self),
            "prompts": tuple(prompt.template() for prompt in self.prompts),
            "rate_limits": limits and RateLimits(**dict(limits)),
        })


class Config(_Section):
    """The whole file."""

    server: Server = Field(default_factory=Server)
    deployments: tuple[DeploymentConfig, ...] = Field(min_length=1, strict=False)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
