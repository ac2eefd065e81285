"""What each field of the API means: its default, its effect and its limit, one test for each."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from omni_realtime.chat import ChatDelta, Usage
from omni_realtime.engine.port import EngineError, TokenLogprob, Transcript
from omni_realtime.protocol.prompt_template import PromptTemplate
from omni_realtime.session.rate_limits import RateLimiter
from omni_realtime.testing import call_reply, spoken_reply, text_reply, tone

HELLO = spoken_reply("Hello there", tone(1.0))
TEXT = text_reply("Hello")
LOOK = {"type": "function", "name": "look"}


def session_of(client: Any) -> dict[str, Any]:
    """The effective session, as the server last told it."""
    updated: dict[str, Any] = client.update()[0]["session"]
    return updated


def error_of(told: list[dict[str, Any]]) -> dict[str, Any]:
    (event,) = told
    assert event["type"] == "error"
    error: dict[str, Any] = event["error"]
    return error


def test_session_type(connect: Any) -> None:
    client = connect(TEXT)
    assert session_of(client)["type"] == "realtime"
    missing = error_of(client.send({"type": "session.update", "session": {}}))
    assert (missing["code"], missing["param"]) == ("missing_required_parameter", "session.type")
    assert missing["message"] == "Missing required parameter: 'session.type'."
    switched = error_of(client.send({"type": "session.update", "session": {"type": "transcription"}}))
    assert switched["param"] == "session.type"


def test_session_id_object_expires_at(connect: Any) -> None:
    client = connect(TEXT)
    session = session_of(client)
    assert session["id"].startswith("sess_")
    assert session["object"] == "realtime.session"
    assert session["expires_at"] == 1_750_000_000 + 3600
    client.advance(3600)
    assert client.last("error")["error"]["code"] == "session_expired"
    assert client.last("error")["error"]["message"] == "Your session hit the maximum duration of 60 minutes."
    assert client.closed is not None


def test_model(connect: Any) -> None:
    client = connect(TEXT)
    assert client.update(model="scripted")[0]["session"]["model"] == "scripted"
    assert client.update(model="gpt-realtime")[0]["session"]["model"] == "scripted"
    assert error_of(client.update(model="another"))["param"] == "session.model"


def test_output_modalities(connect: Any, types: Any) -> None:
    client = connect(HELLO, TEXT)
    assert session_of(client)["output_modalities"] == ["audio"]
    assert {"response.output_audio.delta", "response.output_audio_transcript.delta"} <= set(types(client.create()))
    client.update(output_modalities=["text"])
    told = set(types(client.create()))
    assert "response.output_text.delta" in told
    assert "response.output_audio.delta" not in told
    assert error_of(client.update(output_modalities=["text", "audio"]))["param"] == "session.output_modalities"


def test_instructions(connect: Any) -> None:
    client = connect(TEXT)
    assert client.events[0]["session"]["instructions"] == "Be kind."
    client.update(instructions="Be brief.")
    client.create()
    client.update(instructions="")
    client.create()
    assert [turn.instructions for turn in client.turns] == ["Be brief.", ""]


@pytest.mark.parametrize(("value", "served"), [(1, True), (4096, True), ("inf", True), (0, False), (-1, False), ("1", False), (1.5, False)])
def test_max_output_tokens(connect: Any, value: object, served: bool) -> None:
    client = connect(TEXT)
    assert session_of(client)["max_output_tokens"] == "inf"
    told = client.update(max_output_tokens=value)
    if not served:
        assert error_of(told)["param"] == "session.max_output_tokens"
        return
    assert told[0]["session"]["max_output_tokens"] == value
    client.create()
    assert client.turns[0].max_output_tokens == (None if value == "inf" else value)


def test_max_output_tokens_beyond_what_the_model_gives(connect: Any) -> None:
    client = connect(TEXT, capabilities={"max_output_tokens": 100})
    assert client.update(max_output_tokens=4096)[0]["session"]["max_output_tokens"] == 4096
    assert client.create()[-1]["response"]["max_output_tokens"] == 4096
    assert client.turns[0].max_output_tokens == 100


def test_tools_and_tool_choice(connect: Any) -> None:
    client = connect(TEXT)
    assert (session_of(client)["tools"], session_of(client)["tool_choice"]) == ([], "auto")
    client.update(tools=[LOOK], tool_choice={"type": "function", "name": "look"})
    client.create()
    client.update(tool_choice="required")
    client.create()
    client.update(tools=[], tool_choice="none")
    client.create()
    named, required, none = client.turns
    assert ([tool.name for tool in named.tools], named.tool_choice.name) == (["look"], "look")
    assert (required.tool_choice, none.tool_choice, none.tools) == ("required", "none", ())
    assert error_of(client.update(tool_choice={"type": "mcp", "server_label": "x"}))["param"] == "session.tool_choice.type"


def test_parallel_tool_calls_and_reasoning_effort(connect: Any) -> None:
    client = connect(TEXT)
    session = client.update(parallel_tool_calls=False, reasoning={"effort": "low"})[0]["session"]
    assert (session["parallel_tool_calls"], session["reasoning"]) == (False, {"effort": "low"})
    assert client.create(parallel_tool_calls=True, reasoning={"effort": "xhigh"})[-1]["response"]["status"] == "completed"
    assert error_of(client.update(reasoning={"effort": "huge"}))["param"] == "session.reasoning.effort"


def test_tracing(connect: Any) -> None:
    client = connect(TEXT)
    assert session_of(client)["tracing"] is None
    for tracing in ("auto", {"workflow_name": "w", "group_id": "g", "metadata": {"k": 1}}, None):
        assert client.update(tracing=tracing)[0]["session"]["tracing"] == tracing


def test_truncation(connect: Any) -> None:
    ratio = {"type": "retention_ratio", "retention_ratio": 0.5, "token_limits": {"post_instructions": 100}}
    client = connect(TEXT, text=True, window=400, count=lambda turn: 150 * len(turn.messages))
    assert session_of(client)["truncation"] == "auto"
    assert client.update(truncation=ratio)[0]["session"]["truncation"] == ratio
    assert error_of(client.update(truncation={"type": "retention_ratio", "retention_ratio": 1.5}))["param"]
    client.update(truncation="disabled")
    for _ in range(3):
        client.say("x" * 2000)
    done = client.create()[-1]["response"]
    assert (done["status"], done["status_details"]["error"]["code"]) == ("failed", "context_length_exceeded")
    client.update(truncation="auto")
    assert client.create()[-1]["response"]["status"] == "completed"
    assert len(client.turns[-1].messages) == 1


def test_prompt(connect: Any) -> None:
    template = PromptTemplate(id="pmpt_greeting", instructions="Greet {{name}}.")
    client = connect(TEXT, capabilities={"prompts": (template,)})
    assert session_of(client)["prompt"] is None
    prompt = {"id": "pmpt_greeting", "variables": {"name": "Anna"}}
    assert client.update(prompt=prompt)[0]["session"]["prompt"] == prompt
    client.create()
    client.create(prompt=prompt | {"variables": {"name": "Bert"}})
    client.update(prompt=None)
    client.create()
    assert [turn.instructions for turn in client.turns] == ["Greet Anna.", "Greet Bert.", "Be kind."]
    assert error_of(client.update(prompt={"id": "unknown"}))["param"] == "session.prompt.id"


def test_include(connect: Any) -> None:
    logprobs = ["item.input_audio_transcription.logprobs"]
    said = Transcript(text="Hi.", logprobs=(TokenLogprob(token="Hi.", logprob=-0.5),))
    client = connect(TEXT, capabilities={"transcription_logprobs": True}, transcript=lambda _: said)
    client.update_input(transcription={"model": "ears"})
    assert not session_of(client)["include"]
    client.speak(0.5, 1.0)
    assert client.update(include=logprobs)[0]["session"]["include"] == logprobs
    client.speak(0.5, 1.0)
    without, with_them = client.of("conversation.item.input_audio_transcription.completed")
    assert not without.get("logprobs")
    assert with_them["logprobs"] == [{"token": "Hi.", "bytes": [72, 105, 46], "logprob": -0.5}]
    assert error_of(connect(TEXT).update(include=logprobs))["param"] == "session.include"


def test_audio_input_format(connect: Any) -> None:
    client = connect(TEXT)
    assert session_of(client)["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 24000}
    assert error_of(client.update_input(format={"type": "audio/pcm", "rate": 16000}))["param"] == "session.audio.input.format.rate"
    assert error_of(client.update_input(format={"type": "audio/pcmu", "rate": 8000}))["param"] == "session.audio.input.format.rate"
    for law in ("audio/pcmu", "audio/pcma"):
        assert client.update_input(format={"type": law})[0]["session"]["audio"]["input"]["format"] == {"type": law}


def test_audio_input_transcription(connect: Any) -> None:
    heard = []

    def transcribe(request: Any) -> str:
        heard.append((request.language, request.prompt))
        return "Hello."

    client = connect(TEXT, transcript=transcribe)
    assert session_of(client)["audio"]["input"]["transcription"] is None
    client.speak(0.5, 1.0)
    session = client.update_input(transcription={"model": "ears", "language": "de", "prompt": "Names: Anna."})[0]["session"]
    assert session["audio"]["input"]["transcription"] == {"model": "ears", "language": "de", "prompt": "Names: Anna."}
    client.speak(0.5, 1.0)
    assert heard == [("de", "Names: Anna.")]
    for newer in ({"languages": ["de", "en"]}, {"keywords": ["Anna"]}, {"delay": "low"}):
        (name,) = newer
        assert error_of(client.update_input(transcription=newer))["param"] == f"session.audio.input.transcription.{name}"


def test_audio_input_noise_reduction(connect: Any) -> None:
    client = connect(TEXT)
    assert session_of(client)["audio"]["input"]["noise_reduction"] is None
    assert client.update_input(noise_reduction=None)[0]["session"]["audio"]["input"]["noise_reduction"] is None
    assert error_of(client.update_input(noise_reduction={"type": "near_field"}))["param"] == "session.audio.input.noise_reduction"


def test_turn_detection_server_vad(connect: Any) -> None:
    client = connect(TEXT)
    defaults = {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "idle_timeout_ms": None,
        "create_response": True,
        "interrupt_response": True,
    }
    assert session_of(client)["audio"]["input"]["turn_detection"] == defaults
    told = client.update_input(turn_detection={"threshold": 0.7, "silence_duration_ms": 200})
    assert told[0]["session"]["audio"]["input"]["turn_detection"] == defaults | {"threshold": 0.7, "silence_duration_ms": 200}
    assert error_of(client.update_input(turn_detection={"threshold": 1.1}))["param"] == "session.audio.input.turn_detection.threshold"


@pytest.mark.parametrize(("eagerness", "wait"), [("low", 8), ("medium", 4), ("auto", 4), ("high", 2)])
def test_turn_detection_semantic_vad(connect: Any, eagerness: str, wait: int) -> None:
    served = {"turn_detection": ("server_vad", "semantic_vad")}
    client = connect(TEXT, capabilities=served, scorer=(16000, 128_000), completeness=lambda _: 0.0)
    told = client.update_input(turn_detection={"type": "semantic_vad", "eagerness": eagerness})
    turn_detection = told[0]["session"]["audio"]["input"]["turn_detection"]
    expected = {"type": "semantic_vad", "eagerness": eagerness, "create_response": True, "interrupt_response": True}
    assert turn_detection == expected
    client.speak(1.0, wait - 0.1)
    assert not client.of("input_audio_buffer.speech_stopped")
    client.speak(0.0, 0.2)
    assert client.last("input_audio_buffer.speech_stopped")["audio_end_ms"] == pytest.approx(1000 + wait * 1000, abs=64)
    assert len(client.turns) == 1


def test_turn_detection_null(connect: Any, types: Any) -> None:
    client = connect(TEXT)
    assert client.update_input(turn_detection=None)[0]["session"]["audio"]["input"]["turn_detection"] is None
    assert client.speak(0.5, 1.0) == []
    assert types(client.commit()) == ["input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"]
    assert client.turns == []


def test_create_response_false_and_interrupt_response_false(connect: Any, types: Any) -> None:
    client = connect(HELLO, autoplay=False)
    client.update_input(turn_detection={"create_response": False, "interrupt_response": False})
    client.create()
    client.play(2)
    assert types(client.speak(0.5, 1.0)) == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    client.play()
    assert client.last("response.done")["response"]["status"] == "completed"
    assert len(client.turns) == 1


def test_audio_output_voice(connect: Any) -> None:
    client = connect(HELLO)
    assert session_of(client)["audio"]["output"]["voice"] == "anna"
    assert client.update(audio={"output": {"voice": "bert"}})[0]["session"]["audio"]["output"]["voice"] == "bert"
    assert client.update(audio={"output": {"voice": {"id": "anna"}}})[0]["session"]["audio"]["output"]["voice"] == "anna"
    assert error_of(client.update(audio={"output": {"voice": {"id": "carl"}}}))["param"] == "session.audio.output.voice"
    client.create()
    locked = error_of(client.update(audio={"output": {"voice": "bert"}}))
    assert locked["code"] == "cannot_update_voice"
    assert locked["message"] == "Cannot update a conversation's voice if assistant audio is present."


def test_audio_output_speed(connect: Any) -> None:
    client = connect(HELLO)
    assert session_of(client)["audio"]["output"]["speed"] == 1.0
    assert client.update(audio={"output": {"speed": 1}})[0]["session"]["audio"]["output"]["speed"] == 1.0
    for speed in (0.25, 1.5, 2.0):
        assert error_of(client.update(audio={"output": {"speed": speed}}))["param"] == "session.audio.output.speed"


def test_response_create(connect: Any) -> None:
    client = connect(TEXT)
    client.say("Hello.", item_id="before")
    reference, text = {"type": "item_reference", "id": "before"}, {"type": "message", "role": "user", "content": []}
    client.create(instructions="Once.", conversation="none", input=[], metadata={"k": "v"})
    client.create(conversation="none", input=[reference, text | {"content": [{"type": "input_text", "text": "And now?"}]}])
    client.create()
    empty, chosen, default = client.turns
    assert (empty.instructions, empty.messages) == ("Once.", ())
    assert [message.content[0].text for message in chosen.messages] == ["Hello.", "And now?"]
    assert (default.instructions, len(default.messages)) == ("Be kind.", 1)
    created = client.of("response.created")
    assert [event["response"]["metadata"] for event in created] == [{"k": "v"}, None, None]
    assert [event["response"]["conversation_id"] is None for event in created] == [True, True, False]
    assert client.create(metadata={f"k{n}": "" for n in range(16)})[-1]["type"] == "response.done"
    for metadata in ({f"k{n}": "" for n in range(17)}, {"k" * 65: ""}, {"k": "v" * 513}):
        assert error_of(client.create(metadata=metadata))["param"].startswith("response.metadata")


def test_response_status(connect: Any) -> None:
    broken = EngineError("The model is away.", code="server_error")
    scripts = [TEXT, [ChatDelta(finish_reason="length")], [ChatDelta(finish_reason="content_filter")], [broken], HELLO, HELLO]
    client = connect(*scripts, autoplay=False)
    assert client.create()[0]["response"]["status"] == "in_progress"
    client.play()
    for _ in range(3):
        client.create()
        client.play()
    client.create()
    client.cancel()
    client.create()
    client.speak(0.5)
    ended = [(event["response"]["status"], event["response"]["status_details"]) for event in client.of("response.done")]
    assert ended[0] == ("completed", None)
    assert ended[1] == ("incomplete", {"type": "incomplete", "reason": "max_output_tokens"})
    assert ended[2] == ("incomplete", {"type": "incomplete", "reason": "content_filter"})
    assert ended[3][0] == ended[3][1]["type"] == "failed"
    assert ended[3][1]["error"] == {"type": "server_error", "code": "server_error", "message": "The model is away."}
    assert ended[4] == ("cancelled", {"type": "cancelled", "reason": "client_cancelled"})
    assert ended[5] == ("cancelled", {"type": "cancelled", "reason": "turn_detected"})


def test_response_done_output(connect: Any) -> None:
    client = connect(HELLO)
    told = client.create()
    created, done = told[0]["response"], told[-1]["response"]
    assert (created["output"], created["usage"]) == ([], None)
    assert [part for item in done["output"] for part in item["content"]] == [{"type": "output_audio", "transcript": "Hello there"}]
    assert done["usage"] is not None


def test_usage(connect: Any) -> None:
    usage = Usage(input_text_tokens=5, input_audio_tokens=7, cached_audio_tokens=3, output_text_tokens=2, output_audio_tokens=11)
    told = connect(text_reply("Hi", usage=usage)).create()[-1]["response"]["usage"]
    assert told["total_tokens"] == told["input_tokens"] + told["output_tokens"] == 25
    assert (told["input_token_details"]["text_tokens"], told["input_token_details"]["audio_tokens"]) == (5, 7)
    assert told["input_token_details"]["image_tokens"] == 0
    assert told["input_token_details"]["cached_tokens"] == told["input_token_details"]["cached_tokens_details"]["audio_tokens"] == 3
    assert told["output_token_details"] == {"text_tokens": 2, "audio_tokens": 11}


def test_conversation_item_added_and_done(connect: Any) -> None:
    client = connect(HELLO, manual=True)
    client.speak(0.5)
    client.commit()
    client.create()
    (user, assistant), (_, finished) = client.of("conversation.item.added"), client.of("conversation.item.done")
    assert user["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    assert (assistant["item"]["content"], assistant["item"]["status"]) == ([], "in_progress")
    assert (finished["item"]["content"], finished["item"]["status"]) == (
        [{"type": "output_audio", "transcript": "Hello there"}],
        "completed",
    )


def test_conversation_item_retrieved(connect: Any) -> None:
    client = connect(HELLO, manual=True)
    client.speak(0.5)
    client.commit()
    client.create()
    for item_id, seconds in zip(client.items, (0.5, 1.0), strict=True):
        (told,) = client.retrieve(item_id)
        assert len(base64.b64decode(told["item"]["content"][0]["audio"])) == pytest.approx(seconds * 48_000, abs=2)


def test_conversation_item_create(connect: Any) -> None:
    client = connect(TEXT)
    spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_audio", "audio": "AAAA", "transcript": "Hi."}]}
    assert error_of(client.item(spoken))["param"] == "item.content.0.audio"
    text = {"type": "message", "role": "user", "status": "in_progress", "content": [{"type": "input_text", "text": "Hello."}]}
    assert [event["item"]["status"] for event in client.item(text)] == ["completed", "completed"]
    audio = base64.b64encode(bytes(48_000)).decode()
    client.item({"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": audio}]})
    client.create()
    assert len(client.turns[0].messages[1].content[0].samples) == 16_000


def test_conversation_item_truncate(connect: Any) -> None:
    client = connect(HELLO)
    client.create()
    client.say("Hello.")
    answer, text = client.items
    assert error_of(client.truncate(answer, 100, content_index=1))["param"] == "content_index"
    beyond = error_of(client.truncate(answer, 1001))
    assert (beyond["type"], beyond["message"]) == ("invalid_request_error", "Audio content of 1000ms is already shorter than 1001ms")
    assert error_of(client.truncate(text, 0))["message"].startswith("Only model output audio messages can be truncated")
    assert client.truncate(answer, 1000)[0]["type"] == "conversation.item.truncated"
    (told,) = client.truncate(answer, 500)
    assert told["audio_end_ms"] == 500
    assert len(base64.b64decode(client.retrieve(answer)[0]["item"]["content"][0]["audio"])) == 24_000


def test_input_audio_buffer_commit(connect: Any) -> None:
    client = connect(TEXT, manual=True)
    client.speak(0.0, 0.05)
    empty = error_of(client.commit())
    assert empty["code"] == "input_audio_buffer_commit_empty"
    assert "Expected at least 100ms of audio, but buffer only has 50.00ms of audio." in empty["message"]
    client.speak(0.0, 0.05)
    told = client.commit()
    assert told[0]["item_id"] == told[1]["item"]["id"]
    assert client.turns == []


def test_input_audio_buffer_append(connect: Any) -> None:
    client = connect(TEXT, manual=True)
    assert client.append(bytes(15 * 1024 * 1024)) == []
    assert error_of(client.append(bytes(15 * 1024 * 1024 + 2)))["param"] == "audio"


def test_speech_started_audio_start_ms(connect: Any) -> None:
    client = connect(TEXT)
    client.speak(0.0, 1.0, 0.512, 1.0)
    assert client.last("input_audio_buffer.speech_started")["audio_start_ms"] == pytest.approx(1000 - 300, abs=32)
    client.speak(0.0, 1.0, 0.512, 1.0)
    assert client.last("input_audio_buffer.speech_started")["audio_start_ms"] == pytest.approx(2512 + 1000 - 300, abs=32)


def test_speech_stopped_audio_end_ms(connect: Any) -> None:
    client = connect(TEXT)
    client.speak(0.0, 1.0, 0.512, 1.0)
    assert client.last("input_audio_buffer.speech_stopped")["audio_end_ms"] == pytest.approx(1512 + 500, abs=40)


def test_input_audio_buffer_timeout_triggered(connect: Any, types: Any) -> None:
    client = connect(HELLO)
    client.update_input(turn_detection={"idle_timeout_ms": 5000})
    client.create()
    assert client.advance(1.0 + 4.99) == []
    told = types(client.advance(0.02))
    assert told[:4] == [
        "input_audio_buffer.timeout_triggered",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert told[-1] == "response.done"


def test_rate_limits_updated(connect: Any, types: Any) -> None:
    client = connect(HELLO, rate_limiter=RateLimiter(requests_per_minute=2, tokens_per_minute=1000))
    assert types(client.create())[:2] == ["response.created", "rate_limits.updated"]
    requests, tokens = client.last("rate_limits.updated")["rate_limits"]
    assert (requests["name"], requests["limit"], requests["remaining"]) == ("requests", 2, 1)
    assert (tokens["name"], tokens["limit"]) == ("tokens", 1000)
    client.create()
    done = client.create()[-1]["response"]
    assert (done["status"], done["status_details"]["error"]["code"]) == ("failed", "rate_limit_exceeded")
    client.advance(30)
    assert client.create()[-1]["response"]["status"] == "completed"
    assert not connect(HELLO).of("rate_limits.updated")


def test_output_audio_buffer_is_not_of_a_websocket(connect: Any) -> None:
    client = connect(HELLO)
    refused = error_of(client.send({"type": "output_audio_buffer.clear"}))
    assert refused["param"] == "type"
    assert "WebRTC" in refused["message"]
    client.create()
    assert not [event for event in client.events if event["type"].startswith("output_audio_buffer.")]


def test_dtmf_is_not_of_a_websocket(connect: Any) -> None:
    client = connect(HELLO)
    assert error_of(client.send({"type": "input_audio_buffer.dtmf_event_received", "event": "1", "received_at": 1}))["param"] == "type"


def test_conversation_created_is_of_the_beta_dialect(connect: Any, types: Any) -> None:
    assert types(connect(TEXT).events) == ["session.created"]


def test_mcp_is_refused_by_name(connect: Any) -> None:
    client = connect(call_reply("look"))
    mcp = {"type": "mcp", "server_label": "x", "server_url": "https://example.com"}
    assert error_of(client.update(tools=[mcp]))["param"] == "session.tools.0.type"
    assert error_of(client.create(tools=[mcp]))["param"] == "response.tools.0.type"
    approval = {"type": "mcp_approval_response", "id": "x", "approval_request_id": "y", "approve": True}
    assert error_of(client.item(approval))["param"] == "item.type"


@pytest.mark.parametrize("event_id", ["mine", None])
def test_error_event_id(connect: Any, event_id: str | None) -> None:
    client = connect(TEXT)
    told = client.send({"type": "response.cancel"} | ({"event_id": event_id} if event_id else {}))
    assert error_of(told)["event_id"] == event_id
    unknown = client.send({"type": "no.such.event"} | ({"event_id": event_id} if event_id else {}))
    assert (error_of(unknown)["code"], error_of(unknown)["param"], error_of(unknown)["event_id"]) == ("invalid_value", "type", event_id)
