"""The ports that a deployment stands on: the engine, the speech detector, the turn scorer and the transcriber."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from omni_realtime.chat import ChatDelta, ChatPrompt, GenerateRequest, Samples
from omni_realtime.protocol.transcript import TokenLogprob as TokenLogprob  # noqa: PLC0414 - a word of this port too
from omni_realtime.protocol.transcript import Transcript as Transcript  # noqa: PLC0414 - a word of this port too


class EngineError(Exception):
    """A generation failed; the engine lives. The message is shown to the client, so it holds no prompt and no path."""

    def __init__(self, message: str, *, code: str = "server_error") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class EngineDeadError(EngineError):
    """The engine is gone for good: running responses fail, new ones are refused, readiness turns red."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageInfo:
    """One stage of an engine that runs a model in stages, such as thinker, talker and vocoder."""

    stage_id: int
    model_stage: str | None
    """The part of the model that this stage runs, by the engine's name for it."""
    model_arch: str | None
    """The architecture that this stage loads."""
    final_output_type: str | None
    """What of this stage's output the client gets: ``text``, ``audio``, or ``None`` for an inner stage."""


class Engine(Protocol):
    """A model that answers chat prompts with text, audio and tool calls."""

    @property
    def context_window(self) -> int:
        """Tokens that a prompt and its output share."""
        ...

    async def start(self) -> None:
        """Load and warm the model; once this returns, the first turn is as fast as any."""
        ...

    async def close(self) -> None:
        """Free everything; running generations end."""
        ...

    async def check_health(self) -> None:
        """Return while the engine can serve.

        Raises:
            EngineDeadError: once it cannot, ever again.
        """
        ...

    async def count_tokens(self, prompt: ChatPrompt) -> int:
        """The length of the rendered prompt in tokens, multimodal ones expanded, also where it is beyond the context window.

        Speculative: the prompt need never be generated from, and counting it leaves no trace in any cache.
        """
        ...

    def generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the answer.

        The caller always closes the generator; closing it early frees the engine's work.

        Raises:
            EngineError: from the iteration, if the generation fails; with the code ``context_length_exceeded``, and nothing kept of the
                prompt, where it does not fit.
        """
        ...

    async def abort(self, request_id: str) -> None:
        """Stop a generation and free its work; an unknown or finished id is no error."""
        ...


class Detector(Protocol):
    """A neural speech detector: frames in, speech probabilities out, for many streams in one call."""

    @property
    def rate(self) -> int:
        """The rate of its input in Hz."""
        ...

    @property
    def frame_samples(self) -> int:
        """Samples of one frame."""
        ...

    async def start(self) -> None:
        """Load the model."""
        ...

    async def close(self) -> None:
        """Free the model."""
        ...

    def initial_state(self) -> Any:
        """The state of a stream before its first frame."""
        ...

    def score(self, frames: NDArray[np.float32], states: Sequence[Any]) -> tuple[Sequence[float], Sequence[Any]]:
        """Score one frame for each of n streams; called off the event loop, from one thread.

        Args:
            frames: shape ``(n, frame_samples)``, float32 in [-1, 1].
            states: n states, left unchanged.

        Returns:
            n speech probabilities in [0, 1] and the n following states.
        """
        ...


class TurnScorer(Protocol):
    """Judges by how speech sounds whether the user, who pauses, has come to an end."""

    @property
    def rate(self) -> int:
        """The rate of its input in Hz."""
        ...

    @property
    def window_samples(self) -> int:
        """How much of a turn it can judge by: the last so many samples."""
        ...

    async def start(self) -> None:
        """Load the model."""
        ...

    async def close(self) -> None:
        """Free the model."""
        ...

    def score(self, samples: Samples) -> float:
        """Score a turn that may be over; called off the event loop, from one thread, once per pause of a user.

        Args:
            samples: the turn up to now with its pause, shape ``(n,)``, ``1 <= n <= window_samples``, float32 in [-1, 1].

        Returns:
            The probability in [0, 1] that the turn is complete.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TranscriptionRequest:
    """Audio of one user turn, to be written down."""

    samples: Samples
    rate: int
    key: str
    """Names this audio for caches, as ``AudioPart.key`` does."""
    language: str | None = None
    prompt: str | None = None
    logprobs: bool = False
    """Whether the client wants log probabilities; asked only where the capabilities have ``transcription_logprobs``."""


class Transcriber(Protocol):
    """Writes down what the user said."""

    async def start(self) -> None:
        """Load the model."""
        ...

    async def close(self) -> None:
        """Free the model."""
        ...

    async def transcribe(self, request: TranscriptionRequest) -> Transcript:
        """What was said; the empty text if nothing was.

        Raises:
            EngineError: if this audio cannot be transcribed.
        """
        ...
