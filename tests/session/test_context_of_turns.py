"""A conversation that outgrows the context window, and a response that takes another's place."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from omni_realtime.chat import AudioPart, ChatDelta, TextPart, Turn, Usage
from omni_realtime.engine.port import EngineError
from omni_realtime.session import Count, Generate
from omni_realtime.testing import text_reply

TURN_TOKENS = 30
BASE_TOKENS = 20
WINDOW = 400
LIMIT = 300


def cost(turn: Turn) -> int:
    """What the engine's prompt costs: each message the same."""
    return BASE_TOKENS + TURN_TOKENS * len(turn.messages)


def told(request) -> list:
    """A reply that tells what the prompt cost, as engines do."""
    tokens = BASE_TOKENS + TURN_TOKENS * (len(request.prompt.messages) - 1)
    return text_reply("ok", usage=Usage(input_text_tokens=tokens, output_text_tokens=1))


def said(turn: Turn) -> list[str]:
    return [part.text for message in turn.messages for part in message.content if isinstance(part, TextPart)]


def ask(client, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        client.say(f"question {number}")
        client.create()


def counts(client) -> int:
    return sum(isinstance(effect, Count) for effect in client.effects)


def generations(client) -> int:
    return sum(isinstance(effect, Generate) for effect in client.effects)


def test_while_it_fits_each_turn_is_rendered_once(connect):
    client = connect(told, text=True, window=10_000, count=cost)
    ask(client, 20)
    assert (generations(client), counts(client)) == (20, 0)
    assert len(client.turns[-1].messages) == 39


def test_a_long_conversation_never_needs_a_count_and_never_overflows(connect):
    client = connect(told, text=True, window=WINDOW, count=cost)
    ask(client, 60)
    assert (generations(client), counts(client)) == (60, 0)
    assert max(cost(turn) for turn in client.turns) <= LIMIT
    assert not client.of("error")
    assert {event["response"]["status"] for event in client.of("response.done")} == {"completed"}


def test_what_left_the_context_can_still_be_retrieved_and_does_not_come_back(connect):
    client = connect(told, text=True, window=WINDOW, count=cost)
    ask(client, 12)
    assert "question 0" not in said(client.turns[-1])
    assert len(client.items) == 24
    assert not client.of("conversation.item.deleted")
    retrieved = client.retrieve(client.items[0])
    assert retrieved[0]["item"]["content"][0]["text"] == "question 0"
    for item_id in client.items[4:]:
        client.delete(item_id)
    ask(client, 1, first=12)
    assert said(client.turns[-1])[-1] == "question 12"
    assert "question 0" not in said(client.turns[-1])


def test_the_context_begins_with_a_user_message(connect):
    client = connect(told, text=True, window=WINDOW, count=cost)
    ask(client, 30)
    assert all(turn.messages[0].role == "user" for turn in client.turns)


def test_nothing_leaves_the_context_until_the_shorter_prompt_has_been_rendered(connect):
    rehearsal = connect(told, text=True, window=WINDOW, count=cost)
    ask(rehearsal, 12)
    sizes = [len(turn.messages) for turn in rehearsal.turns]
    cut_at = next(index for index, (before, after) in enumerate(pairwise(sizes), 1) if after < before)

    client = connect(*[told] * cut_at, [EngineError("The audio is broken.")], told, text=True, window=WINDOW, count=cost)
    ask(client, cut_at)
    client.say(f"question {cut_at}")
    client.create()
    assert client.last("response.done")["response"]["status"] == "failed"
    assert len(client.turns[-1].messages) == sizes[cut_at]
    assert len(client.session._responses.context.entries) == len(client.items)
    client.create()
    assert client.last("response.done")["response"]["status"] == "completed"
    assert len(client.session._responses.context.entries) < len(client.items)


def test_an_unknown_history_is_counted_once_and_then_cut(connect):
    client = connect(told, text=True, window=WINDOW, count=cost)
    for number in range(20):
        client.say(f"{'long ' * 8}story {number}")
    client.create()
    assert (counts(client), generations(client)) == (1, 1)
    assert cost(client.turns[0]) <= LIMIT
    assert said(client.turns[0])[-1].endswith("story 19")


def test_a_response_whose_prompt_is_counted_can_be_cancelled(connect):
    client = connect(told, text=True, window=WINDOW)
    for number in range(20):
        client.say(f"{'long ' * 8}story {number}")
    client._carry_out, carry_out = lambda effect: [] if isinstance(effect, Count) else carry_out(effect), client._carry_out
    client.create()
    response_id = client.last("response.created")["response"]["id"]
    client.cancel()
    assert client.last("response.done")["response"]["status"] == "cancelled"
    assert client.cancelled == [response_id]
    assert client.session.counted(response_id, 100, client.now) == []
    assert client.session.count_failed(response_id, None, client.now) == []


def test_disabled_truncation_refuses_and_changes_nothing(connect):
    client = connect(told, text=True, window=WINDOW, count=cost, session={"truncation": "disabled"})
    ask(client, 5)
    assert generations(client) == 5
    ask(client, 1, first=5)
    refusals = client.of("error") + [e for e in client.of("response.done") if e["response"]["status"] == "failed"]
    assert len(refusals) == 1
    assert "context_length_exceeded" in str(refusals[0])
    for item_id in client.items[:4]:
        client.delete(item_id)
    client.create()
    assert client.last("response.done")["response"]["status"] == "completed"


def test_retention_ratio_keeps_its_share_after_the_instructions(connect):
    truncation = {"type": "retention_ratio", "retention_ratio": 0.5, "token_limits": {"post_instructions": 200}}
    client = connect(told, text=True, window=10_000, count=cost, session={"truncation": truncation})
    ask(client, 20)
    sizes = [len(turn.messages) for turn in client.turns]
    assert max(sizes) * TURN_TOKENS <= 200
    cut = [after for before, after in pairwise(sizes) if after < before]
    assert cut
    assert max(cut) * TURN_TOKENS <= 100


def test_too_many_audio_parts_count_as_not_fitting(connect):
    client = connect(told, text=True, window=100_000, count=cost, manual=True, capabilities={"audio_parts": 4})
    for _ in range(10):
        client.speak(0.2)
        client.commit()
        client.create()
    heard = [sum(isinstance(part, AudioPart) for message in turn.messages for part in message.content) for turn in client.turns]
    assert heard == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]


