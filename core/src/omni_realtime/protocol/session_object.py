"""The session object of the API, as values, and its form on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import Discriminator, Field, Tag
from pydantic.functional_validators import BeforeValidator, PlainValidator
from pydantic_core import PydanticCustomError

from omni_realtime.protocol.capabilities import AudioFormatType
from omni_realtime.protocol.validation import WireModel

_T = TypeVar("_T")

Sequence: TypeAlias = Annotated[tuple[_T, ...], Field(strict=False)]
"""A JSON array, kept as a tuple."""

Modality: TypeAlias = Literal["text", "audio"]
SessionType: TypeAlias = Literal["realtime", "transcription"]
MaxOutputTokens: TypeAlias = int | Literal["inf"]

INCLUDE_LOGPROBS: Final = "item.input_audio_transcription.logprobs"
"""What ``include`` names to get the log probabilities of transcripts."""

MAX_PADDING_MS = 10_000
"""The longest ``prefix_padding_ms`` and ``silence_duration_ms``: it bounds the audio that a detector keeps."""


def _token_limit(value: object) -> MaxOutputTokens:
    if value == "inf":
        return "inf"
    if type(value) is int and value >= 1:
        return value
    raise PydanticCustomError("token_limit", 'it must be a positive integer or "inf"')


def _is_object(value: object) -> str:
    return "~name" if isinstance(value, str) else "~object"


def _voice_name(value: object) -> object:
    return value["id"] if isinstance(value, dict) and value.keys() == {"id"} else value


Voice: TypeAlias = Annotated[str | None, BeforeValidator(_voice_name)]
"""A voice by its name; clients may send ``{"id": name}``."""

TokenLimit: TypeAlias = Annotated[MaxOutputTokens, PlainValidator(_token_limit)]


class PcmFormat(WireModel):
    """16-bit little-endian PCM, mono."""

    type: Literal["audio/pcm"] = "audio/pcm"
    rate: Literal[24000] = 24000


class PcmuFormat(WireModel):
    """G.711 μ-law at 8 kHz."""

    type: Literal["audio/pcmu"] = "audio/pcmu"


class PcmaFormat(WireModel):
    """G.711 A-law at 8 kHz."""

    type: Literal["audio/pcma"] = "audio/pcma"


FORMATS: dict[AudioFormatType, type[PcmFormat | PcmuFormat | PcmaFormat]] = {
    "audio/pcm": PcmFormat,
    "audio/pcmu": PcmuFormat,
    "audio/pcma": PcmaFormat,
}

AudioFormat: TypeAlias = Annotated[PcmFormat | PcmuFormat | PcmaFormat, Discriminator("type")]


class ServerVad(WireModel):
    """Turns by speech and silence."""

    type: Literal["server_vad"] = "server_vad"
    threshold: float = Field(default=0.5, ge=0, le=1)
    prefix_padding_ms: int = Field(default=300, ge=0, le=MAX_PADDING_MS)
    silence_duration_ms: int = Field(default=500, ge=0, le=MAX_PADDING_MS)
    idle_timeout_ms: int | None = Field(default=None, ge=1)
    create_response: bool = True
    interrupt_response: bool = True


class SemanticVad(WireModel):
    """Turns by meaning."""

    type: Literal["semantic_vad"] = "semantic_vad"
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection: TypeAlias = Annotated[ServerVad | SemanticVad, Discriminator("type")]


class Transcription(WireModel):
    """Transcription of the user's audio; ``model`` is a string in every effective session."""

    model: str | None = None
    language: str | None = None
    prompt: str | None = None
    languages: Sequence[str] | None = None
    keywords: Sequence[str] | None = None
    delay: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None

    @property
    def spoken(self) -> str | None:
        """The one language that the user speaks, ``None`` for any; ``languages`` has one at most in every effective session."""
        return self.language or next(iter(self.languages or ()), None)


class NoiseReduction(WireModel):
    """Noise reduction before turn detection."""

    type: Literal["near_field", "far_field"]
    strength: float | None = None


class AudioInput(WireModel):
    """What the user's audio is and what is done with it; ``None`` is off."""

    format: AudioFormat = Field(default_factory=PcmFormat)
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    turn_detection: TurnDetection | None = None


