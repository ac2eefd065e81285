"""Sessions of type ``transcription``: they hear, write down, and never answer."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from omni_realtime.engine.port import EngineError, TokenLogprob, Transcript, TranscriptionRequest
from omni_realtime.protocol import Capabilities, ProtocolError
from omni_realtime.session import Generate, Session, SessionSettings, Transcribe
from omni_realtime.testing import text_reply

LOGPROBS = "item.input_audio_transcription.logprobs"
OPENING = {"type": "transcription"}
TRANSCRIPTION = "conversation.item.input_audio_transcription"
COMMITTED = ["input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"]
WRITTEN = [f"{TRANSCRIPTION}.delta", f"{TRANSCRIPTION}.completed"]
SURE = Transcript(text="Hello you.", logprobs=(TokenLogprob(token="Hello", logprob=-0.1), TokenLogprob(token=" you.", logprob=-2.5)))


@pytest.fixture
def hear(connect: Any) -> Any:
    """Opens a transcription session."""

    def hear(opening: dict[str, Any] | None = None, **options: Any) -> Any:
        return connect(text_reply("never said"), opening=OPENING | (opening or {}), **options)

    return hear


def update(client: Any, **session: Any) -> list[dict[str, Any]]:
    return client.send({"type": "session.update", "session": {"type": "transcription", **session}})


def error_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    (event,) = events
    assert event["type"] == "error"
    return event["error"]


def generations(client: Any) -> list[Any]:
    return [effect for effect in client.effects if isinstance(effect, Generate)]


def test_order_of_a_turn_by_the_detector(hear: Any, types: Any) -> None:
    client = hear(transcript="Hi there.")
    told = client.speak(0.0, 0.5, 1.0, 1.0)
    assert types(told) == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", *COMMITTED, *WRITTEN]
    started, stopped, _, added, _, delta, completed = told
    assert added["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    assert {event["item_id"] for event in (started, stopped, delta, completed)} == {added["item"]["id"]}
    assert (delta["delta"], completed["transcript"], delta["content_index"], completed["content_index"]) == ("Hi there.", "Hi there.", 0, 0)
    seconds = (stopped["audio_end_ms"] - started["audio_start_ms"]) / 1000
    assert completed["usage"] == {"type": "duration", "seconds": pytest.approx(seconds, abs=0.001)}
    assert not client.of("response.created")


def test_many_turns_follow_each_other_and_none_is_answered(hear: Any) -> None:
    client = hear(transcript=lambda request: request.key)
    client.speak(0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    completed = client.of(f"{TRANSCRIPTION}.completed")
    assert len({event["transcript"] for event in completed}) == 3
    assert [event["item_id"] for event in completed] == client.items
    assert not client.turns
    assert client.session.deadline == client.now + 3600


def test_order_of_a_manual_turn(hear: Any, types: Any) -> None:
    client = hear({"audio": {"input": {"turn_detection": None}}})
    client.speak(0.5)
    assert types(client.commit()) == [*COMMITTED, *WRITTEN]
    assert error_of(client.commit())["code"] == "input_audio_buffer_commit_empty"


def test_session_created_and_updated_carry_the_transcription_session(hear: Any) -> None:
    client = hear({"include": None})
    created = client.events[0]["session"]
    (updated,) = update(client, audio={"input": {"transcription": {"language": "en", "prompt": "Names."}}})
    assert updated["type"] == "session.updated"
    assert created["object"] == updated["session"]["object"] == "realtime.transcription_session"
    assert updated["session"]["audio"]["input"]["transcription"] == {"model": "ears", "language": "en", "prompt": "Names."}
    assert set(created) == {"type", "object", "id", "expires_at", "include", "audio"}
    assert set(created["audio"]) == {"input"}


def test_language_and_prompt_reach_the_transcriber(hear: Any) -> None:
    heard: list[TranscriptionRequest] = []
    client = hear(
        {"audio": {"input": {"transcription": {"model": "whisper-1", "language": "en", "prompt": "Names."}}}},
        transcript=lambda request: heard.append(request) or "Hi.",
    )
    client.speak(0.5, 1.0)
    (request,) = heard
    assert (request.language, request.prompt, request.rate, request.logprobs) == ("en", "Names.", 16000, False)


def test_one_of_possible_languages_is_the_language(hear: Any) -> None:
    heard: list[TranscriptionRequest] = []
    transcription = {"model": "gpt-transcribe", "languages": ["de"], "keywords": []}
    client = hear({"audio": {"input": {"transcription": transcription}}}, transcript=lambda request: heard.append(request) or "Hi.")
    client.speak(0.5, 1.0)
    assert [request.language for request in heard] == ["de"]


def test_silence_is_completed_without_a_delta(hear: Any, types: Any) -> None:
    client = hear({"audio": {"input": {"turn_detection": None}}}, transcript="")
    client.speak(0.0, 0.5)
    assert types(client.commit()) == [*COMMITTED, f"{TRANSCRIPTION}.completed"]
    assert client.last(f"{TRANSCRIPTION}.completed")["transcript"] == ""


def test_a_failed_transcription_is_told_and_the_next_turn_works(hear: Any) -> None:
    answers = iter([EngineError("deaf", code="audio_unintelligible"), "Hi."])

    def transcript(_: TranscriptionRequest) -> str:
        answer = next(answers)
        if isinstance(answer, EngineError):
            raise answer
        return answer

    client = hear(transcript=transcript)
    client.speak(0.5, 1.0, 0.5, 1.0)
    assert client.last(f"{TRANSCRIPTION}.failed")["error"]["code"] == "audio_unintelligible"
    assert client.last(f"{TRANSCRIPTION}.completed")["transcript"] == "Hi."


def test_transcription_turned_off_leaves_the_turns(hear: Any, types: Any) -> None:
    client = hear()
    update(client, audio={"input": {"transcription": None}})
    told = client.speak(0.5, 1.0)
    assert types(told) == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", *COMMITTED]
    assert not [effect for effect in client.effects if isinstance(effect, Transcribe)]


@pytest.mark.parametrize(
    ("event", "code", "named"),
    [
        ({"type": "response.create"}, "invalid_value", "'response.create'"),
        ({"type": "response.create", "response": {"conversation": "none"}}, "invalid_value", "'response.create'"),
        (
            {
                "type": "conversation.item.create",
                "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            },
            "invalid_value",
            "'conversation.item.create'",
        ),
        ({"type": "response.cancel"}, "response_cancel_not_active", "Cancellation failed"),
        (
            {"type": "conversation.item.truncate", "item_id": "USER", "content_index": 0, "audio_end_ms": 0},
            "unsupported_content_type",
            "output audio",
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_what_needs_a_model_is_refused_by_name_and_changes_nothing(hear: Any, event: dict[str, Any], code: str, named: str) -> None:
    client = hear()
    client.speak(0.5, 1.0)
    (item_id,) = client.items
    error = error_of(client.send({**event, "event_id": "mine", **({"item_id": item_id} if event.get("item_id") else {})}))
    assert (error["code"], error["event_id"]) == (code, "mine")
    assert named in error["message"]
    assert error["param"] == ("type" if code == "invalid_value" else error["param"])
    assert (client.items, generations(client)) == ([item_id], [])
    client.speak(0.5, 1.0)
    assert len(client.of(f"{TRANSCRIPTION}.completed")) == 2


def test_items_are_retrieved_with_their_audio_and_deleted(hear: Any) -> None:
    client = hear(transcript="Hi.")
    client.speak(0.5, 1.0)
    (item_id,) = client.items
    (part,) = client.retrieve(item_id)[0]["item"]["content"]
    assert part["transcript"] == "Hi."
    assert len(base64.b64decode(part["audio"])) > 20_000
    assert client.delete(item_id)[0]["type"] == "conversation.item.deleted"


def test_g711_is_heard(hear: Any) -> None:
    client = hear({"audio": {"input": {"format": {"type": "audio/pcmu"}, "turn_detection": None}}})
    client.append(b"\xff\x00" * 4000, size=160)
    client.commit()
    assert client.last(f"{TRANSCRIPTION}.completed")["usage"]["seconds"] == pytest.approx(1.0, abs=0.01)


def test_the_type_of_a_session_stays(hear: Any, connect: Any) -> None:
    transcribing, talking = hear(), connect(text_reply("Hi"))
    for client, kind in ((transcribing, "realtime"), (talking, "transcription")):
        before = client.events[0]["session"]
        error = error_of(client.send({"type": "session.update", "session": {"type": kind, "audio": {"input": {"turn_detection": None}}}}))
        assert (error["code"], error["param"]) == ("invalid_value", "session.type")
        assert "intent" in error["message"]
        (updated,) = client.send({"type": "session.update", "session": {"type": before["type"]}})
        assert updated["session"] == before


def test_an_opening_that_cannot_be_served_is_raised_to_the_host() -> None:
    settings = SessionSettings(model="mute", capabilities=Capabilities())
    with pytest.raises(ProtocolError) as refused:
        Session(settings, token="0", now=0, epoch_now=0, opening=OPENING)
    assert refused.value.param == "session.type"


def test_null_brings_back_the_deployments_default_and_not_the_openings(connect: Any) -> None:
    client = connect(text_reply("Hi"), session={"instructions": "Be the default."}, opening={"instructions": "Be mine."})
    assert client.events[0]["session"]["instructions"] == "Be mine."
    assert client.update(instructions=None)[0]["session"]["instructions"] == "Be the default."


@pytest.mark.parametrize(
    "opening", [OPENING, {"type": "realtime", "audio": {"input": {"transcription": {}}}}], ids=lambda each: each["type"]
)
def test_include_adds_log_probabilities(connect: Any, opening: dict[str, Any]) -> None:
    heard: list[TranscriptionRequest] = []

    def transcript(request: TranscriptionRequest) -> Transcript:
        heard.append(request)
        return SURE

    options: dict[str, Any] = {"capabilities": {"transcription_logprobs": True}, "transcript": transcript}
    client = connect(text_reply("Hi."), opening=opening | {"include": [LOGPROBS]}, **options)
    client.speak(0.5, 1.0)
    for kind in WRITTEN:
        assert client.last(kind)["logprobs"] == [
            {"token": "Hello", "bytes": list(b"Hello"), "logprob": -0.1},
            {"token": " you.", "bytes": list(b" you."), "logprob": -2.5},
        ]
    client.send({"type": "session.update", "session": {"type": opening["type"], "include": []}})
    client.speak(0.5, 1.0)
    assert [request.logprobs for request in heard] == [True, False]
    for kind in WRITTEN:
        assert len(client.of(kind)) == 2
        assert "logprobs" not in client.last(kind)


def test_include_is_refused_where_the_transcriber_has_no_log_probabilities(hear: Any) -> None:
    client = hear(transcript="Hi.")
    assert error_of(update(client, include=[LOGPROBS]))["param"] == "session.include"
    for neutral in (None, []):
        (updated,) = update(client, include=neutral)
        assert updated["session"]["include"] == neutral
