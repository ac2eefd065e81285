"""One Realtime session as a state machine without I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from omni_realtime.audio import FORMATS, AudioFormat
from omni_realtime.chat import ChatDelta, Samples
from omni_realtime.protocol import (
    ClientEvent,
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemRetrieve,
    ConversationItemTruncate,
    InputAudio,
    InputAudioBufferAppend,
    InputAudioBufferClear,
    InputAudioBufferCommit,
    Message,
    ProtocolError,
    ResponseCancel,
    ResponseCreate,
    ResponseError,
    SemanticVad,
    ServerVad,
    SessionUpdate,
    Transcript,
    default_session,
    open_session,
    refuse_other_events,
    update_session,
    whole_characters,
)
from omni_realtime.protocol import server_events as events
from omni_realtime.session.conversation import Conversation, Entry, UserAudio
from omni_realtime.session.effects import Close, Effect, ScoreTurn, Transcribe
from omni_realtime.session.ids import Ids
from omni_realtime.session.intake import Intake, SpeechStarted, SpeechStopped, TurnChange
from omni_realtime.session.items import Items
from omni_realtime.session.outbox import Outbox
from omni_realtime.session.responses import Ended, Responses
from omni_realtime.session.settings import SessionSettings


class Session:
    """A client's session.

    Every method takes what happened and the time in monotonic seconds, and returns the effects that the host is to carry out, in order.
    No method raises on what a client, an engine or a detector says. After a ``Close`` nothing has an effect any more.
    """

    def __init__(
        self, settings: SessionSettings, *, token: str, now: float, epoch_now: int, opening: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Begin a session.

        Args:
            settings: the deployment.
            token: random hex digits, 12 or so, that make this session's ids unique.
            now: monotonic seconds.
            epoch_now: Unix seconds, from which ``expires_at`` counts.
            opening: a partial session object, laid over the deployment's defaults; its ``type`` chooses the kind of session.

        Raises:
            ProtocolError: the deployment's session defaults, or ``opening``, are not what it can serve.
        """
        limits = settings.limits
        self.id = f"sess_{token}"
        self._settings = settings
        self._conversation = Conversation(f"conv_{token}", audio_bytes=limits.conversation_audio_bytes)
        self._ids = Ids(token, taken=self._conversation)
        self._outbox = Outbox(self._ids)
        default = default_session(
            session_id=self.id,
            model=settings.model,
            capabilities=settings.capabilities,
            defaults=settings.defaults,
            expires_at=epoch_now + limits.duration_s,
        )
        self._default, self.config = open_session(default, opening, settings.capabilities)
        self._intake = Intake(settings, self.config, self._ids)
        self._items = Items(settings, self._conversation, self._ids, self._outbox)
        self._responses = Responses(settings, self._conversation, self._items, self._ids, self._outbox, lambda: self._now)
        self._now = now
        self._expires = now + limits.duration_s
        self._played: float | None = None
        self._closed = False

    @property
    def deadline(self) -> float | None:
        """When ``tick`` is due next, in monotonic seconds."""
        if self._closed:
            return None
        idle = self._idle_deadline
        return self._expires if idle is None else min(idle, self._expires)

    @property
    def conversation_id(self) -> str:
        """The id of the conversation."""
        return self._conversation.id

    @property
    def active_responses(self) -> tuple[str, ...]:
        """The ids of the responses that run."""
        return self._responses.ids

    def open(self, now: float) -> list[Effect]:
        """Greet the client."""
        self._now = now
        self._outbox.send(events.SessionCreated, session=self.config)
        return self._outbox.drain()

    def receive(self, event: ClientEvent, now: float) -> list[Effect]:
        """Take a client's event; one that is refused changes nothing and earns one ``error``."""
        self._now = now
        if self._closed:
            return []
        try:
            if self.config.type == "transcription":
                refuse_other_events(event)
            self._handlers[type(event)](self, event)
        except ProtocolError as error:
            self._outbox.drain()
            error.event_id = error.event_id or event.event_id
            return self.refuse(error, now)
        return self._outbox.drain()

    def refuse(self, error: ProtocolError, now: float) -> list[Effect]:
        """Answer a frame that the codec refused."""
        self._now = now
        if self._closed:
            return []
        self._outbox.send(
            events.ErrorEvent,
            error_type=error.type,
            message=error.message,
            code=error.code,
            param=error.param,
            client_event_id=error.event_id,
        )
        return self._outbox.drain()

    def delta(self, response_id: str, delta: ChatDelta, now: float) -> list[Effect]:
        """Take what the engine made."""
        self._now = now
        self._ended(self._responses.delta(response_id, delta))
        return self._outbox.drain()

    def generation_ended(self, response_id: str, now: float) -> list[Effect]:
        """Take that the engine's stream is at its end."""
        self._now = now
        self._ended(self._responses.generation_ended(response_id))
        return self._outbox.drain()

    def generation_failed(self, response_id: str, error: ResponseError, now: float) -> list[Effect]:
        """Take that the engine failed."""
        self._now = now
        self._ended(self._responses.fail(response_id, error))
        return self._outbox.drain()

    def counted(self, count_id: str, tokens: int, now: float) -> list[Effect]:
        """Take how many tokens the prompt of a ``Count`` has."""
        self._now = now
        return self._answer_count(lambda: self._responses.counted(count_id, tokens))

    def count_failed(self, count_id: str, error: ResponseError, now: float) -> list[Effect]:
        """Take that the prompt of a ``Count`` cannot be served."""
        self._now = now
        return self._answer_count(lambda: self._responses.count_failed(count_id, error))

    def speech_scored(self, epoch: int, probabilities: Sequence[float], now: float) -> list[Effect]:
        """Take the detector's answers to a ``Score``."""
        self._now = now
        if self._closed:
            return []
        return self._take_turns(self._intake.scored(epoch, probabilities))

    def turn_scored(self, pause: int, probability: float, now: float) -> list[Effect]:
        """Take the probability that the turn of a ``ScoreTurn`` is complete."""
        self._now = now
        if self._closed:
            return []
        return self._take_turns(self._intake.turn_scored(pause, probability))

    def transcribed(self, item_id: str, transcript: Transcript, now: float) -> list[Effect]:
        """Take what a user item says; of an item that is gone, nothing."""
        self._now = now
        entry = self._conversation.get(item_id)
        if self._closed or entry is None:
            return []
        seconds = sum(len(part.samples) for part in entry.audio.values()) / self._settings.input_rate
        entry.transcribe(whole_characters(transcript.text))
        told: dict[str, Any] = {"item_id": item_id, "content_index": 0}
        if self.config.includes_logprobs:
            told["logprobs"] = transcript.logprobs
        if transcript.text:
            self._outbox.send(events.InputAudioTranscriptionDelta, delta=transcript.text, **told)
        self._outbox.send(events.InputAudioTranscriptionCompleted, transcript=transcript.text, seconds=seconds, **told)
        return self._outbox.drain()

    def transcription_failed(self, item_id: str, code: str, message: str, now: float) -> list[Effect]:
        """Take that a user item could not be written down."""
        self._now = now
        if self._closed or item_id not in self._conversation:
            return []
        self._outbox.send(
            events.InputAudioTranscriptionFailed,
            item_id=item_id,
            content_index=0,
            error_type="transcription_error",
            code=code,
            message=message,
        )
        return self._outbox.drain()

    def tick(self, now: float) -> list[Effect]:
        """Do what is due: end the session, or answer the user's silence."""
        self._now = now
        if self._closed:
            return []
        idle = self._idle_deadline
        if now >= self._expires:
            self._expire()
        elif idle is not None and now >= idle:
            self._idle_timeout()
        return self._outbox.drain()

    def shutdown(self, now: float) -> list[Effect]:
        """End because the host stops: what runs is cancelled."""
        self._now = now
        if self._closed:
            return []
        self._cancel_all()
        self._close(1001, "The server is shutting down.")
        return self._outbox.drain()

    def _session_update(self, event: SessionUpdate) -> None:
        self.config = update_session(
            self.config, event.session, self._settings.capabilities, default=self._default, voice_locked=self._responses.spoken
        )
        self._intake.configure(self.config)
        self._outbox.send(events.SessionUpdated, session=self.config)

    def _append(self, event: InputAudioBufferAppend) -> None:
        if not self._settings.capabilities.audio_input:
            raise ProtocolError("This model takes no audio; send text items.", code="invalid_value", param="type")
        score = self._intake.append(event.audio)
        if score is not None:
            self._outbox.add(score)

    def _commit_buffer(self, _event: InputAudioBufferCommit) -> None:
        committed = self._intake.commit()
        if committed.speaking:
            self._outbox.send(events.InputAudioBufferSpeechStopped, item_id=committed.item_id, audio_end_ms=committed.end_ms)
        self._commit(committed.item_id, committed.samples)

    def _clear_buffer(self, _event: InputAudioBufferClear) -> None:
        self._intake.clear()
        self._outbox.send(events.InputAudioBufferCleared)

    def _create_item(self, event: ConversationItemCreate) -> None:
        self._items.create(event, self._input_format, announced=self._intake.announced_id)
        self._responses.context.reused(event.item.id)

    def _delete_item(self, event: ConversationItemDelete) -> None:
        self._items.delete(event)

    def _retrieve_item(self, event: ConversationItemRetrieve) -> None:
        self._items.retrieve(event, self._input_format, FORMATS[self.config.audio.output.format.type])

    def _truncate_item(self, event: ConversationItemTruncate) -> None:
        self._items.truncate(event)
        self._responses.context.shrunk(event.item_id)

    def _create_response(self, event: ResponseCreate) -> None:
        self._ended(self._responses.create(self.config, event.response, event.event_id))

    def _cancel_response(self, event: ResponseCancel) -> None:
        self._ended(self._responses.cancel_as_asked(event.response_id))

    _handlers: dict[type, Callable[[Session, Any], None]] = {  # noqa: RUF012 - never changed
        SessionUpdate: _session_update,
        InputAudioBufferAppend: _append,
        InputAudioBufferCommit: _commit_buffer,
        InputAudioBufferClear: _clear_buffer,
        ConversationItemCreate: _create_item,
        ConversationItemDelete: _delete_item,
        ConversationItemRetrieve: _retrieve_item,
        ConversationItemTruncate: _truncate_item,
        ResponseCreate: _create_response,
        ResponseCancel: _cancel_response,
    }

    @property
    def _input_format(self) -> AudioFormat:
        return FORMATS[self.config.audio.input.format.type]

    @property
    def _vad(self) -> ServerVad | SemanticVad | None:
        return self.config.audio.input.turn_detection

    @property
    def _idle_ms(self) -> int:
        """How long the user may be silent; 0 for ever."""
        return (isinstance(self._vad, ServerVad) and self._vad.idle_timeout_ms) or 0

    @property
    def _idle_deadline(self) -> float | None:
        """When the user's silence is answered: so long after the last response has played, unless someone speaks."""
        if not self._idle_ms or self._played is None or self._intake.announced_id or self._responses.active_id:
            return None
        return self._played + self._idle_ms / 1000

    def _take_turns(self, changes: Iterable[TurnChange]) -> list[Effect]:
        for change in changes:
            match change:
                case SpeechStarted():
                    self._speech_started(change)
                case SpeechStopped():
                    self._outbox.send(events.InputAudioBufferSpeechStopped, item_id=change.item_id, audio_end_ms=change.end_ms)
                    self._commit(change.item_id, change.samples)
                    self._respond_to_turn()
                case ScoreTurn():
                    self._outbox.add(change)
        return self._outbox.drain()

    def _speech_started(self, change: SpeechStarted) -> None:
        self._outbox.send(events.InputAudioBufferSpeechStarted, item_id=change.item_id, audio_start_ms=change.start_ms)
        self._interrupt()
        self._played = None

    def _interrupt(self) -> None:
        """The user's turn ends the response that runs, unless the session is told otherwise."""
        active = self._responses.active_id
        if active is not None and self._vad is not None and self._vad.interrupt_response:
            self._ended(self._responses.cancel(active, "turn_detected"))

    def _commit(self, item_id: str, samples: Samples) -> None:
        """Make a user message of audio."""
        self._played = None
        self._outbox.send(events.InputAudioBufferCommitted, item_id=item_id, previous_item_id=self._conversation.last_id)
        key = self._ids.new("audio")
        self._items.add(Entry(Message(id=item_id, role="user", content=(InputAudio(),)), audio={0: UserAudio(key, samples)}))
        transcription = self.config.audio.input.transcription
        if transcription is not None and len(samples):
            language, prompt, logprobs = transcription.spoken, transcription.prompt, self.config.includes_logprobs
            self._outbox.add(Transcribe(item_id, key, samples, self._settings.input_rate, language, prompt, logprobs))

    def _respond_to_turn(self) -> None:
        """Answer a detected turn; a response that began while the user spoke gives way if it may, else the turn stays without an answer."""
        if self._vad is None or not self._vad.create_response:
            return
        self._interrupt()
        if self._responses.active_id is None:
            self._ended(self._responses.answer(self.config))

    def _idle_timeout(self) -> None:
        """Answer the user's silence: ``create_response`` is for turns, but with ``interrupt_response`` off too nothing comes by itself."""
        taken = self._intake.take_silence(self._idle_ms)
        self._outbox.send(
            events.InputAudioBufferTimeoutTriggered,
            item_id=taken.item_id,
            audio_start_ms=taken.start_ms,
            audio_end_ms=taken.end_ms,
        )
        self._commit(taken.item_id, taken.samples)
        if self._vad is not None and (self._vad.create_response or self._vad.interrupt_response):
            self._ended(self._responses.answer(self.config))

    def _answer_count(self, answer: Callable[[], Ended | None]) -> list[Effect]:
        if self._closed:
            return []
        try:
            self._ended(answer())
        except ProtocolError as error:
            return self.refuse(error, self._now)
        return self._outbox.drain()

    def _ended(self, ended: Ended | None) -> None:
        if ended is not None:
            self._played = self._now + ended.audio_seconds

    def _cancel_all(self) -> None:
        for response_id in self._responses.ids:
            self._ended(self._responses.cancel(response_id, None))

    def _expire(self) -> None:
        self._cancel_all()
        message = f"Your session hit the maximum duration of {_duration(self._settings.limits.duration_s)}."
        self._outbox.send(events.ErrorEvent, error_type="invalid_request_error", message=message, code="session_expired")
        self._close(1000, message)

    def _close(self, code: int, reason: str) -> None:
        self._closed = True
        self._outbox.add(Close(code, reason))


def _duration(seconds: int) -> str:
    count, unit = (seconds, "second") if seconds % 60 else (seconds // 60, "minute")
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
