"""The ledger's law: whatever happened, its sums are upper bounds of what the engine would count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.chat import Tool, Turn
from omni_realtime.protocol import (
    Capabilities,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputText,
    Message,
    OutputText,
    ProtocolError,
    default_session,
    response_settings,
    update_session,
)
from omni_realtime.session.conversation import Entry, UserAudio
from omni_realtime.session.token_ledger import Base, TokenLedger, base_of
from omni_realtime.session.truncation import Budget, budget_of, plan

RATE = 16000
AUDIO_TOKENS = 13.0


def user_text(item_id: str, text: str) -> Entry:
    return Entry(Message(id=item_id, role="user", content=(InputText(text=text),)))


def user_audio(item_id: str, seconds: float) -> Entry:
    samples = np.zeros(int(seconds * RATE), np.float32)
    return Entry(Message(id=item_id, role="user", content=(InputAudio(),)), audio={0: UserAudio(item_id, samples)})


def reply(item_id: str, text: str) -> Entry:
    return Entry(Message(id=item_id, role="assistant", content=(OutputText(text=text),)))


def ledger() -> TokenLedger:
    return TokenLedger(audio_rate=RATE, audio_tokens_per_second=AUDIO_TOKENS)


class Tokeniser:
    """Counts as an engine might: each item and the base cost anything up to their bounds."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._items: dict[str, int] = {}
        self._bases: dict[int, int] = {}

    def count(self, entries: list[Entry], base: Base, bounds: TokenLedger) -> int:
        for entry in entries:
            if entry.item.id not in self._items:
                self._items[entry.item.id] = self._draw(st.integers(1, bounds.bound(entry)))
        if base.key not in self._bases:
            self._bases[base.key] = self._draw(st.integers(0, base.most))
        return self._bases[base.key] + sum(self._items[entry.item.id] for entry in entries)


@given(st.data())
def test_a_sum_is_never_below_the_count(data):
    tokens, tokeniser, entries = ledger(), Tokeniser(data.draw), []
    base = Base(1, 200)
    for number in range(data.draw(st.integers(1, 12))):
        action = data.draw(st.sampled_from(["turn", "delete", "drop", "instructions"]))
        if action == "delete" and entries:
            entries.pop(data.draw(st.integers(0, len(entries) - 1)))
        elif action == "drop":
            entries = entries[data.draw(st.integers(0, len(entries))) :]
        elif action == "instructions":
            base = Base(data.draw(st.integers(1, 3)), 200)
        entries.append(user_text(f"u{number}", "x" * data.draw(st.integers(1, 60))))
        counted = tokeniser.count(entries, base, tokens)
        assert tokens.least(entries, base) <= counted <= tokens.most(entries, base)
        if data.draw(st.booleans()):
            tokens.learn(entries, base, counted)
            assert tokens.most(entries, base) == counted
            assert tokens.slack(entries) == 0
            assert tokens.least_base(base) <= tokeniser.count([], base, tokens)
        entries.append(reply(f"a{number}", "y" * data.draw(st.integers(1, 60))))


def test_after_a_known_prompt_only_what_is_new_is_bounded():
    tokens, base = ledger(), Base(1, 100)
    first, answer, second = user_audio("u1", 2), reply("a1", "Hello."), user_audio("u2", 1)
    tokens.learn([first], base, 60)
    assert tokens.most([first, answer, second], base) == 60 + tokens.bound(answer) + tokens.bound(second)
    tokens.learn([first, answer, second], base, 95)
    assert tokens.most([first, answer, second], base) == 95


def test_leaving_a_turn_out_saves_what_it_brought():
    tokens, base = ledger(), Base(1, 20)
    turns = [user_text("u1", "a" * 400), reply("a1", "b"), user_text("u2", "c" * 400), reply("a2", "d"), user_text("u3", "e")]
    tokens.learn(turns[:1], base, 300)
    tokens.learn(turns[:3], base, 620)
    tokens.learn(turns, base, 650)
    assert tokens.most(turns[2:], base) == 650 - (300 - 20)
    assert tokens.most(turns[4:], base) == 650 - (300 - 20) - 320


def test_leaving_half_of_a_turn_out_saves_no_more_than_it_can_have_cost():
    tokens, base = ledger(), Base(1, 20)
    long, short, last = user_text("u1", "a" * 400), user_text("u2", "b"), user_text("u3", "c")
    tokens.learn([long, short], base, 400)
    assert tokens.most([long, last], base) == 400 + tokens.bound(last)
    assert tokens.most([short, last], base) == 20 + tokens.bound(short) + tokens.bound(last)
    tokens.learn([short, last], base, 60)
    assert tokens.most([last], base) == 20 + tokens.bound(last)


