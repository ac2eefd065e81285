"""Which items a prompt holds, where all of them would cost too much.

Nothing here renders: the token ledger decides wherever it is sure, and where it is not, one speculative count makes it sure.
Source of the modes: ``truncation`` of the session object, Realtime API reference.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from omni_realtime.protocol import FunctionCall, FunctionCallOutput, Message, ProtocolError, ResponseSettings, SessionConfig
from omni_realtime.protocol.session_object import RetentionRatio
from omni_realtime.session.conversation import Entry
from omni_realtime.session.token_ledger import Base, TokenLedger

AUTO_RETENTION: Final = 0.8
"""How full an ``auto`` cut leaves the window, so that the next turns append to a prompt that the engine has cached."""
OPEN_ANSWER_TOKENS: Final = 4096
"""Kept free for an answer without a limit, in windows large enough."""
SMALL_SLACK: Final = 3
"""An ``auto`` truncation does without a count where what is unsure is at most one part in so many of the limit."""

Mode: TypeAlias = Literal["auto", "disabled", "retention_ratio"]


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens the prompt of a response may have; beyond ``limit`` it is cut to ``target``, or refused."""

    mode: Mode
    limit: int
    target: int
    after_instructions: bool = False
    """Whether the counts leave instructions and tools out."""
    audio_parts: int | None = None
    """The most audio parts of one prompt."""
    image_parts: int | None = None
    """The most images of one prompt."""


def budget_of(
    config: SessionConfig,
    settings: ResponseSettings,
    *,
    window: int,
    audio_parts: int | None,
    image_parts: int | None = None,
    longest_answer: int | None = None,
) -> Budget:
    """Return the budget of a response in a context window of so many tokens; to ask for more than the longest answer is to set no limit."""
    asked, truncation = settings.max_output_tokens, config.truncation
    if asked == "inf" or (longest_answer is not None and asked > longest_answer):
        limit = window - min(OPEN_ANSWER_TOKENS, window // 4)
    else:
        limit = window - min(asked, window // 2)
    if not isinstance(truncation, RetentionRatio):
        return Budget(truncation, limit, int(limit * AUTO_RETENTION), audio_parts=audio_parts, image_parts=image_parts)
    own = truncation.token_limits.post_instructions if truncation.token_limits else None
    within = own is not None and own < limit
    limit = own if own is not None and within else limit
    return Budget("retention_ratio", limit, int(limit * truncation.retention_ratio), within, audio_parts, image_parts)


@dataclass(frozen=True, slots=True)
class Plan:
    """The items of a prompt; ``sure`` unless a count of it must decide first."""

    entries: tuple[Entry, ...]
    sure: bool = True


def plan(entries: Sequence[Entry], base: Base, ledger: TokenLedger, budget: Budget, *, counted: bool = False) -> Plan:
    """Decide which of these items go into a prompt; ``counted`` if a count of all of them has just been learnt.

    Raises:
        ProtocolError: they cannot fit: truncation is disabled, or the last turn alone is too long.
    """
    total = _cost(entries, base, ledger, budget)
    parts_fit = _parts_fit(entries, budget)
    if total <= budget.limit and parts_fit:
        return Plan(tuple(entries))
    overflows = _least_cost(entries, base, ledger, budget) > budget.limit
    nearly_sure = budget.mode == "auto" and ledger.slack(entries) * SMALL_SLACK <= budget.limit
    if not (counted or overflows or nearly_sure or not parts_fit):
        return Plan(tuple(entries), sure=False)
    if budget.mode == "disabled":
        raise _too_long(budget)
    return Plan(_cut(entries, base, ledger, budget))


def _cut(entries: Sequence[Entry], base: Base, ledger: TokenLedger, budget: Budget) -> tuple[Entry, ...]:
    """Leave out the fewest of the oldest turns, so that the rest is within the target."""
    starts = [index for index, entry in enumerate(entries) if index and _begins_turn(entry)] or [len(entries) - 1]

    def fits(start: int) -> bool:
        candidate = _from(entries, start)
        return _cost(candidate, base, ledger, budget) <= budget.target and _parts_fit(candidate, budget)

    chosen = _from(entries, starts[min(bisect_left(starts, x=True, key=fits), len(starts) - 1)])
    is_whole = len(chosen) == len(entries)
    cost = _cost(chosen, base, ledger, budget) if is_whole else _least_cost(chosen, base, ledger, budget)
    if cost > budget.limit or not _parts_fit(chosen, budget):
        raise _too_long(budget)  # where the ledger is not sure of the last turn alone, the engine decides
    return chosen


def _begins_turn(entry: Entry) -> bool:
    return isinstance(entry.item, Message) and entry.item.role == "user"


def _from(entries: Sequence[Entry], start: int) -> tuple[Entry, ...]:
    """Return the entries from ``start`` on, and the system's before; a call and its output stay or go together."""
    kept = [entry for entry in entries[:start] if isinstance(entry.item, Message) and entry.item.role == "system"]
    calls = {entry.item.call_id for entry in entries[start:] if isinstance(entry.item, FunctionCall)}
    return (*kept, *(e for e in entries[start:] if not isinstance(e.item, FunctionCallOutput) or e.item.call_id in calls))


def _cost(entries: Sequence[Entry], base: Base, ledger: TokenLedger, budget: Budget) -> int:
    return ledger.most(entries, base) - (ledger.least_base(base) if budget.after_instructions else 0)


def _least_cost(entries: Sequence[Entry], base: Base, ledger: TokenLedger, budget: Budget) -> int:
    return ledger.least(entries, base) - (base.most if budget.after_instructions else 0)


def _parts_fit(entries: Sequence[Entry], budget: Budget) -> bool:
    audio_fits = budget.audio_parts is None or sum(len(entry.audio) for entry in entries) <= budget.audio_parts
    return audio_fits and (budget.image_parts is None or sum(len(entry.images) for entry in entries) <= budget.image_parts)


def _too_long(budget: Budget) -> ProtocolError:
    return ProtocolError(
        f"The conversation is too long for this model: the input of a response may have {budget.limit} tokens"
        + (f", {budget.audio_parts} audio parts" if budget.audio_parts is not None else "")
        + (f", {budget.image_parts} images" if budget.image_parts is not None else "")
        + ". Delete items, or let truncation drop old ones.",
        code="context_length_exceeded",
    )
