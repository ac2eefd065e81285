"""The deployment's rate limits: told at the start of each response, and held."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.chat import Usage
from omni_realtime.protocol.server_events import RateLimit
from omni_realtime.session import RateLimiter
from omni_realtime.testing import spoken_reply, text_reply, tone

CHEAP = Usage(input_text_tokens=20, output_text_tokens=10)


def limits(client: Any) -> list[tuple[Any, ...]]:
    """What the last ``rate_limits.updated`` says."""
    return [tuple(limit.values()) for limit in client.last("rate_limits.updated")["rate_limits"]]


def test_a_bucket_refills_evenly_and_never_beyond_its_limit() -> None:
    limiter = RateLimiter(requests_per_minute=60)
    for _ in range(60):
        assert limiter.refusal(100.0) is None
        limiter.start(100.0)
    assert limiter.told(100.0) == (RateLimit(name="requests", limit=60, remaining=0, reset_seconds=60.0),)
    assert limiter.refusal(100.0) == "Rate limit reached for requests per minute: limit 60. Please try again in 1 s."
    assert limiter.refusal(100.75) == "Rate limit reached for requests per minute: limit 60. Please try again in 0.3 s."
    assert limiter.refusal(101.0) is None
    assert limiter.told(110.5)[0] == RateLimit(name="requests", limit=60, remaining=10, reset_seconds=49.5)
    assert limiter.told(9999.0)[0] == RateLimit(name="requests", limit=60, remaining=60, reset_seconds=0.0)


def test_tokens_beyond_the_limit_are_a_debt() -> None:
    limiter = RateLimiter(tokens_per_minute=600)
    limiter.start(0.0)
    limiter.spend(1200, 0.0)
    assert limiter.told(0.0) == (RateLimit(name="tokens", limit=600, remaining=0, reset_seconds=120.0),)
    assert limiter.refusal(0.0) == "Rate limit reached for tokens per minute: limit 600. Please try again in 60.1 s."
    assert limiter.refusal(60.0)
    assert limiter.refusal(60.1) is None


def test_the_longer_wait_is_told() -> None:
    limiter = RateLimiter(requests_per_minute=1, tokens_per_minute=60)
    limiter.start(0.0)
    limiter.spend(69, 0.0)
    assert limiter.refusal(0.0) == "Rate limit reached for requests per minute: limit 1. Please try again in 60 s."
    limiter.spend(60, 0.0)
    assert limiter.refusal(0.0) == "Rate limit reached for tokens per minute: limit 60. Please try again in 70 s."


def test_without_limits_nothing_is_refused() -> None:
    limiter = RateLimiter()
    limiter.start(0.0)
    limiter.spend(10**9, 0.0)
    assert (limiter.refusal(0.0), limiter.told(0.0)) == (None, ())


@given(st.lists(st.tuples(st.floats(-5, 70), st.integers(0, 2000)), max_size=30))
def test_whatever_the_clock_does_the_limits_stay_in_their_bounds(steps: list[tuple[float, int]]) -> None:
    limiter, now = RateLimiter(requests_per_minute=7, tokens_per_minute=900), 0.0
    for seconds, tokens in steps:
        now += seconds
        if limiter.refusal(now) is None:
            limiter.start(now)
        limiter.spend(tokens, now)
        for told in limiter.told(now):
            assert 0 <= told.remaining <= told.limit
            assert told.reset_seconds >= 0


def test_a_response_tells_the_limits_once_after_it_is_created(connect: Any, types: Any) -> None:
    client = connect(text_reply("Hi", usage=CHEAP), text=True, rate_limiter=RateLimiter(requests_per_minute=10, tokens_per_minute=600))
    assert types(client.create())[:3] == ["response.created", "rate_limits.updated", "response.output_item.added"]
    assert limits(client) == [("requests", 10, 9, 6.0), ("tokens", 600, 600, 0.0)]
    client.create()
    assert limits(client) == [("requests", 10, 8, 12.0), ("tokens", 600, 570, 3.0)]
    assert len(client.of("rate_limits.updated")) == 2


def test_without_limits_nothing_is_told(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    client.create()
    assert client.of("rate_limits.updated") == []


def test_beyond_the_limit_a_response_fails(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True, rate_limiter=RateLimiter(requests_per_minute=2))
    for _ in range(2):
        assert client.create()[-1]["response"]["status"] == "completed"
    told = client.create(metadata={"topic": "x"})
    assert [event["type"] for event in told] == ["response.created", "rate_limits.updated", "response.done"]
    done = told[-1]["response"]
    assert (done["status"], done["output"], done["metadata"], done["usage"]["total_tokens"]) == ("failed", [], {"topic": "x"}, 0)
    assert done["status_details"] == {
        "type": "failed",
        "error": {
            "type": "rate_limit_exceeded",
            "code": "rate_limit_exceeded",
            "message": "Rate limit reached for requests per minute: limit 2. Please try again in 30 s.",
        },
    }
    assert len(client.turns) == 2
    client.advance(30.0)
    assert client.create()[-1]["response"]["status"] == "completed"


def test_tokens_are_those_of_the_usage_and_block_once_they_are_spent(connect: Any) -> None:
    usage = Usage(input_text_tokens=500, input_audio_tokens=200, cached_text_tokens=100, output_text_tokens=100, output_audio_tokens=400)
    client = connect(text_reply("Hi", usage=usage), text=True, rate_limiter=RateLimiter(tokens_per_minute=600))
    client.create()
    failed = client.create()[-1]["response"]["status_details"]["error"]["message"]
    assert failed == "Rate limit reached for tokens per minute: limit 600. Please try again in 60.1 s."
    client.advance(60.1)
    assert client.create()[-1]["response"]["status"] == "completed"


def test_all_sessions_of_a_deployment_share_the_limits(connect: Any) -> None:
    limiter = RateLimiter(requests_per_minute=2)
    one, other = (connect(text_reply("Hi"), text=True, rate_limiter=limiter) for _ in range(2))
    assert [client.create()[-1]["response"]["status"] for client in (one, other, one)] == ["completed", "completed", "failed"]


def test_out_of_band_responses_count_and_turns_too(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True, rate_limiter=RateLimiter(requests_per_minute=2))
    client.create(conversation="none")
    client.speak(0.5, 1.0)
    assert client.last("response.done")["response"]["status"] == "completed"
    client.speak(0.5, 1.0)
    assert client.last("response.done")["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded"
    assert client.create(conversation="none")[-1]["response"]["status"] == "failed"


def test_what_is_refused_costs_nothing(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True, autoplay=False, rate_limiter=RateLimiter(requests_per_minute=2))
    client.create()
    assert client.create()[0]["error"]["code"] == "conversation_already_has_active_response"
    assert client.create(max_output_tokens=0)[0]["type"] == "error"
    client.play()
    client.create()
    assert limits(client)[0][:3] == ("requests", 2, 0)


def test_a_response_beyond_the_limit_replaces_nothing(connect: Any) -> None:
    client = connect(
        spoken_reply("one", tone(1.0)), autoplay=False, on_active_response="replace", rate_limiter=RateLimiter(requests_per_minute=1)
    )
    running = client.create()[0]["response"]["id"]
    (error,) = client.create()
    assert (error["error"]["code"], error["error"]["type"]) == ("rate_limit_exceeded", "rate_limit_exceeded")
    assert client.session.active_responses == (running,)
    assert client.play()[-1]["response"]["status"] == "completed"


def test_a_limit_that_is_reached_while_a_replacement_is_counted_keeps_the_running_response(connect: Any) -> None:
    limiter = RateLimiter(requests_per_minute=2)
    client = connect(
        spoken_reply("one", tone(1.0)),
        autoplay=False,
        on_active_response="replace",
        rate_limiter=limiter,
        count=lambda _: limiter.start(1000.0) or 0,
    )
    running = client.create()[0]["response"]["id"]
    (error,) = client.send({"type": "response.create", "event_id": "mine"})
    assert (error["error"]["code"], error["error"]["event_id"]) == ("rate_limit_exceeded", "mine")
    assert client.session.active_responses == (running,)


def test_a_response_that_is_cancelled_costs_what_its_usage_says(connect: Any) -> None:
    client = connect(spoken_reply("one two", tone(0.5)), autoplay=False, rate_limiter=RateLimiter(tokens_per_minute=600))
    client.create()
    client.play(2)
    assert client.cancel()[-1]["response"]["usage"]["total_tokens"] == 0
    client.create()
    assert limits(client)[0][:3] == ("tokens", 600, 600)
