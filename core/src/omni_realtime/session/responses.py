"""The responses that run: at most one writes to the conversation, others run beside it out of band."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

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
from omni_realtime.protocol.server_events import RateLimitsUpdated
from omni_realtime.session.context import Context, Prompt
from omni_realtime.session.conversation import Conversation, Entry
from omni_realtime.session.effects import CancelGeneration, Count, Generate
from omni_realtime.session.ids import Ids
from omni_realtime.session.items import Items
from omni_realtime.session.messages import to_messages
from omni_realtime.session.outbox import Outbox
from omni_realtime.session.output_items import Place
from omni_realtime.session.response_builder import ContractError, ResponseBuilder
from omni_realtime.session.settings import SessionSettings
from omni_realtime.session.token_ledger import base_of
from omni_realtime.session.truncation import Plan

RATE_LIMITED: Final = "rate_limit_exceeded"


@dataclass(frozen=True, slots=True)
class Ended:
    """A response of the conversation has ended after ``audio_seconds`` of speech."""

    audio_seconds: float


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a response is asked to be, and all that its prompt could hold."""

    config: SessionConfig
    settings: ResponseSettings
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A response that is to take the place of the running one, once its prompt has been counted."""

    draft: _Draft
    params: Mapping[str, Any]
    event_id: str | None
    cancelled: bool = False
    """Whether the client wants it no more; it is announced and ends at once."""


class Responses:
    """Running responses by id."""

    def __init__(
        self, settings: SessionSettings, conversation: Conversation, items: Items, ids: Ids, outbox: Outbox, clock: Callable[[], float]
    ) -> None:
        """Begin with none; ``clock`` gives the session's time in monotonic seconds."""
        self._settings = settings
        self._rate_limiter = settings.rate_limiter
        self._clock = clock
        self._conversation = conversation
        self._items = items
        self._ids = ids
        self._outbox = outbox
        self._running: dict[str, ResponseBuilder] = {}
        self._drafts: dict[str, _Draft] = {}
        self._submitted: dict[str, tuple[_Draft, Prompt]] = {}
        self._replacements: dict[str, _Replacement] = {}
        self.context = Context(settings, conversation)
        self.active_id: str | None = None
        """The response that writes to the conversation."""
        self.spoken = False
        """Whether a response of the conversation has sent audio."""

    @property
    def ids(self) -> tuple[str, ...]:
        """All that run."""
        return tuple(self._running)

    def create(self, config: SessionConfig, params: Mapping[str, Any], event_id: str | None = None) -> Ended | None:
        """Start a response that a client asks for, or check whether it can take the place of the running one.

        Beyond the deployment's rate limits a response is announced and fails.

        Raises:
            ProtocolError: it is refused, and nothing has changed.
        """
        draft = self._draft(config, params)
        self._check_voice(draft)
        in_conversation = draft.settings.conversation == "auto"
        if in_conversation and self.active_id and self._settings.on_active_response == "replace" and not self._replacements:
            self._check_rate()
            self.context.plan(draft.prompt, config, draft.settings)
            count_id = self._ids.new("check")
            self._replacements[count_id] = _Replacement(draft, params, event_id)
            self._outbox.add(Count(count_id, self._turn(draft.settings, draft.prompt)))
            return None
        self._check_running(in_conversation=in_conversation)
        plan = self.context.plan(draft.prompt, config, draft.settings)
        return self._start(draft, plan)

    def answer(self, config: SessionConfig) -> Ended | None:
        """Start a response that nobody asked for, to the user's turn; if it cannot be served, it is announced and fails."""
        draft = self._draft(config, {})
        try:
            plan = self.context.plan(draft.prompt, config, draft.settings)
        except ProtocolError as error:
            return self.fail(self._begin(draft.settings), _refused(error))
        return self._start(draft, plan)

    def counted(self, count_id: str, tokens: int) -> Ended | None:
        """Take the length of a prompt, and go on with the response that waits for it.

        Raises:
            ProtocolError: it was to replace the running response and cannot be served; that one goes on.
        """
        if replacement := self._replacements.pop(count_id, None):
            return self._replace(replacement, tokens)
        draft = self._drafts.pop(count_id, None)
        if draft is None or count_id not in self._running:
            return None
        self.context.learn(draft.prompt, tokens)
        try:
            plan = self.context.plan(draft.prompt, draft.config, draft.settings, counted=True)
        except ProtocolError as error:
            return self.fail(count_id, _refused(error))
        self._submit(count_id, draft, plan)
        return None

    def count_failed(self, count_id: str, error: ResponseError) -> Ended | None:
        """Take that a prompt cannot be counted, and so not be served.

        Raises:
            ProtocolError: it was to replace the running response; that one goes on.
        """
        if replacement := self._replacements.pop(count_id, None):
            raise ProtocolError(error.message, code=error.code, type=error.type, event_id=replacement.event_id)
        self._drafts.pop(count_id, None)
        return self.fail(count_id, error)

    def delta(self, response_id: str, delta: ChatDelta) -> Ended | None:
        """Stream a delta; of a response that has ended, nothing."""
        builder = self._running.get(response_id)
        if builder is None or response_id not in self._submitted:
            return None
        draft, prompt = self._submitted[response_id]
        self.context.rendered(prompt, draft.prompt.entries)
        if delta.usage is not None:
            self.context.told(prompt, delta.usage, builder.item_ids if delta.finish_reason else ())
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

    def cancel_as_asked(self, response_id: str | None) -> Ended | None:
        """End the response that a client names; without a name the conversation's, and the one that is to take its place.

        Raises:
            ProtocolError: there is none.
        """
        if response_id is None and self._replacements:
            self._replacements = {count_id: replace(waiting, cancelled=True) for count_id, waiting in self._replacements.items()}
            return self.cancel(self.active_id, "client_cancelled") if self.active_id else None
        return self.cancel(self._running_one(response_id), "client_cancelled")

    def _running_one(self, response_id: str | None) -> str:
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
        if self._rate_limiter is not None:
            self._rate_limiter.spend(builder.usage.total_tokens, self._clock())
        self._drafts.pop(response_id, None)
        self._submitted.pop(response_id, None)
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

    def _check_voice(self, draft: _Draft) -> None:
        if self.spoken and draft.settings.conversation == "auto" and draft.settings.voice != draft.config.audio.output.voice:
            raise ProtocolError(
                "Cannot update a conversation's voice if assistant audio is present.",
                code="cannot_update_voice",
                param="response.audio.output.voice",
            )

    def _check_rate(self) -> None:
        """Refuse what would replace the running response and then fail."""
        refusal = self._rate_limiter and self._rate_limiter.refusal(self._clock())
        if refusal:
            raise ProtocolError(refusal, code=RATE_LIMITED, type=RATE_LIMITED)

    def _replace(self, replacement: _Replacement, tokens: int) -> Ended | None:
        """Cancel the running response and start another, from the history that the first one leaves.

        Raises:
            ProtocolError: the other one cannot be served, and the running one goes on.
        """
        counted = replacement.draft
        self.context.learn(counted.prompt, tokens)
        try:
            draft = self._draft(counted.config, replacement.params)
            self._check_voice(draft)
            self._check_rate()
            same = draft.prompt.entries == counted.prompt.entries
            plan = self.context.plan(draft.prompt, draft.config, draft.settings, counted=same)
        except ProtocolError as error:
            error.event_id = replacement.event_id
            raise
        ended = self.cancel(self.active_id, "client_cancelled") if self.active_id else None
        ended = self._start(draft, plan) or ended
        return self.cancel(self.active_id, "client_cancelled") if replacement.cancelled and self.active_id else ended

    def _draft(self, config: SessionConfig, params: Mapping[str, Any]) -> _Draft:
        settings = response_settings(config, params, self._settings.capabilities)
        entries = self.context.entries if settings.input is None else tuple(self._given(settings, config))
        base = base_of(Turn(messages=(), instructions=settings.instructions, tools=_tools(settings)))
        unfinished = frozenset(entry.item.id for entry in entries if entry.item.status == "in_progress")
        return _Draft(config, settings, Prompt(entries, base, from_conversation=settings.input is None, unfinished=unfinished))

    def _start(self, draft: _Draft, plan: Plan) -> Ended | None:
        response_id = self._begin(draft.settings)
        if self._rate_limiter is not None:
            now = self._clock()
            refusal = self._rate_limiter.refusal(now)
            if refusal is None:
                self._rate_limiter.start(now)
            self._outbox.send(RateLimitsUpdated, rate_limits=self._rate_limiter.told(now))
            if refusal is not None:
                return self.fail(response_id, ResponseError(type=RATE_LIMITED, code=RATE_LIMITED, message=refusal))
        self._submit(response_id, draft, plan)
        return None

    def _begin(self, settings: ResponseSettings) -> str:
        response_id = self._ids.new("resp")
        in_conversation = settings.conversation == "auto"
        place = Place(response_id, self._outbox, self._ids, self._conversation if in_conversation else None)
        self._running[response_id] = ResponseBuilder(place, settings)
        if in_conversation:
            self.active_id = response_id
        return response_id

    def _submit(self, response_id: str, draft: _Draft, plan: Plan) -> None:
        """Have the prompt generated from, or counted first where it is not sure to fit."""
        prompt = replace(draft.prompt, entries=plan.entries)
        turn = self._turn(draft.settings, prompt)
        if plan.sure:
            self._submitted[response_id] = draft, prompt
            self._outbox.add(Generate(response_id, turn))
        else:
            self._drafts[response_id] = draft
            self._outbox.add(Count(response_id, turn))

    def _turn(self, settings: ResponseSettings, prompt: Prompt) -> Turn:
        limit = settings.max_output_tokens
        return Turn(
            messages=to_messages(prompt.entries, self._settings.input_rate),
            instructions=settings.instructions,
            tools=_tools(settings),
            tool_choice=_tool_choice(settings),
            modalities=settings.output_modalities,
            voice=settings.voice,
            max_output_tokens=None if limit == "inf" else min(limit, self._settings.capabilities.max_output_tokens),
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


def _tools(settings: ResponseSettings) -> tuple[Tool, ...]:
    return tuple(Tool(name=tool.name, description=tool.description or "", parameters=tool.parameters or {}) for tool in settings.tools)


def _refused(error: ProtocolError) -> ResponseError:
    return ResponseError(type=error.type, code=error.code or "", message=error.message)


def _server_error(code: str, message: str) -> ResponseError:
    return ResponseError(type="server_error", code=code, message=message)
