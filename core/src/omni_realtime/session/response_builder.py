"""One response: the engine's deltas in, the API's events out, in the one order that clients rely on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omni_realtime.audio import FORMATS
from omni_realtime.chat import ChatDelta, FinishReason, ToolCallDelta
from omni_realtime.protocol import (
    Item,
    ItemStatus,
    Response,
    ResponseError,
    ResponseSettings,
    ResponseStatus,
    StatusDetails,
    StatusReason,
    Usage,
    whole_characters,
)
from omni_realtime.protocol import server_events as events
from omni_realtime.session.output_items import CallWriter, ItemWriter, Place, SpeechWriter, TextWriter

_OUTCOMES: dict[FinishReason, tuple[ResponseStatus, StatusReason | None]] = {
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
    "abort": ("cancelled", None),
}


class ContractError(Exception):
    """The engine's deltas break the port's contract; the message says how."""


class ResponseBuilder:
    """Builds one response; once ``done``, nothing of it follows."""

    def __init__(self, place: Place, settings: ResponseSettings) -> None:
        """Announce the response."""
        self.done = False
        self._place = place
        self._settings = settings
        self._format = FORMATS[settings.output_format]
        self._writers: list[ItemWriter] = []
        self._open: ItemWriter | None = None
        self._call_index: int | None = None
        self._rate = 0
        self.usage = Usage()
        place.outbox.send(events.ResponseCreated, response=self._resource("in_progress"))

    @property
    def audio_seconds(self) -> float:
        """How long the response plays."""
        return sum(writer.samples for writer in self._writers if isinstance(writer, SpeechWriter)) / self._format.rate

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The items so far."""
        return tuple(writer.entry.item.id for writer in self._writers)

    def apply(self, delta: ChatDelta) -> None:
        """Stream one delta of the engine.

        Raises:
            ContractError: the delta is not what the port allows.
        """
        self._check(delta)
        if delta.usage is not None:
            self.usage = delta.usage
        if delta.text:
            self._message().text(whole_characters(delta.text))
        if delta.audio is not None and len(delta.audio):
            self._speech().audio(delta.audio, delta.rate, whole_characters(delta.spoken))
        if delta.tool_call is not None:
            self._call(delta.tool_call)
        if delta.finish_reason == "error":
            self.fail(ResponseError(type="server_error", code="server_error", message="The model could not finish its answer."))
        elif delta.finish_reason is not None:
            status, reason = _OUTCOMES[delta.finish_reason]
            self._finish(status, StatusDetails(reason=reason) if status != "completed" else None)

    def cancel(self, reason: StatusReason | None) -> None:
        """End the response where it is."""
        self._finish("cancelled", StatusDetails(reason=reason))

    def fail(self, error: ResponseError) -> None:
        """End the response with what went wrong."""
        self._finish("failed", StatusDetails(error=error))

    def _check(self, delta: ChatDelta) -> None:
        if delta.audio is not None:
            if self._settings.output_modalities != ("audio",):
                raise ContractError("it sent audio for a response that is text only")
            if delta.audio.dtype != np.float32 or delta.audio.ndim != 1:
                raise ContractError(f"its audio is {delta.audio.dtype} of shape {delta.audio.shape}; samples are float32 of shape (n,)")
            if delta.rate <= 0 or (self._rate and delta.rate != self._rate):
                raise ContractError(f"its audio came at {delta.rate} Hz after {self._rate} Hz; one rate above 0 holds for a generation")
            self._rate = delta.rate
        call = delta.tool_call
        if call is not None and not self._goes_on(call) and not call.name and not self._is_surplus(call):
            raise ContractError(f"the first piece of tool call {call.index} has no name, or something else came between its pieces")
        if delta.finish_reason is not None and delta.finish_reason != "error" and delta.finish_reason not in _OUTCOMES:
            raise ContractError(f"{delta.finish_reason!r} is no finish reason")

    def _message(self) -> TextWriter | SpeechWriter:
        if isinstance(self._open, TextWriter | SpeechWriter):
            return self._open
        self._close("completed")
        writer: TextWriter | SpeechWriter
        if self._settings.output_modalities == ("audio",):
            writer = SpeechWriter(self._place, len(self._writers), self._format)
        else:
            writer = TextWriter(self._place, len(self._writers))
        self._begin(writer)
        return writer

    def _speech(self) -> SpeechWriter:
        writer = self._message()
        assert isinstance(writer, SpeechWriter)  # noqa: S101 - _check let audio through
        return writer

    def _goes_on(self, piece: ToolCallDelta) -> bool:
        return isinstance(self._open, CallWriter) and piece.index == self._call_index

    def _is_surplus(self, piece: ToolCallDelta) -> bool:
        """Whether the client wants one call at most, and has it."""
        has_call = any(isinstance(writer, CallWriter) for writer in self._writers)
        return has_call and not self._settings.parallel_tool_calls and not self._goes_on(piece)

    def _call(self, piece: ToolCallDelta) -> None:
        if self._is_surplus(piece):
            self._close("completed")
            return
        writer = self._open
        if not isinstance(writer, CallWriter) or not self._goes_on(piece):
            self._close("completed")
            writer = CallWriter(self._place, len(self._writers), name=whole_characters(piece.name or ""), call_id=piece.call_id)
            self._begin(writer)
            self._call_index = piece.index
        if piece.arguments:
            writer.arguments(whole_characters(piece.arguments))

    def _begin(self, writer: ItemWriter) -> None:
        self._writers.append(writer)
        self._open = writer

    def _close(self, status: ItemStatus, *, flush: bool = True) -> None:
        if isinstance(self._open, CallWriter) and status == "completed" and not self._open.is_whole:
            raise ContractError("the arguments of its tool call are not JSON")
        if isinstance(self._open, SpeechWriter) and flush:
            self._open.flush()
        if self._open is not None:
            self._open.close(status)
            self._open = None

    def _finish(self, status: ResponseStatus, details: StatusDetails | None) -> None:
        self._close("completed" if status == "completed" else "incomplete", flush=status != "cancelled")
        self.done = True
        response = replace(self._resource(status), status_details=details, output=self._output(), usage=self.usage)
        self._place.outbox.send(events.ResponseDone, response=response)

    def _output(self) -> tuple[Item, ...]:
        return tuple(writer.entry.snapshot() for writer in self._writers)

    def _resource(self, status: ResponseStatus) -> Response:
        settings, conversation = self._settings, self._place.conversation
        return Response(
            id=self._place.response_id,
            status=status,
            conversation_id=conversation.id if conversation is not None else None,
            output_modalities=settings.output_modalities,
            max_output_tokens=settings.max_output_tokens,
            output_format=settings.output_format,
            voice=settings.voice,
            metadata=settings.metadata,
        )
