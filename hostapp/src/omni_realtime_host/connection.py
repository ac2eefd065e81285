"""One client's session on one socket: carries events in and effects out, and decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from omni_realtime import protocol
from omni_realtime.chat import GenerateRequest
from omni_realtime.engine.port import EngineDeadError, EngineError, TranscriptionRequest
from omni_realtime.protocol import ProtocolError
from omni_realtime.protocol.response import ResponseError
from omni_realtime.session import Session
from omni_realtime.session.effects import CancelGeneration, Close, Effect, Generate, Score, Send, Transcribe
from omni_realtime_host.config_schema import Limits
from omni_realtime_host.output_buffer import OutputBuffer
from omni_realtime_host.served_model import ServedModel

logger = logging.getLogger(__name__)

END_S = 1.0
"""How long a generation or a transcription may take to end once it is cancelled, before it is left to itself."""

POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011


class Connection:
    """Drives a session: one reader, one writer, and one task per running generation and transcription."""

    def __init__(self, websocket: WebSocket, model: ServedModel, limits: Limits) -> None:
        self._websocket = websocket
        self._model = model
        self._loop = asyncio.get_running_loop()
        self._session = Session(model.settings, token=secrets.token_hex(6), now=self._loop.time(), epoch_now=int(time.time()))
        self._output = OutputBuffer(max_events=limits.output_events, max_bytes=limits.output_bytes)
        self._generations: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._detection = model.detection.open(self._scored, self._detector_failed) if model.detection else None
        self._timer: asyncio.TimerHandle | None = None
        self._draining = False

    async def run(self) -> None:
        """Serve until the client or the host closes; whatever was running has ended then."""
        self._perform(self._session.open(self._loop.time()))
        reader, writer = asyncio.create_task(self._read()), asyncio.create_task(self._write())
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._output.close(INTERNAL_ERROR, "")
            await self._end((reader, writer))

    def drain(self) -> None:
        """Close as soon as no response is running."""
        self._draining = True
        self._perform(())

    def stop(self) -> None:
        """End the running responses and close."""
        self._perform(self._session.shutdown(self._loop.time()))

    async def _read(self) -> None:
        while (message := await self._websocket.receive())["type"] == "websocket.receive":
            self._perform(self._receive(message))

    def _receive(self, message: Any) -> list[Effect]:
        text = message.get("text")
        try:
            event = protocol.decode(message["bytes"] if text is None else text)
        except ProtocolError as error:
            return self._session.refuse(error, self._loop.time())
        return self._session.receive(event, self._loop.time())

    async def _write(self) -> None:
        with contextlib.suppress(WebSocketDisconnect):
            while isinstance(event := await self._output.get(), str):
                await self._websocket.send_text(event)
            await self._websocket.close(event.code, event.reason)

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self._carry_out(effect)
        if self._output.closing:
            return
        if self._output.full:
            self._give_up_unread()
        elif self._draining and not self._session.active_responses:
            self.stop()
        self._set_timer()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(event):
                self._output.put(protocol.encode(event))
            case Generate():
                self._generations[effect.response_id] = self._spawn(self._generate(effect))
            case CancelGeneration(response_id):
                self._cancel(response_id)
            case Score(epoch, frames):
                if self._detection:
                    self._detection.score(epoch, frames)
            case Transcribe():
                self._spawn(self._transcribe(effect))
            case Close(code, reason):
                self._output.close(code, reason)

    def _set_timer(self) -> None:
        deadline = None if self._output.closing else self._session.deadline
        if self._timer:
            if self._timer.when() == deadline:
                return
            self._timer.cancel()
        self._timer = None if deadline is None else self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._perform(self._session.tick(self._loop.time()))

    async def _generate(self, effect: Generate) -> None:
        failure: ResponseError | None = None
        try:
            await self._stream(effect)
        except EngineError as error:
            if isinstance(error, EngineDeadError):
                self._model.declare_dead(error)
            failure = ResponseError(type="server_error", code=error.code, message=error.message)
        except Exception:
            logger.exception("session %s: a generation failed", self._session.id)
            failure = ResponseError(type="server_error", code="server_error", message="The model failed to answer. Try again.")
        finally:
            self._generations.pop(effect.response_id, None)
        now = self._loop.time()
        if failure:
            self._perform(self._session.generation_failed(effect.response_id, failure, now))
        else:
            self._perform(self._session.generation_ended(effect.response_id, now))

    async def _stream(self, effect: Generate) -> None:
        self._model.check_alive()
        turn, task = effect.turn, asyncio.current_task()
        request = GenerateRequest(
            request_id=effect.response_id,
            prompt=self._model.adapter.build_prompt(turn),
            modalities=turn.modalities,
            voice=turn.voice,
            max_output_tokens=turn.max_output_tokens,
        )
        async with contextlib.aclosing(self._model.adapter.engine.generate(request)) as deltas:
            async for delta in deltas:
                if task and task.cancelling():  # the engine swallowed the cancellation
                    return
                self._perform(self._session.delta(effect.response_id, delta, self._loop.time()))
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
            self._spawn(self._model.adapter.engine.abort(response_id))

    async def _transcribe(self, effect: Transcribe) -> None:
        transcriber = self._model.adapter.transcriber
        request = TranscriptionRequest(
            samples=effect.samples, rate=effect.rate, key=effect.key, language=effect.language, prompt=effect.prompt
        )
        code, message = "transcription_failed", "This audio could not be transcribed."
        try:
            if transcriber is None:
                raise EngineError("This deployment has no transcriber.", code=code)
            transcript = await transcriber.transcribe(request)
        except EngineError as error:
            code, message = error.code, error.message
        except Exception:
            logger.exception("session %s: a transcription failed", self._session.id)
        else:
            self._perform(self._session.transcribed(effect.item_id, transcript, self._loop.time()))
            return
        self._perform(self._session.transcription_failed(effect.item_id, code, message, self._loop.time()))

    def _scored(self, epoch: int, probabilities: Sequence[float]) -> None:
        self._perform(self._session.speech_scored(epoch, probabilities, self._loop.time()))

    def _detector_failed(self) -> None:
        message = "The speech detector failed; this session cannot go on."
        self._give_up(ProtocolError(message, code="server_error", type="server_error"), Close(INTERNAL_ERROR, "speech detector failed"))

    def _give_up_unread(self) -> None:
        message = "The client reads its events too slowly; the session ends. Read from the socket while responses are streamed."
        self._give_up(ProtocolError(message, code="output_buffer_overflow"), Close(POLICY_VIOLATION, "events were not read"))

    def _give_up(self, error: ProtocolError, close: Close) -> None:
        if self._output.closing:
            return
        now = self._loop.time()
        told = self._session.refuse(error, now)
        ending = [effect for effect in self._session.shutdown(now) if not isinstance(effect, Close)]
        for effect in (*ending, *told, close):
            self._carry_out(effect)
        self._set_timer()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("session %s: a task failed", self._session.id, exc_info=error)

    async def _end(self, loops: tuple[asyncio.Task[None], asyncio.Task[None]]) -> None:
        self._set_timer()
        if self._detection:
            self._detection.close()
        for response_id in tuple(self._generations):
            self._cancel(response_id)
        for task in (*loops, *self._tasks):
            task.cancel()
        _, late = await asyncio.wait((*loops, *self._tasks), timeout=END_S)
        if late:
            logger.warning("session %s: %d tasks did not end when they were cancelled", self._session.id, len(late))
        for task in loops:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error
