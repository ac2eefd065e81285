"""One deployment while it serves: its engine, its speech detector, its turn scorer, its transcriber, and whether they are ready."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import asdict, replace
from typing import Protocol

from omni_realtime.adapter import Adapter
from omni_realtime.chat import ChatPrompt, GenerateRequest, Turn
from omni_realtime.engine.port import EngineDeadError, EngineError, Transcript, TranscriptionRequest
from omni_realtime.session import RateLimiter, SessionLimits, SessionSettings
from omni_realtime.session.effects import Transcribe
from omni_realtime_host.config_schema import Limits
from omni_realtime_host.detection import DetectionService
from omni_realtime_host.failure_log import log_failure
from omni_realtime_host.turn_scoring import TurnScoringService

logger = logging.getLogger(__name__)

HEALTH_CHECK_S = 1.0
"""How often an engine is asked for its health."""


class _Part(Protocol):
    async def start(self) -> None: ...
    async def close(self) -> None: ...


class StartError(Exception):
    """A deployment could not be started; the message is for the person who runs the host."""


class ServedModel:
    """A resolved deployment and what runs for it."""

    def __init__(self, adapter: Adapter, limits: Limits) -> None:
        self.adapter = adapter
        self.name = adapter.deployment.name
        self.created = int(time.time())
        self.detection = DetectionService(adapter.detector) if adapter.detector else None
        self.turn_scoring = TurnScoringService(adapter.turn_scorer) if adapter.turn_scorer else None
        self.settings = _session_settings(adapter, limits)
        parts: tuple[_Part | None, ...] = (adapter.engine, adapter.detector, adapter.turn_scorer, adapter.transcriber)
        self._parts = tuple(part for part in parts if part)
        self._watch: asyncio.Task[None] | None = None
        self._not_ready: str | None = "loading"

    @property
    def not_ready(self) -> str | None:
        """Why no session can be served; ``None`` once the model is warm."""
        if self.detection and self.detection.failure:
            return "the speech detector failed"
        return self._not_ready

    @property
    def loading(self) -> bool:
        """Whether the model will be ready by itself."""
        return self._not_ready == "loading"

    async def start(self) -> None:
        """Load and warm everything.

        Raises:
            StartError: if a part of it cannot start; what had started is closed.
        """
        results = await asyncio.gather(*(part.start() for part in self._parts), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            await self.close()
            raise StartError(f"deployment {self.name!r} did not start: {_told(failures[0])}") from failures[0]
        self.settings = replace(self.settings, context_window=self.adapter.engine.context_window or None)
        if self.detection:
            self.detection.start()
        self._watch = asyncio.create_task(self._watch_health())
        self._not_ready = None

    async def close(self) -> None:
        """Free everything, as far as it was started."""
        if self._not_ready == "stopped":
            return
        self._not_ready = "stopped"
        if self._watch:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        if self.detection:
            await self.detection.close()
        if self.turn_scoring:
            await self.turn_scoring.close()
        for part in self._parts:
            try:
                await part.close()
            except Exception as error:  # noqa: BLE001 - a plugin's code may raise anything
                log_failure(logger, f"deployment {self.name}: closing {type(part).__name__}", error)

    def generate_request(self, response_id: str, turn: Turn) -> GenerateRequest:
        """Make the engine's request for one response.

        Raises:
            EngineDeadError: if the engine is gone.
            PluginError: if the plugin makes no prompt.
        """
        return GenerateRequest(
            request_id=response_id,
            prompt=self._prompt(turn),
            modalities=turn.modalities,
            voice=turn.voice,
            max_output_tokens=turn.max_output_tokens,
        )

    async def count_tokens(self, turn: Turn) -> int:
        """Count the tokens of a response's prompt.

        Raises:
            EngineError: if the prompt cannot be served, or the engine is gone.
            PluginError: if the plugin makes no prompt.
        """
        return await self.adapter.engine.count_tokens(self._prompt(turn))

    def _prompt(self, turn: Turn) -> ChatPrompt:
        if self._not_ready is not None:
            raise EngineDeadError("The model is not available until the host is restarted.")
        return self.adapter.build_prompt(turn)

    async def abort(self, response_id: str) -> None:
        """Free a cancelled generation's work."""
        try:
            await self.adapter.engine.abort(response_id)
        except Exception as error:  # noqa: BLE001 - a plugin's code may raise anything
            log_failure(logger, f"deployment {self.name}: abort", error)

    async def transcribe(self, effect: Transcribe) -> Transcript:
        """Write down what the user said.

        Raises:
            EngineError: if this audio cannot be transcribed.
            TypeError: if the plugin breaks the port's contract.
        """
        if self.adapter.transcriber is None:
            raise EngineError("This deployment has no transcriber.", code="transcription_unavailable")
        request = TranscriptionRequest(
            samples=effect.samples,
            rate=effect.rate,
            key=effect.key,
            language=effect.language,
            prompt=effect.prompt,
            logprobs=effect.logprobs,
        )
        transcript: object = await self.adapter.transcriber.transcribe(request)
        if not isinstance(transcript, Transcript):
            raise TypeError(f"the transcriber returned {type(transcript).__name__}; it must return a Transcript")
        return transcript

    def declare_dead(self, error: BaseException) -> None:
        """Turn readiness red for good."""
        if self._not_ready is None:
            self._not_ready = "the engine died"
            log_failure(logger, f"deployment {self.name}: the engine", error)

    async def _watch_health(self) -> None:
        while self._not_ready is None:
            await asyncio.sleep(HEALTH_CHECK_S)
            try:
                await self.adapter.engine.check_health()
            except Exception as error:  # noqa: BLE001 - whatever an engine raises here, it cannot serve
                self.declare_dead(error)


def _session_settings(adapter: Adapter, limits: Limits) -> SessionSettings:
    detector, scorer, rate_limits = adapter.detector, adapter.turn_scorer, adapter.deployment.rate_limits
    return SessionSettings(
        model=adapter.deployment.name,
        capabilities=adapter.capabilities,
        defaults=adapter.deployment.session,
        on_active_response=adapter.deployment.on_active_response,
        rate_limiter=RateLimiter(**asdict(rate_limits)) if rate_limits else None,
        input_rate=adapter.rates.input,
        detector_rate=detector.rate if detector else None,
        detector_frame=detector.frame_samples if detector else None,
        scorer_rate=scorer.rate if scorer else None,
        scorer_window=scorer.window_samples if scorer else None,
        limits=SessionLimits(
            input_buffer_bytes=limits.input_buffer_bytes,
            conversation_audio_bytes=limits.conversation_audio_bytes,
            duration_s=limits.session_duration_s,
        ),
    )


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