def test_a_spoken_turn_that_cannot_fit_fails_and_says_so(connect):
    capabilities = {"audio_tokens_per_second": 1000.0}
    client = connect(told, text=True, window=WINDOW, count=lambda turn: 5000, capabilities=capabilities)
    client.speak(1.0, 1.0)
    done = client.last("response.done")["response"]
    assert done["status"] == "failed"
    assert done["status_details"]["error"]["code"] == "context_length_exceeded"
    assert not client.of("error")


def test_a_count_that_fails_fails_the_response(connect):
    def broken(turn):
        raise EngineError("This audio cannot be read.", code="invalid_prompt")

    client = connect(told, text=True, window=WINDOW, count=broken)
    client.say("x" * 2000)
    client.create()
    assert client.last("response.done")["response"]["status_details"]["error"]["code"] == "invalid_prompt"


def test_a_truncated_answer_no_longer_saves_what_it_cost(connect):
    def speak(request) -> list:
        usage = Usage(input_text_tokens=BASE_TOKENS + TURN_TOKENS * (len(request.prompt.messages) - 1), output_text_tokens=6)
        return [ChatDelta(text="a b c d e f", audio=np.zeros(24000, np.float32), rate=24000), ChatDelta(finish_reason="stop", usage=usage)]

    client = connect(speak, manual=True, window=WINDOW, count=cost)
    ask(client, 3)
    known, answer = client.session._responses.context._ledger, client.items[1]
    (group,) = [group for group in known._groups if answer in group.most]
    assert group.least > 0
    assert client.truncate(answer, 500)[0]["type"] == "conversation.item.truncated"
    (group,) = [group for group in known._groups if answer in group.most]
    assert group.least == 0
    ask(client, 20, first=3)
    assert max(cost(turn) for turn in client.turns) <= LIMIT