class AudioOutput(WireModel):
    """How the model's audio comes; ``voice`` is ``None`` where the model has one nameless voice."""

    format: AudioFormat = Field(default_factory=PcmFormat)
    voice: Voice = None
    speed: float = Field(default=1.0, ge=0.25, le=1.5)


class SessionAudio(WireModel):
    """Audio in and out."""

    input: AudioInput = Field(default_factory=AudioInput)
    output: AudioOutput = Field(default_factory=AudioOutput)


class FunctionTool(WireModel):
    """A function that the model may call; ``parameters`` is a JSON schema."""

    type: Literal["function"] = "function"
    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None


class FunctionToolChoice(WireModel):
    """Demands one function by its name."""

    type: Literal["function"]
    name: str


ToolChoice: TypeAlias = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("~name")] | Annotated[FunctionToolChoice, Tag("~object")],
    Discriminator(_is_object),
]


class Reasoning(WireModel):
    """How much a reasoning model thinks."""

    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class Tracing(WireModel):
    """How a trace is named."""

    workflow_name: str | None = None
    group_id: str | None = None
    metadata: dict[str, Any] | None = None


class TokenLimits(WireModel):
    """Limits of a truncation."""

    post_instructions: int | None = Field(default=None, ge=0)


class RetentionRatio(WireModel):
    """Truncation that keeps a share of the context."""

    type: Literal["retention_ratio"]
    retention_ratio: float = Field(ge=0, le=1)
    token_limits: TokenLimits | None = None


class Prompt(WireModel):
    """A stored prompt template."""

    id: str
    version: str | None = None
    variables: dict[str, Any] | None = None


class SessionConfig(WireModel):
    """The effective session: everything in force, nested as the API nests it."""

    type: SessionType = "realtime"
    object: Literal["realtime.session", "realtime.transcription_session"] = "realtime.session"
    id: str
    model: str
    expires_at: int
    output_modalities: Sequence[Modality]
    instructions: str = ""
    tools: Sequence[FunctionTool] = ()
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool | None = None
    reasoning: Reasoning | None = None
    tracing: Annotated[Annotated[Literal["auto"], Tag("~name")] | Annotated[Tracing, Tag("~object")], Discriminator(_is_object)] | None = (
        None
    )
    truncation: Annotated[
        Annotated[Literal["auto", "disabled"], Tag("~name")] | Annotated[RetentionRatio, Tag("~object")], Discriminator(_is_object)
    ] = "auto"
    prompt: Prompt | None = None
    include: Sequence[Literal["item.input_audio_transcription.logprobs"]] | None = None
    max_output_tokens: TokenLimit = "inf"
    audio: SessionAudio = Field(default_factory=SessionAudio)

    @property
    def includes_logprobs(self) -> bool:
        """Whether transcripts come with their log probabilities."""
        return INCLUDE_LOGPROBS in (self.include or ())


def to_wire(config: SessionConfig) -> dict[str, Any]:
    """Return the ``session`` object that clients get: everything in force, ``null`` where something is off."""
    if config.type == "transcription":
        heard = {"audio": {"input": _input_to_wire(config.audio.input)}}
        return config.model_dump(mode="json", include={"type", "object", "id", "expires_at", "include"}) | heard
    wire = config.model_dump(mode="json", exclude={"parallel_tool_calls", "reasoning", "tools", "audio"})
    wire["tools"] = [_without_none(tool) for tool in config.tools]
    for name in ("parallel_tool_calls", "reasoning"):
        if (value := getattr(config, name)) is not None:
            wire[name] = _without_none(value) if isinstance(value, Reasoning) else value
    wire["audio"] = {"input": _input_to_wire(config.audio.input), "output": _without_none(config.audio.output)}
    if config.prompt is not None:
        wire["prompt"] = _without_none(config.prompt)
    if isinstance(config.tracing, Tracing):
        wire["tracing"] = _without_none(config.tracing)
    return wire


def _input_to_wire(audio: AudioInput) -> dict[str, Any]:
    return audio.model_dump(mode="json", exclude={"transcription"}) | {
        "transcription": _without_none(audio.transcription) if audio.transcription else None
    }


def _without_none(model: WireModel) -> dict[str, Any]:
    """Leave out the optional fields that are not set; what a client put inside them stays as it is."""
    return {name: value for name, value in model.model_dump(mode="json").items() if value is not None}
