"""A client, a session and a scripted model in one thread, without a socket and without waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from omni_realtime import defaults
from omni_realtime.chat import ChatDelta, GenerateRequest, Samples, Turn
from omni_realtime.engine.port import EngineError, TranscriptionRequest
from omni_realtime.protocol import ProtocolError, ResponseError, decode, encode
from omni_realtime.session import (
    CancelGeneration,
    Close,
    Count,
    Effect,
    Generate,
    Score,
    ScoreTurn,
    Send,
    Session,
    SessionSettings,
    Transcribe,
)
from omni_realtime.testing.order import OrderChecker
from omni_realtime.testing.scripted_speech import Said, loudness, transcript_of
from omni_realtime.testing.scripts import Script, Step
from omni_realtime.testing.wire import check_server_event

Event = dict[str, Any]


class MemoryClient:
    """Speaks to a session as a client does, and carries out its effects at once, as a host with no latency would.

    Every frame that the session sends is checked against the official client's models (``pip install omni-realtime[testing]``), and in its
    order. Generation n plays script n, and the last script is played ever after. A number among the steps moves the clock, an
    ``EngineError`` fails the generation.

    Args:
        settings: the deployment; it needs a detector's rate and frame where its capabilities list a turn detection.
        scripts: the steps of each generation, or functions that make them of the request.
        probability: the speech probability of one frame.
        completeness: the probability that a turn is complete, of its samples.
        transcript: of a user item, or a function of the request, which may raise ``EngineError``.
        autoplay: play generations to their end at once; without it they wait for ``play``.
        count: the tokens of a turn's prompt; it may raise ``EngineError``.
        opening: a partial session object that the session begins with.

    Attributes:
        events: every event from the server, as it stands on the wire.
        effects: everything that the session asked for, events included.
        turns: what each generation was asked, in order.
        cancelled: the response ids whose generations the session cancelled, in order.
        closed: how the session closed the connection.
        now: the clock, in seconds.
    """

    def __init__(
        self,
        settings: SessionSettings,
        *scripts: Script,
        probability: Callable[[Samples], float] = loudness,
        completeness: Callable[[Samples], float] = lambda _: 1.0,
        transcript: Said | Callable[[TranscriptionRequest], Said] = "Hello.",
        autoplay: bool = True,
        count: Callable[[Turn], int] = lambda _: 0,
        opening: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.turns: list[Turn] = []
        self.cancelled: list[str] = []
        self.closed: Close | None = None
        self.now = 1000.0
        self.session = Session(
            settings,
            token="0123456789ab",  # noqa: S106 - makes ids, no secret
            now=self.now,
            epoch_now=1_750_000_000,
            opening=opening,
        )
        self._order = OrderChecker()
        self._frame = settings.detector_frame or 1
        self._scripts = scripts
        self._probability = probability
        self._completeness = completeness
        self._transcript = transcript
        self._autoplay = autoplay
        self._count = count
        self._generations: dict[str, Iterator[Step]] = {}
        self.take(self.session.open(self.now))

    @property
    def waiting(self) -> tuple[str, ...]:
        """The response ids whose generations are not at their end."""
        return tuple(self._generations)

    def send(self, event: Mapping[str, Any] | str | bytes) -> list[Event]:
        """Send an event, or a frame as it is, and return what the server says to it."""
        frame = orjson.dumps(event).decode() if isinstance(event, Mapping) else event
        try:
            effects = self.session.receive(decode(frame), self.now)
        except ProtocolError as error:
            effects = self.session.refuse(error, self.now)
        return self.take(effects)

    def play(self, steps: int | None = None, *, response_id: str | None = None) -> list[Event]:
        """Play so many steps of a waiting generation (unless told otherwise, the oldest, to its end) and return what the server says."""
        heard = len(self.events)
        playing = response_id or self.waiting[0]
        while playing in self._generations and steps != 0:
            self.take(self._play_step(playing))
            steps = None if steps is None else steps - 1
        return self.events[heard:]

    def advance(self, seconds: float) -> list[Event]:
        """Let time pass, with a tick at each deadline on the way, and return what the server says."""
        heard = len(self.events)
        end = self.now + seconds
        while (deadline := self.session.deadline) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.take(self.session.tick(self.now))
        self.now = max(self.now, end)
        return self.events[heard:]

    def take(self, effects: list[Effect]) -> list[Event]:
        """Carry out what a direct call of ``session`` asked for and what follows from it, in order; return what the server says."""
        heard = len(self.events)
        following = deque(effects)
        while following or (self._autoplay and self._generations):
            following += self._carry_out(following.popleft()) if following else self._play_step(self.waiting[0])
        return self.events[heard:]

    def _carry_out(self, effect: Effect) -> list[Effect]:
        self.effects.append(effect)
        match effect:
            case Send():
                event = check_server_event(encode(effect.event))
                self._order.check(event)
                self.events.append(event)
            case Generate():
                self._generations[effect.response_id] = iter(self._script(effect))
            case Count():
                return self._count_turn(effect)
            case CancelGeneration():
                self.cancelled.append(effect.response_id)
                self._generations.pop(effect.response_id, None)
            case Score():
                frames = effect.frames.reshape(-1, self._frame)
                return self.session.speech_scored(effect.epoch, [self._probability(frame) for frame in frames], self.now)
            case ScoreTurn():
                return self.session.turn_scored(effect.pause, self._completeness(effect.samples), self.now)
            case Transcribe():
                return self._transcribe(effect)
            case Close():
                self.closed = effect
        return []

    def _script(self, effect: Generate) -> Iterable[Step]:
        script = self._scripts[min(len(self.turns), len(self._scripts) - 1)]
        turn = effect.turn
        self.turns.append(turn)
        if not callable(script):
            return script
        prompt = defaults.realtime_build_prompt(turn)
        limit = turn.max_output_tokens
        return script(
            GenerateRequest(
                request_id=effect.response_id, prompt=prompt, modalities=turn.modalities, voice=turn.voice, max_output_tokens=limit
            )
        )

    def _play_step(self, response_id: str) -> list[Effect]:
        step = next(self._generations[response_id], None)
        if isinstance(step, ChatDelta):
            return self.session.delta(response_id, step, self.now)
        if isinstance(step, int | float):
            self.now += step
            return []
        del self._generations[response_id]
        if step is None:
            return self.session.generation_ended(response_id, self.now)
        if isinstance(step, EngineError):
            return self.session.generation_failed(response_id, _failure(step), self.now)
        raise TypeError(f"The client cannot play {step!r}: it takes deltas, numbers and EngineErrors; leave waiting to play(steps).")

    def _count_turn(self, effect: Count) -> list[Effect]:
        try:
            tokens = self._count(effect.turn)
        except EngineError as error:
            return self.session.count_failed(effect.count_id, _failure(error), self.now)
        return self.session.counted(effect.count_id, tokens, self.now)

    def _transcribe(self, effect: Transcribe) -> list[Effect]:
        request = TranscriptionRequest(
            samples=effect.samples,
            rate=effect.rate,
            key=effect.key,
            language=effect.language,
            prompt=effect.prompt,
            logprobs=effect.logprobs,
        )
        try:
            transcript = transcript_of(self._transcript(request) if callable(self._transcript) else self._transcript)
        except EngineError as error:
            return self.session.transcription_failed(effect.item_id, error.code, error.message, self.now)
        return self.session.transcribed(effect.item_id, transcript, self.now)


def _failure(error: EngineError) -> ResponseError:
    return ResponseError(type="server_error", code=error.code, message=error.message)