def test_what_was_cut_short_no_longer_saves_what_it_cost():
    tokens, base = ledger(), Base(1, 20)
    turns = [user_text("u1", "a" * 400), user_text("u2", "b" * 300)]
    tokens.learn(turns[:1], base, 300)
    tokens.learn(turns, base, 600)
    assert tokens.most(turns[1:], base) == 600 - (300 - 20)
    tokens.shrunk("u1")
    assert tokens.most(turns[1:], base) == 20 + tokens.bound(turns[1])


def test_what_still_grows_stays_unknown():
    tokens, base = ledger(), Base(1, 20)
    turns = [user_text("u1", "a" * 400), reply("a1", "b" * 50)]
    tokens.learn(turns, base, 300, unfinished=frozenset({"a1"}))
    assert tokens.slack(turns) == tokens.bound(turns[1])
    assert tokens.most(turns, base) == 300 + tokens.bound(turns[1])


def test_a_known_length_is_a_lower_bound_while_nothing_is_left_out():
    tokens, base = ledger(), Base(1, 20)
    turns = [user_text("u1", "a" * 400), user_text("u2", "b" * 300)]
    assert tokens.least(turns, base) == 0
    tokens.learn(turns, base, 500)
    assert tokens.least([*turns, user_text("u3", "c")], base) == 500
    assert tokens.least(turns[1:], base) == 500 - tokens.bound(turns[0])
    assert tokens.least(turns, Base(2, 20)) == 0


def test_changed_instructions_are_bounded_anew():
    tokens = ledger()
    short, long = base_of(Turn(messages=(), instructions="Be kind.")), base_of(Turn(messages=(), instructions="Be kind. " * 50))
    entries = [user_text("u1", "x" * 400)]
    tokens.learn(entries, short, 150)
    assert tokens.most(entries, short) == 150
    assert tokens.most(entries, long) == 150 + long.most
    assert base_of(Turn(messages=(), tools=(Tool(name="clock"),))).most > base_of(Turn(messages=())).most


def test_every_kind_of_item_is_bounded_by_its_bytes_and_seconds():
    tokens = ledger()
    empty = tokens.bound(reply("a", ""))
    assert tokens.bound(reply("a", "héllo")) == empty + 6
    call = FunctionCall(id="c", call_id="k", name="clock", arguments='{"tz":1}')
    assert tokens.bound(Entry(call)) == empty + len('clock{"tz":1}')
    assert tokens.bound(Entry(FunctionCallOutput(id="o", call_id="k", output="12:00"))) == empty + 5
    spoken = user_audio("u", 2)
    assert tokens.bound(spoken) > empty + 26
    assert isinstance(spoken.item, Message)
    forgotten = Entry(replace(spoken.item, content=(InputAudio(transcript="hello"),)))
    assert tokens.bound(forgotten) == empty + 5


CAPABILITIES = Capabilities(audio_input=True)


def config(**session):
    start = default_session(session_id="s", model="m", capabilities=CAPABILITIES, defaults={}, expires_at=0)
    return update_session(start, {"type": "realtime", **session}, CAPABILITIES, default=start, voice_locked=False)


def budget(window: int, *, audio_parts: int | None = None, **session) -> Budget:
    settings = config(**session)
    return budget_of(settings, response_settings(settings, {}, CAPABILITIES), window=window, audio_parts=audio_parts)


@pytest.mark.parametrize(
    ("session", "window", "limit", "target"),
    [
        ({}, 8000, 6000, 4800),
        ({}, 100_000, 95_904, 76_723),
        ({"max_output_tokens": 1000}, 8000, 7000, 5600),
        ({"max_output_tokens": 4096}, 2048, 1024, 819),
        ({"truncation": "disabled"}, 8000, 6000, 4800),
        ({"truncation": {"type": "retention_ratio", "retention_ratio": 0.5}}, 8000, 6000, 3000),
        ({"truncation": {"type": "retention_ratio", "retention_ratio": 0.5, "token_limits": {"post_instructions": 500}}}, 8000, 500, 250),
        (
            {"truncation": {"type": "retention_ratio", "retention_ratio": 1.0, "token_limits": {"post_instructions": 9000}}},
            8000,
            6000,
            6000,
        ),
    ],
)
def test_the_budget_of_each_mode(session, window, limit, target):
    found = budget(window, **session)
    assert (found.limit, found.target) == (limit, target)
    assert found.after_instructions is (limit == 500)


def conversation(turns: int) -> list[Entry]:
    return [entry for n in range(turns) for entry in (user_text(f"u{n}", "x" * 68), reply(f"a{n}", "y" * 68))][:-1]


def learnt(entries: list[Entry], base: Base, cost: int = 100) -> TokenLedger:
    tokens = ledger()
    for end in range(1, len(entries) + 1, 2):
        tokens.learn(entries[:end], base, end * cost)
    return tokens


def test_what_fits_stays_whole_without_a_count():
    entries, base = conversation(5), Base(1, 0)
    chosen = plan(entries, base, learnt(entries, base), Budget("auto", 900, 720))
    assert chosen.sure
    assert list(chosen.entries) == entries


