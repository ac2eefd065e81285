"""The part of the conversation that the model is told of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omni_realtime.chat import Usage
from omni_realtime.protocol import ResponseSettings, SessionConfig
from omni_realtime.session.conversation import Conversation, Entry
from omni_realtime.session.settings import SessionSettings
from omni_realtime.session.token_ledger import Base, TokenLedger
from omni_realtime.session.truncation import Plan, budget_of, plan


@dataclass(frozen=True, slots=True)
class Prompt:
    """The items of one prompt, what stands beside them, and whether the conversation is where they come from."""

    entries: tuple[Entry, ...]
    base: Base
    from_conversation: bool
    unfinished: frozenset[str] = frozenset()
    """Items that were still streaming when the prompt was made."""


class Context:
    """Items that a truncation leaves out of the context stay in the conversation, and never come back into the context."""

    def __init__(self, settings: SessionSettings, conversation: Conversation) -> None:
        self._conversation = conversation
        self._window = settings.context_window
        self._capabilities = settings.capabilities
        self._ledger = TokenLedger(
            audio_rate=settings.input_rate,
            audio_tokens_per_second=settings.capabilities.audio_tokens_per_second,
            image_tokens=settings.capabilities.image_tokens,
        )
        self._left_out: frozenset[Entry] = frozenset()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What a prompt would hold if all of it fits."""
        return tuple(entry for entry in self._conversation if entry not in self._left_out)

    def plan(self, prompt: Prompt, config: SessionConfig, settings: ResponseSettings, *, counted: bool = False) -> Plan:
        """Decide what of a prompt is submitted; ``counted`` if its length has just been learnt.

        Raises:
            ProtocolError: it cannot fit.
        """
        if self._window is None or not prompt.from_conversation:
            return Plan(prompt.entries)
        served = self._capabilities
        budget = budget_of(
            config,
            settings,
            window=self._window,
            audio_parts=served.audio_parts,
            image_parts=served.image_parts,
            longest_answer=served.max_output_tokens,
        )
        return plan(prompt.entries, prompt.base, self._ledger, budget, counted=counted)

    def learn(self, prompt: Prompt, tokens: int) -> None:
        """Take the length of a prompt in tokens."""
        if prompt.from_conversation:
            replaced = {entry.item.id for entry in prompt.entries if self._conversation.get(entry.item.id) not in {None, entry}}
            self._ledger.learn(prompt.entries, prompt.base, tokens, unfinished=prompt.unfinished | replaced)

    def rendered(self, prompt: Prompt, considered: Sequence[Entry]) -> None:
        """Take that the engine has this prompt: what was considered and is not in it has left the context."""
        if prompt.from_conversation:
            left_out = self._left_out.union(considered).difference(prompt.entries)
            self._left_out = frozenset(entry for entry in left_out if self._conversation.get(entry.item.id) is entry)

    def told(self, prompt: Prompt, usage: Usage, answer: Sequence[str]) -> None:
        """Take what the engine tells of a prompt's length, and of the items that are its answer so far."""
        if tokens := usage.input_tokens:
            self.learn(prompt, tokens)
        for item_id in answer if usage.output_text_tokens else ():
            self._ledger.told(item_id, usage.output_text_tokens)

    def reused(self, item_id: str) -> None:
        """Take that the client gave an item this id, which another may have had before."""
        self._ledger.reused(item_id)

    def shrunk(self, item_id: str) -> None:
        """Take that an item has become shorter."""
        self._ledger.shrunk(item_id)
