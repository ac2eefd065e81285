"""What the clock brings: idle users, the session's end, the host's end."""

from __future__ import annotations

from typing import Any

import pytest

from omni_realtime.testing import spoken_reply, text_reply, tone

HELLO = spoken_reply("Hello", tone(2.0))
IDLE = {"idle_timeout_ms": 5000}


def test_the_user_is_idle_from_the_end_of_playback_on(connect: Any) -> None:
    client = connect(HELLO)
    client.update_input(turn_detection=IDLE)
    assert client.session.deadline == client.now + 3600, "nothing has been said yet"
    client.create()
    assert client.session.deadline == pytest.approx(client.now + 2.0 + 5.0)
    assert client.session.tick(client.now + 6.9) == []


def test_an_idle_user_is_answered_again_and_again(connect: Any) -> None:
    client = connect(HELLO)
    client.update_input(turn_detection=IDLE)
    client.create()
    client.advance(7.1 * 3)
    assert len(client.of("input_audio_buffer.timeout_triggered")) == 3
    assert len(client.items) == 1 + 3 * 2


@pytest.mark.parametrize("what", ["speech", "commit", "off", "null", "response"])
def test_an_idle_timeout_does_not_come(connect: Any, what: str) -> None:
    client = connect(HELLO, text_reply("Hi"), autoplay=False)
    client.update_input(turn_detection=IDLE)
    client.create()
    client.play()
    if what == "speech":
        client.speak(0.5)
    elif what == "commit":
        client.speak(0.0, 0.5)
        client.commit()
    elif what == "off":
        client.update_input(turn_detection=None)
    elif what == "null":
        client.update_input(turn_detection={"idle_timeout_ms": None})
    else:
        client.create()
    client.advance(60)
    assert client.of("input_audio_buffer.timeout_triggered") == []


def test_the_audio_of_an_idle_turn_is_the_silence(connect: Any) -> None:
    client = connect(text_reply("Hi"), text=True)
    client.update_input(turn_detection=IDLE)
    client.create()
    client.speak(0.0, 9.0)
    client.advance(5.1)
    timeout = client.last("input_audio_buffer.timeout_triggered")
    assert (timeout["audio_start_ms"], timeout["audio_end_ms"]) == (4000, 9000)
    (part,) = client.turns[-1].messages[-1].content
    assert len(part.samples) == 5 * 16000


def test_an_idle_turn_amid_odd_bytes_does_not_shift_the_stream(connect: Any) -> None:
    client = connect(text_reply("Hi"), input_rate=24000, detector=(24000, 480))
    client.update_input(turn_detection=IDLE)
    client.create()
    audio = bytes(2402) + (tone(0.5) * 32767).astype("<i2").tobytes() + bytes(48000)
    client.append(audio[:2401])
    client.advance(5.1)
    client.append(audio[2401:])
    samples = client.session._conversation.get(client.items[-2]).audio[0].samples
    assert 0.29 < abs(samples).max() < 0.31, "shifted by a byte, it would be noise"


@pytest.mark.parametrize(
    ("create", "interrupt", "answered"), [(True, True, True), (True, False, True), (False, True, True), (False, False, False)]
)
def test_an_idle_user_is_answered_unless_nothing_answers_by_itself(connect: Any, create: bool, interrupt: bool, answered: bool) -> None:
    client = connect(HELLO)
    client.update_input(turn_detection=IDLE | {"create_response": create, "interrupt_response": interrupt})
    client.create()
    kinds = [event["type"] for event in client.advance(7.1)]
    assert kinds[:4] == [
        "input_audio_buffer.timeout_triggered",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert ("response.created" in kinds) == answered
    assert bool(client.advance(60)) == answered


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(1, "1 second"), (6, "6 seconds"), (60, "1 minute"), (90, "90 seconds"), (120, "2 minutes"), (3600, "60 minutes")],
)
def test_the_end_of_a_session_is_told_in_whole_units(connect: Any, seconds: int, told: str) -> None:
    client = connect(HELLO, limits={"duration_s": seconds})
    (error,) = client.advance(seconds)
    assert error["error"]["message"] == f"Your session hit the maximum duration of {told}."
    assert client.closed.reason == error["error"]["message"]


@pytest.mark.parametrize("running", [False, True])
def test_a_session_ends_after_its_time(connect: Any, types: Any, running: bool) -> None:
    client = connect(HELLO, limits={"duration_s": 1800}, autoplay=False)
    assert client.events[0]["session"]["expires_at"] == 1_750_000_000 + 1800
    if running:
        client.create()
        client.create(conversation="none")
    assert client.advance(1799.9) == []
    told = client.advance(0.2)
    assert types(told) == ["response.done"] * 2 * running + ["error"]
    assert (told[-1]["error"]["code"], told[-1]["error"]["type"]) == ("session_expired", "invalid_request_error")
    assert told[-1]["error"]["message"] == "Your session hit the maximum duration of 30 minutes."
    assert (client.closed.code, client.session.deadline) == (1000, None)


def test_the_host_stops(connect: Any) -> None:
    client = connect(HELLO, autoplay=False)
    ids = [client.create()[0]["response"]["id"], client.create(conversation="none")[0]["response"]["id"]]
    told = client.take(client.session.shutdown(client.now))
    assert [(event["type"], event["response"]["status"]) for event in told] == [("response.done", "cancelled")] * 2
    assert (client.closed.code, client.cancelled) == (1001, ids)


def test_after_the_close_nothing_has_an_effect(connect: Any) -> None:
    client = connect(HELLO, session={"audio": {"input": {"transcription": {"model": "ears"}}}})
    client.speak(0.5, 1.0)
    client.take(client.session.shutdown(client.now))
    user = client.items[0]
    session, now = client.session, client.now
    assert client.send({"type": "response.create"}) == []
    assert client.send("nonsense") == []
    assert session.speech_scored(session._intake._epoch, [1.0, 0.0], now) == []
    assert session.transcribed(user, "late", now) == session.transcription_failed(user, "x", "y", now) == []
    assert session.tick(now + 10_000) == session.shutdown(now) == []