def test_what_overflows_loses_its_oldest_turns_without_a_count():
    entries, base = conversation(5), Base(1, 0)
    chosen = plan(entries, base, learnt(entries, base), Budget("auto", 899, 720))
    assert chosen.sure
    assert [entry.item.id for entry in chosen.entries] == ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]


def test_an_unknown_conversation_is_counted_once():
    entries, base, tokens = conversation(3), Base(1, 0), ledger()
    allowed = Budget("auto", 450, 360)
    assert not plan(entries, base, tokens, allowed).sure
    tokens.learn(entries, base, 440)
    assert plan(entries, base, tokens, allowed, counted=True).entries == tuple(entries)
    tokens.learn(entries, base, 460)
    assert len(plan(entries, base, tokens, allowed, counted=True).entries) < len(entries)


def test_disabled_refuses_and_counts_where_it_is_not_sure():
    entries, base = conversation(3), Base(1, 0)
    disabled = Budget("disabled", 450, 360)
    assert not plan(entries, base, learnt(entries[:-1], base), disabled).sure
    with pytest.raises(ProtocolError, match="450 tokens") as refusal:
        plan(entries, base, learnt(entries, base), disabled)
    assert refusal.value.code == "context_length_exceeded"


def test_a_last_turn_that_is_too_long_alone_is_refused():
    entries, base = conversation(2), Base(1, 0)
    with pytest.raises(ProtocolError, match="too long"):
        plan([user_text("u", "x" * 5000)], base, ledger(), Budget("auto", 900, 720), counted=True)
    with pytest.raises(ProtocolError, match="too long"):
        plan(entries, base, learnt(entries, base), Budget("auto", 50, 40))


def test_a_last_turn_that_may_be_too_long_is_for_the_engine_to_decide():
    entries, base, tokens = [user_text(f"u{n}", "x" * 2000) for n in range(3)], Base(1, 0), ledger()
    tokens.learn(entries, base, 1000)
    assert plan(entries, base, tokens, Budget("auto", 900, 720), counted=True).entries == tuple(entries[-1:])


def test_instructions_that_fill_the_window_alone_are_refused():
    with pytest.raises(ProtocolError, match="too long"):
        plan([], Base(1, 5000), ledger(), Budget("auto", 900, 720), counted=True)


def test_system_items_stay_and_an_output_goes_with_its_call():
    system = Entry(Message(id="s", role="system", content=(InputText(text="z"),)))
    call = Entry(FunctionCall(id="c", call_id="k", name="clock", arguments="{}"))
    output = Entry(FunctionCallOutput(id="o", call_id="k", output="12:00"))
    long = "x" * 200
    entries = [user_text("u0", long * 3), call, system, user_text("u1", long), output, reply("a1", long), user_text("u2", long)]
    base, tokens = Base(1, 0), ledger()
    tokens.learn(entries[:1], base, 400)
    tokens.learn(entries, base, 1000)
    chosen = plan(entries, base, tokens, Budget("auto", 900, 700))
    assert [entry.item.id for entry in chosen.entries] == ["s", "u1", "a1", "u2"]


def test_the_number_of_audio_parts_counts_too():
    entries = [user_audio(f"u{n}", 0.1) for n in range(6)]
    base, tokens = Base(1, 0), ledger()
    tokens.learn(entries, base, 60)
    chosen = plan(entries, base, tokens, Budget("auto", 900, 720, audio_parts=4))
    assert [entry.item.id for entry in chosen.entries] == ["u2", "u3", "u4", "u5"]
    with pytest.raises(ProtocolError, match="4 audio parts"):
        plan(entries, base, tokens, Budget("disabled", 900, 720, audio_parts=4))


@given(st.data())
def test_a_sure_plan_fits_whatever_the_items_really_cost(data):
    tokens, tokeniser, entries = ledger(), Tokeniser(data.draw), []
    base = Base(1, 60)
    allowed = Budget(data.draw(st.sampled_from(["auto", "disabled", "retention_ratio"])), 500, 300)
    for number in range(data.draw(st.integers(1, 14))):
        entries.append(user_text(f"u{number}", "x" * data.draw(st.integers(1, 90))))
        try:
            chosen = plan(entries, base, tokens, allowed)
            if not chosen.sure:
                tokens.learn(entries, base, tokeniser.count(entries, base, tokens))
                chosen = plan(entries, base, tokens, allowed, counted=True)
        except ProtocolError:
            entries = entries[-1:]
            continue
        assert chosen.sure
        entries = list(chosen.entries)
        counted = tokeniser.count(entries, base, tokens)
        assert counted <= allowed.limit
        tokens.learn(entries, base, counted)
        entries.append(reply(f"a{number}", "y" * data.draw(st.integers(1, 90))))