# Replacing a response


def replacing(connect, *scripts, **options):
    return connect(*scripts, text=True, window=WINDOW, on_active_response="replace", autoplay=False, **options)


def test_replace_cancels_the_running_response_and_answers_from_what_it_left(connect):
    client = replacing(connect, text_reply("one", "two"), told, count=cost)
    client.say("first")
    client.create()
    client.play(1)
    client.say("second")
    heard = client.create(metadata={"n": "2"})
    kinds = [event["type"] for event in heard]
    assert kinds[-2:] == ["response.done", "response.created"]
    assert heard[-2]["response"]["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert heard[-1]["response"]["metadata"] == {"n": "2"}
    assert said(client.turns[-1] if len(client.turns) > 1 else client.effects[-1].turn) == ["first", "one", "second"]
    client.play()
    assert client.last("response.done")["response"]["status"] == "completed"


@pytest.mark.parametrize("failure", ["too long", "engine"])
def test_replace_leaves_the_running_response_alone_if_the_new_one_cannot_be_served(connect, failure):
    def count(turn: Turn) -> int:
        if failure == "engine":
            raise EngineError("This audio cannot be read.", code="invalid_prompt")
        return 5000

    client = replacing(connect, text_reply("one", "two"), count=count, session={"truncation": "disabled"})
    client.say("first")
    client.create()
    client.play(1)
    refused = client.send({"type": "response.create", "event_id": "mine"})
    assert [event["type"] for event in refused] == ["error"]
    assert refused[0]["error"]["event_id"] == "mine"
    assert refused[0]["error"]["code"] == ("invalid_prompt" if failure == "engine" else "context_length_exceeded")
    assert not client.cancelled
    client.play()
    assert client.last("response.done")["response"]["status"] == "completed"


def test_replace_checks_one_at_a_time_and_starts_at_once_when_the_old_one_has_ended(connect):
    client = replacing(connect, text_reply("one"), told)
    client._carry_out, carry_out = lambda effect: [] if isinstance(effect, Count) else carry_out(effect), client._carry_out
    client.say("first")
    client.create()
    assert client.create() == []
    assert client.create()[0]["error"]["code"] == "conversation_already_has_active_response"
    client.play()
    (count_id,) = client.session._responses._replacements
    client.take(client.session.counted(count_id, 100, client.now))
    assert len(client.of("response.created")) == 2
    client.play()
    assert not client.cancelled


@pytest.mark.parametrize("spoken_at", ["before the request", "while it is checked"])
def test_replace_refuses_another_voice_before_it_cancels_anything(connect, spoken_at):
    speech = [ChatDelta(text="Hi", audio=np.zeros(2400, np.float32), rate=24000)] * 2
    client = connect([*speech, ChatDelta(finish_reason="stop")], manual=True, window=WINDOW, on_active_response="replace", autoplay=False)
    client._carry_out, carry_out = lambda effect: [] if isinstance(effect, Count) else carry_out(effect), client._carry_out
    client.create()
    if spoken_at == "before the request":
        client.play(1)
    refused = client.send({"type": "response.create", "event_id": "mine", "response": {"audio": {"output": {"voice": "bert"}}}})
    if spoken_at != "before the request":
        assert refused == []
        client.play(1)
        (count_id,) = client.session._responses._replacements
        refused = client.take(client.session.counted(count_id, 100, client.now))
    assert [(event["error"]["code"], event["error"]["event_id"]) for event in refused] == [("cannot_update_voice", "mine")]
    assert not client.cancelled
    client.play()
    assert client.last("response.done")["response"]["status"] == "completed"


@pytest.mark.parametrize("ends_first", [False, True])
def test_a_cancel_stops_the_response_that_is_to_replace_another_too(connect, ends_first):
    client = replacing(connect, text_reply("one"))
    client._carry_out, carry_out = lambda effect: [] if isinstance(effect, Count) else carry_out(effect), client._carry_out
    client.create()
    client.create()
    if ends_first:
        client.play()
    heard = client.cancel()
    assert [event["type"] for event in heard if event["type"] == "error"] == []
    (count_id,) = client.session._responses._replacements
    heard = client.take(client.session.counted(count_id, 100, client.now))
    assert [event["type"] for event in heard] == ["response.created", "response.done"]
    details = heard[1]["response"]["status_details"]
    assert details == {"type": "cancelled", "reason": "client_cancelled"}
    assert client.cancel()[0]["error"]["code"] == "response_cancel_not_active"
    client.create()
    assert client.last("response.done")["response"]["status"] == "cancelled"
    client.play()
    assert client.last("response.done")["response"]["status"] == "completed"


def test_replace_refuses_an_item_that_was_deleted_meanwhile_and_cancels_nothing(connect):
    client = replacing(connect, text_reply("one"))
    client._carry_out, carry_out = lambda effect: [] if isinstance(effect, Count) else carry_out(effect), client._carry_out
    client.say("first", item_id="mine")
    client.create()
    client.create(input=[{"type": "item_reference", "id": "mine"}])
    client.delete("mine")
    (count_id,) = client.session._responses._replacements
    refused = client.take(client.session.counted(count_id, 100, client.now))
    assert [event["type"] for event in refused] == ["error"]
    assert not client.cancelled


def letters(prompt) -> int:
    """What a prompt costs where a letter is a token."""
    return sum(len(part.text) for message in prompt.messages for part in message.content)


def spelt(request) -> list:
    """A reply that tells what its prompt cost in letters."""
    return text_reply("ok", usage=Usage(input_text_tokens=letters(request.prompt), output_text_tokens=1))


def test_an_item_under_the_id_of_one_that_left_the_context_is_seen(connect):
    client = connect(spelt, text=True, window=4096, count=letters)
    for item_id in "ab":
        client.say(item_id * 2000, item_id=item_id)
        client.create()
    assert said(client.turns[1]) == ["b" * 2000]
    client.delete("a")
    client.say("again", item_id="a")
    client.create()
    assert said(client.turns[2])[-1] == "again"


@pytest.mark.parametrize("while_it_runs", [False, True])
def test_an_item_under_the_id_of_another_is_not_taken_to_cost_what_that_one_did(connect, while_it_runs):
    client = connect(spelt, text=True, window=4096, count=letters, autoplay=False)
    client.say("old")
    client.say("short", item_id="again")
    client.create()
    if not while_it_runs:
        client.play()
    client.delete("again")
    client.say("x" * 3000, item_id="again")
    while client.waiting:
        client.play()
    client.say("y" * 900)
    client.create()
    assert said(client.turns[1]) == ["y" * 900]


@pytest.mark.parametrize(("asked", "status"), [("inf", "completed"), (600, "completed"), (4096, "completed"), (512, "failed")])
def test_to_ask_for_more_than_the_longest_answer_leaves_the_prompt_the_room_that_inf_leaves(connect, asked, status):
    session = {"truncation": "disabled", "max_output_tokens": asked}
    client = connect(spelt, text=True, window=1024, session=session, capabilities={"max_output_tokens": 512}, count=lambda _: 700)
    client.say("x" * 600)
    client.create()
    assert client.last("response.done")["response"]["status"] == status


def test_the_api_refuses_unless_the_deployment_says_replace(connect):
    client = connect(text_reply("one"), text=True, window=WINDOW, autoplay=False)
    client.say("first")
    client.create()
    assert client.create()[0]["error"]["code"] == "conversation_already_has_active_response"


def test_another_voice_is_refused_for_one_response_too_once_the_model_has_spoken(connect):
    spoken = [ChatDelta(text="Hi", audio=np.zeros(2400, np.float32), rate=24000), ChatDelta(finish_reason="stop")]
    client = connect(spoken, manual=True)
    client.create(audio={"output": {"voice": "bert"}})
    refused = client.create(audio={"output": {"voice": "bert"}})
    assert refused[0]["error"]["code"] == "cannot_update_voice"
    assert client.create(audio={"output": {"voice": "anna"}})[0]["type"] == "response.created"
