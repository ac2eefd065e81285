"""One client's session on one socket: carries events in and effects out, and decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from omni_realtime.engine.port import EngineDeadError, EngineError
from omni_realtime.protocol import BetaDialect, DecodeLimits, Dialect, ProtocolError
from omni_realtime.protocol.response import ResponseError
from omni_realtime.session import Session
from omni_realtime.session.effects import CancelGeneration, Close, Count, Effect, Generate, Score, ScoreTurn, Send, Transcribe
from omni_realtime_host.config_schema import Limits
from omni_realtime_host.failure_log import log_failure
from omni_realtime_host.output_buffer import OutputBuffer
from omni_realtime_host.served_model import ServedModel

logger = logging.getLogger(__name__)

END_S = 1.0
"""How long a task may take to end once it is cancelled, before it is left to itself."""

POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011


class Connection:
    """Drives a session: one reader, one writer, and one task per running generation and transcription."""

    def __init__(self, websocket: WebSocket, model: ServedModel, limits: Limits, opening: Mapping[str, Any], *, beta: bool = False) -> None:
        self._websocket = websocket
        self._decode_limits = DecodeLimits(frame_chars=limits.frame_bytes)
        self._model = model
        self._loop = asyncio.get_running_loop()
        self._session = Session(
            model.settings, token=secrets.token_hex(6), now=self._loop.time(), epoch_now=int(time.time()), opening=opening
        )
        self._dialect = BetaDialect(conversation_id=self._session.conversation_id) if beta else Dialect()
        self._output = OutputBuffer(max_events=limits.output_events, max_bytes=limits.output_bytes)
        self._generations: dict[str, asyncio.Task[None]] = {}
        self._transcriptions: set[asyncio.Task[None]] = set()
        self._aborts: set[asyncio.Task[None]] = set()
        self._detection = model.detection.open(self._scored, self._detector_failed) if model.detection else None
        self._turn_scoring = model.turn_scoring.open(self.id, self._turn_scored) if model.turn_scoring else None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline: float | None = None
        self._draining = False

    @property
    def id(self) -> str:
        """The session's id, for logs."""
        return self._session.id

    async def run(self) -> None:
        """Serve until the client or the host closes; whatever was running has ended then."""
        self._step(self._session.open)
        reader, writer = asyncio.create_task(self._read()), asyncio.create_task(self._write())
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(reader, writer)

    def drain(self) -> None:
        """Close as soon as no response is running."""
        self._draining = True
        self._settle()

    def stop(self) -> None:
        """End the running responses and close."""
        self._step(self._session.shutdown)

    async def _read(self) -> None:
        while (message := await self._websocket.receive())["type"] == "websocket.receive":
            if self._output.closing:
                continue
            text = message.get("text")
            try:
                event = self._dialect.decode(message["bytes"] if text is None else text, limits=self._decode_limits)
            except ProtocolError as error:
                self._step(self._session.refuse, error)
            else:
                if event is not None:
                    self._step(self._session.receive, event)

    async def _write(self) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the socket may be closed before the reader hears of it
            while isinstance(event := await self._output.get(), str):
                await self._websocket.send_text(event)
            await self._websocket.close(event.code, event.reason)

    def _step(self, call: Callable[..., Iterable[Effect]], *arguments: object) -> None:
        """Tell the session something, and do what it asks."""
        try:
            for effect in call(*arguments, self._loop.time()):
                self._carry_out(effect)
        except Exception as error:  # noqa: BLE001 - a fault in here ends one session, not the task that met it
            log_failure(logger, self.id, error)
            self._output.close(INTERNAL_ERROR, "internal error")
        for event in self._dialect.released():
            self._step(self._session.receive, event)
        self._settle()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(event):
                for frame in self._dialect.encode(event):
                    self._output.put(frame)
            case Generate():
                self._generations[effect.response_id] = asyncio.create_task(self._generate(effect))
            case Count():
                self._generations[effect.count_id] = asyncio.create_task(self._count(effect))
            case CancelGeneration(response_id):
                self._cancel(response_id)
            case Score() | ScoreTurn():
                self._listen(effect)
            case Transcribe():
                _keep(self._transcriptions, self._transcribe(effect))
            case Close(code, reason):
                self._output.close(code, reason)

    def _listen(self, effect: Score | ScoreTurn) -> None:
        if isinstance(effect, ScoreTurn):
            if self._turn_scoring:
                self._turn_scoring.score(effect.pause, effect.samples)
        elif self._detection:
            self._detection.score(effect.epoch, effect.frames)

    def _settle(self) -> None:
        if not self._output.closing:
            if self._output.full:
                self._give_up_unread()
            elif self._draining and not self._session.active_responses:
                self.stop()
        self._set_timer(None if self._output.closing else self._session.deadline)

    def _set_timer(self, deadline: float | None) -> None:
        if deadline == self._timer_deadline:
            return
        if self._timer:
            self._timer.cancel()
        self._timer = None if deadline is None else self._loop.call_at(deadline, self._tick)
        self._timer_deadline = deadline

    def _tick(self) -> None:
        self._timer = self._timer_deadline = None
        self._step(self._session.tick)

    async def _generate(self, effect: Generate) -> None:
        failure = None
        try:
            await self._stream(effect)
        except Exception as error:  # noqa: BLE001 - a plugin's code may raise anything
            failure = self._failure(error)
        self._finished(effect.response_id)
        if failure:
            self._step(self._session.generation_failed, effect.response_id, failure)
        else:
            self._step(self._session.generation_ended, effect.response_id)

    async def _count(self, effect: Count) -> None:
        try:
            tokens = await self._model.count_tokens(effect.turn)
        except Exception as error:  # noqa: BLE001 - a plugin's code may raise anything
            self._finished(effect.count_id)
            self._step(self._session.count_failed, effect.count_id, self._failure(error))
        else:
            self._finished(effect.count_id)
            self._step(self._session.counted, effect.count_id, tokens)

    def _finished(self, response_id: str) -> None:
        if self._generations.get(response_id) is asyncio.current_task():
            del self._generations[response_id]

    def _failure(self, error: Exception) -> ResponseError:
        """Return what the client is told of a failure of the engine or the plugin."""
        if not isinstance(error, EngineError):
            log_failure(logger, f"{self.id}: a generation", error)
            return ResponseError(type="server_error", code="server_error", message="The model failed to answer. Try again.")
        if isinstance(error, EngineDeadError):
            self._model.declare_dead(error)
        return ResponseError(type="server_error", code=error.code, message=error.message)

    async def _stream(self, effect: Generate) -> None:
        request = self._model.generate_request(effect.response_id, effect.turn)
        async with contextlib.aclosing(self._model.adapter.engine.generate(request)) as deltas:
            async for delta in deltas:
                if effect.response_id not in self._generations:  # the engine swallowed the cancellation
                    return
                self._step(self._session.delta, effect.response_id, delta)
                await asyncio.sleep(0)  # an engine that never waits would keep the loop to itself
                await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        try:
            await self._output.room()
        except TimeoutError:
            self._give_up_unread()

    def _cancel(self, response_id: str) -> None:
        if task := self._generations.pop(response_id, None):
            task.cancel()
            _keep(self._aborts, self._model.abort(response_id))

    async def _transcribe(self, effect: Transcribe) -> None:
        try:
            transcript = await self._model.transcribe(effect)
        except EngineError as error:
            self._step(self._session.transcription_failed, effect.item_id, error.code, error.message)
        except Exception as error:  # noqa: BLE001 - a plugin's code may raise anything
            log_failure(logger, f"{self.id}: a transcription", error)
            self._step(self._session.transcription_failed, effect.item_id, "server_error", "This audio could not be transcribed.")
        else:
            self._step(self._session.transcribed, effect.item_id, transcript)

    def _scored(self, epoch: int, probabilities: Sequence[float]) -> None:
        self._step(self._session.speech_scored, epoch, probabilities)

    def _turn_scored(self, pause: int, probability: float) -> None:
        self._step(self._session.turn_scored, pause, probability)

    def _detector_failed(self) -> None:
        message = "The speech detector failed; this session cannot go on."
        self._give_up(ProtocolError(message, code="server_error", type="server_error"), Close(INTERNAL_ERROR, "speech detector failed"))

    def _give_up_unread(self) -> None:
        message = "The client does not read its events; the session ends. Keep reading from the socket while responses are streamed."
        self._give_up(ProtocolError(message, code="output_buffer_overflow"), Close(POLICY_VIOLATION, "events were not read"))

    def _give_up(self, error: ProtocolError, close: Close) -> None:
        if self._output.closing:
            return

        def effects(now: float) -> list[Effect]:
            told = self._session.refuse(error, now)
            ending = [effect for effect in self._session.shutdown(now) if not isinstance(effect, Close)]
            return [*ending, *told, close]

        self._step(effects)

    async def _end(self, *loops: asyncio.Task[None]) -> None:
        self._output.close(INTERNAL_ERROR, "")
        self._settle()
        if self._detection:
            self._detection.close()
        if self._turn_scoring:
            self._turn_scoring.close()
        running = {*loops, *self._transcriptions}
        for task in running:
            task.cancel()
        running |= set(self._generations.values())
        for response_id in tuple(self._generations):
            self._cancel(response_id)
        done, late = await asyncio.wait(running | self._aborts, timeout=END_S)
        for task in done:
            if not task.cancelled() and (error := task.exception()):
                log_failure(logger, f"{self.id}: a task", error)
        if late:
            logger.warning("%s: %d tasks did not end when they were cancelled", self.id, len(late))


def _keep(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
