"""The responses that run: at most one writes to the conversation, others run beside it out of band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omni_realtime.audio import FORMATS
from omni_realtime.chat import ChatDelta, NamedTool, Tool, ToolChoice, Turn
from omni_realtime.protocol import (
    FunctionCall,
    FunctionCallOutput,
    FunctionToolChoice,
    ItemReference,
    ProtocolError,
    ResponseError,
    ResponseSettings,
    SessionConfig,
    StatusReason,
    response_settings,
)
from omni_realtime.session.conversation import Conversation, Entry
from omni_realtime.session.effects import CancelGeneration, Generate
from omni_realtime.session.ids import Ids
from omni_realtime.session.items import Items
from omni_realtime.session.messages import to_messages
from omni_realtime.session.outbox import Outbox
from omni_realtime.session.output_items import Place
from omni_realtime.session.response_builder import ContractError, ResponseBuilder
from omni_realtime.session.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class Ended:
    """A response of the conversation has ended after ``audio_seconds`` of speech."""

    audio_seconds: float


class Responses:
    """Running responses by id."""

    def __init__(self, settings: SessionSettings, conversation: Conversation, items: Items, ids: Ids, outbox: Outbox) -> None:
        self._settings = settings
        self._conversation = conversation
        self._items = items
        self._ids = ids
        self._outbox = outbox
        self._running: dict[str, ResponseBuilder] = {}
        self.active_id: str | None = None
        """The response that writes to the conversation."""
        self.spoken = False
        """Whether a response of the conversation has sent audio."""

    @property
    def ids(self) -> tuple[str, ...]:
        """All that run."""
        return tuple(self._running)

    def create(self, config: SessionConfig, params: Mapping[str, Any]) -> None:
        """Start a response.

        Raises:
            ProtocolError: it is refused, and nothing has changed.
        """
        settings = response_settings(config, params, self._settings.capabilities)
        in_conversation = settings.conversation == "auto"
        self._check_running(in_conversation=in_conversation)
        turn = self._turn(settings, config)
        response_id = self._ids.new("resp")
        place = Place(response_id, self._outbox, self._ids, self._conversation if in_conversation else None)
        self._running[response_id] = ResponseBuilder(place, settings)
        if in_conversation:
            self.active_id = response_id
        self._outbox.add(Generate(response_id, turn))

    def delta(self, response_id: str, delta: ChatDelta) -> Ended | None:
        """Stream a delta; of a response that has ended, nothing."""
        builder = self._running.get(response_id)
        if builder is None:
            return None
        try:
            builder.apply(delta)
        except ContractError as error:
            self._outbox.add(CancelGeneration(response_id))
            builder.fail(_server_error("engine_contract", f"The engine broke its contract: {error}."))
        return self._settle(response_id)

    def generation_ended(self, response_id: str) -> Ended | None:
        """End a response whose engine stopped without a finish reason."""
        return self.fail(response_id, _server_error("engine_contract", "The engine ended its answer without a finish reason."))

    def fail(self, response_id: str, error: ResponseError) -> Ended | None:
        """End a response with what went wrong."""
        if builder := self._running.get(response_id):
            builder.fail(error)
        return self._settle(response_id)

    def cancel(self, response_id: str, reason: StatusReason | None) -> Ended | None:
        """End a response where it is, and free the engine."""
        if builder := self._running.get(response_id):
            self._outbox.add(CancelGeneration(response_id))
            builder.cancel(reason)
        return self._settle(response_id)

    def running(self, response_id: str | None) -> str:
        """The running response of this id, without one the conversation's.

        Raises:
            ProtocolError: there is none.
        """
        found = self.active_id if response_id is None else response_id
        if found is None or found not in self._running:
            raise ProtocolError(
                "Cancellation failed: no active response found",
                code="response_cancel_not_active",
                param=None if response_id is None else "response_id",
            )
        return found

    def _settle(self, response_id: str) -> Ended | None:
        builder = self._running.get(response_id)
        if builder is None:
            return None
        in_conversation = response_id == self.active_id
        self.spoken = self.spoken or (in_conversation and builder.audio_seconds > 0)
        if not builder.done:
            return None
        del self._running[response_id]
        if not in_conversation:
            return None
        self.active_id = None
        return Ended(builder.audio_seconds)

    def _check_running(self, *, in_conversation: bool) -> None:
        if in_conversation and self.active_id is not None:
            raise ProtocolError(
                f"Conversation already has an active response in progress: {self.active_id}. Wait until the response is finished before "
                "creating a new one.",
                code="conversation_already_has_active_response",
            )
        limit = self._settings.limits.out_of_band_responses
        if not in_conversation and len(self._running) - (self.active_id is not None) >= limit:
            raise ProtocolError(
                f"At most {limit} out-of-band responses run at once; wait for one to finish.",
                code="too_many_responses",
                param="response.conversation",
            )

    def _turn(self, settings: ResponseSettings, config: SessionConfig) -> Turn:
        entries = self._conversation if settings.input is None else self._given(settings, config)
        limit = settings.max_output_tokens
        return Turn(
            messages=to_messages(entries, self._settings.input_rate),
            instructions=settings.instructions,
            tools=tuple(
                Tool(name=tool.name, description=tool.description or "", parameters=tool.parameters or {}) for tool in settings.tools
            ),
            tool_choice=_tool_choice(settings),
            modalities=settings.output_modalities,
            voice=settings.voice,
            max_output_tokens=None if limit == "inf" else limit,
        )

    def _given(self, settings: ResponseSettings, config: SessionConfig) -> list[Entry]:
        entries = []
        for index, item in enumerate(settings.input or ()):
            param = f"response.input.{index}"
            if not isinstance(item, ItemReference):
                entries.append(self._items.entry(item, FORMATS[config.audio.input.format.type], param))
                continue
            entry = self._conversation.get(item.id)
            if entry is None:
                raise ProtocolError(f"The item with id '{item.id}' does not exist.", code="invalid_value", param=f"{param}.id")
            entries.append(entry)
        _check_outputs(entries)
        return entries


def _check_outputs(entries: list[Entry]) -> None:
    """Refuse an output without its call: no model would be told of it."""
    calls = {entry.item.call_id for entry in entries if isinstance(entry.item, FunctionCall)}
    for index, entry in enumerate(entries):
        if isinstance(entry.item, FunctionCallOutput) and entry.item.call_id not in calls:
            raise ProtocolError(
                f"There is no function call with call_id '{entry.item.call_id}' in the input; give it beside its output.",
                code="invalid_value",
                param=f"response.input.{index}.call_id",
            )


def _tool_choice(settings: ResponseSettings) -> ToolChoice:
    choice = settings.tool_choice
    return NamedTool(name=choice.name) if isinstance(choice, FunctionToolChoice) else choice


def _server_error(code: str, message: str) -> ResponseError:
    return ResponseError(type="server_error", code=code, message=message)
