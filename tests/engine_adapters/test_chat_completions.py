"""The chat_completions engine against a real HTTP server that plays what vLLM-Omni, vLLM and OpenAI stream."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import subprocess
import sys
from contextlib import aclosing
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse, Response

from omni_realtime.audio import encode_pcm16, read_wav, write_wav
from omni_realtime.chat import (
    AudioPart,
    ChatMessage,
    ChatPrompt,
    GenerateRequest,
    ImagePart,
    NamedTool,
    TextPart,
    Tool,
    ToolCall,
    Usage,
)
from omni_realtime.engine.chat_completions import ChatCompletionsEngine, read_settings
from omni_realtime.engine.port import EngineDeadError, EngineError
from pictures import data_uri, png

SECRET = "sk-secret-0123456789"
DONE = b"data: [DONE]\n\n"
WEATHER = Tool(name="get_weather", description="The weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})


def sine(samples: int, rate: int = 24000) -> np.ndarray:
    return np.sin(2 * np.pi * 437 * np.arange(samples) / rate).astype(np.float32) / 2


def quantized(samples: np.ndarray) -> np.ndarray:
    return np.frombuffer(encode_pcm16(samples), "<i2") / np.float32(32768)


def event(**fields) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def chunk(delta: dict, *, finish: str | None = None, choice: dict | None = None, **fields) -> bytes:
    """One event as vLLM writes it."""
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, **(choice or {})}]
    return event(id="chatcmpl-1", object="chat.completion.chunk", created=1, model="tiny", choices=choices, **fields)


def text(content: str, finish: str | None = None) -> bytes:
    return chunk({"content": content}, finish=finish, modality="text")


def usage(prompt: int = 20, completion: int = 7, **details) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return event(id="chatcmpl-1", object="chat.completion.chunk", choices=[], usage={**counts, **details})


def omni_audio(samples: np.ndarray, form: str, rate: int = 24000, finish: str | None = None, data: bytes | None = None) -> bytes:
    """One audio chunk as vLLM-Omni writes it: in ``content``, with usage that counts no completion."""
    data = data if data is not None else write_wav(samples, rate) if form == "wav" else encode_pcm16(samples)
    metadata = {"format": form, "sample_rate_hz": rate, "frame_count": len(samples), "channels": 1}
    content = {"role": "assistant", "content": base64.b64encode(data).decode()}
    counts = {"prompt_tokens": 20, "completion_tokens": 0, "total_tokens": 20}
    return chunk(content, finish=finish, choice={"audio_metadata": metadata}, modality="audio", usage=counts)


def openai_audio(**audio) -> bytes:
    return chunk({"audio": {"id": "audio_1", **audio}})


def prompt(*parts, **fields) -> ChatPrompt:
    return ChatPrompt(messages=(ChatMessage(role="user", content=parts or (TextPart(text="Hello there, how are you?"),)),), **fields)


def request(chat: ChatPrompt | None = None, *, request_id: str = "r1", modalities=("audio",), **fields) -> GenerateRequest:
    return GenerateRequest(request_id=request_id, prompt=chat or prompt(), modalities=modalities, **fields)


async def collect(engine, generation: GenerateRequest | None = None) -> list:
    async with aclosing(engine.generate(generation or request())) as deltas:
        return [delta async for delta in deltas]


def said(deltas) -> str:
    return "".join(delta.text for delta in deltas)


def heard(deltas) -> np.ndarray:
    return np.concatenate([delta.audio for delta in deltas if delta.audio is not None] or [np.zeros(0, np.float32)])


REPLY = [text(""), text("Hel"), text("lo."), text("", "stop"), usage(), DONE]


# --- what servers stream ---


@pytest.mark.parametrize("form", ["wav", "pcm"])
def test_vllm_omni_audio_arrives_sample_for_sample_without_headers(server, talk, form):
    wave = sine(70000)
    pieces = [wave[:7125], wave[7125:55125], wave[55125:]]
    server.answers = [[
        text("Hel"),
        omni_audio(pieces[0], form),
        text("lo."),
        omni_audio(pieces[1], form),
        chunk({"role": "assistant", "content": ""}, modality="audio"),
        omni_audio(pieces[2], form, finish="stop"),
        usage(prompt_tokens_details={"cached_tokens": 15, "multimodal_tokens": {"audio": 13}}),
        DONE,
    ]]  # fmt: skip

    async def test(engine):
        deltas = await collect(engine)
        assert said(deltas) == "Hello."
        np.testing.assert_array_equal(heard(deltas), quantized(wave))
        assert {delta.rate for delta in deltas if delta.audio is not None} == {24000}
        assert [delta.finish_reason for delta in deltas if delta.finish_reason] == ["stop"]
        assert deltas[-1].finish_reason == "stop"
        assert deltas[-1].usage == Usage(
            input_text_tokens=7, input_audio_tokens=13, cached_text_tokens=7, cached_audio_tokens=8, output_text_tokens=7
        )

    talk(test)


def test_pcm_at_another_rate_says_so(server, talk):
    server.answers = [[omni_audio(sine(441), "pcm", rate=44100, finish="stop"), DONE]]

    async def test(engine):
        (sound, end) = await collect(engine)
        assert sound.rate == 44100
        assert end.finish_reason == "stop"

    talk(test)


def test_openai_audio_is_pcm16_at_24_khz_with_a_transcript_and_may_be_cut_within_a_sample(server, talk):
    wave = sine(4801)
    data = encode_pcm16(wave)
    pieces = [data[:1001], data[1001:1002], data[1002:]]
    details = {
        "prompt_tokens_details": {"audio_tokens": 12, "image_tokens": 3, "cached_tokens": 19},
        "completion_tokens_details": {"audio_tokens": 5},
    }
    server.answers = [[
        openai_audio(transcript="Hel"),
        *(openai_audio(data=base64.b64encode(piece).decode()) for piece in pieces),
        openai_audio(transcript="lo."),
        openai_audio(expires_at=1),
        chunk({}, finish="stop"),
        usage(**details),
        DONE,
    ]]  # fmt: skip

    async def test(engine):
        deltas = await collect(engine)
        assert said(deltas) == "Hello."
        np.testing.assert_array_equal(heard(deltas), quantized(wave))
        assert deltas[-1].usage == Usage(
            input_text_tokens=5,
            input_audio_tokens=12,
            input_image_tokens=3,
            cached_text_tokens=5,
            cached_audio_tokens=12,
            cached_image_tokens=2,
            output_text_tokens=2,
            output_audio_tokens=5,
        )

    talk(test, api="openai")


def test_text_that_waits_comes_before_a_tool_call(server, talk):
    call = chunk({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "get_time", "arguments": "{}"}}]}, finish="tool_calls")
    server.answers = [[text("Now <"), call, DONE]]

    async def test(engine):
        deltas = await collect(engine, request(prompt(tools=(WEATHER,), hidden_text=("<|empty|>",))))
        assert [(delta.text, delta.tool_call is not None) for delta in deltas[:-1]] == [("Now ", False), ("<", False), ("", True)]

    talk(test)


def test_tool_calls_stream_and_their_markup_is_not_spoken(server, talk):
    def piece(index, call_id=None, **function):
        return chunk({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}, modality="text")

    server.answers = [[
        text("One moment."),
        omni_audio(sine(100), "wav"),
        piece(0, "call_1", name="get_weather"),
        omni_audio(sine(100), "wav"),
        piece(0, arguments='{"city":'),
        piece(0, arguments=' "Zürich"}'),
        piece(1, "call_2", name="get_time", arguments="{}"),
        text("", "tool_calls"),
        DONE,
    ]]  # fmt: skip

    async def test(engine):
        deltas = await collect(engine, request(prompt(tools=(WEATHER,))))
        calls = [delta.tool_call for delta in deltas if delta.tool_call]
        assert [(call.index, call.call_id, call.name, call.arguments) for call in calls] == [
            (0, "call_1", "get_weather", ""),
            (0, None, None, '{"city":'),
            (0, None, None, ' "Zürich"}'),
            (1, "call_2", "get_time", "{}"),
        ]
        assert len(heard(deltas)) == 100
        assert deltas[-1].finish_reason == "tool_calls"

    talk(test)


@pytest.mark.parametrize(("told", "finish"), [("length", "length"), ("content_filter", "content_filter"), ("repetition", "stop")])
def test_finish_reasons(server, talk, told, finish):
    server.answers = [[text("Hi", told), DONE]]

    async def test(engine):
        assert (await collect(engine))[-1].finish_reason == finish

    talk(test)


def test_a_refusal_is_text_and_audio_that_nobody_asked_for_is_left_out(server, talk):
    server.answers = [[chunk({"refusal": "I can't."}), omni_audio(sine(100), "wav", finish="stop"), DONE]]

    async def test(engine):
        deltas = await collect(engine, request(modalities=("text",)))
        assert said(deltas) == "I can't."
        assert not len(heard(deltas))

    talk(test)


def test_hidden_text_is_neither_shown_nor_kept_wherever_it_is_cut(server, talk):
    server.answers = [[text("He<|emp"), text("ty|>llo<|empty|>"), text("<|empty|> you <|em"), text("", "stop"), DONE]]

    async def test(engine):
        deltas = await collect(engine, request(prompt(hidden_text=("<|empty|>",))))
        assert said(deltas) == "Hello you <|em"

    talk(test)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 3000), max_size=8), end=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_stream_cut_at_any_byte_reads_the_same(server, talk, cuts, end):
    wave = sine(300)
    lines = b": ping\n\n" + text("Grüezi\u2028 😀") + omni_audio(wave, "wav") + b"event: x\nid: 1\n" + text("!", "stop") + usage() + DONE
    stream = lines.replace(b"\n", end)
    places = [0, *sorted(cut % len(stream) for cut in cuts), len(stream)]
    server.answers = [[step for start, stop in pairwise(places) for step in (stream[start:stop], 0.001)]]

    async def test(engine):
        deltas = await collect(engine)
        assert said(deltas) == "Grüezi\u2028 😀!"
        np.testing.assert_array_equal(heard(deltas), quantized(wave))
        assert deltas[-1].usage is not None

    talk(test, context_window=2048, tokenize="off")


def test_minutes_of_audio_go_both_ways(server, talk):
    question, answer = sine(16000 * 180, 16000), sine(24000 * 120)
    server.answers = [[omni_audio(answer, "wav", finish="stop"), DONE]]

    async def test(engine):
        deltas = await collect(engine, request(prompt(AudioPart(samples=question, rate=16000, key="k"))))
        np.testing.assert_array_equal(heard(deltas), quantized(answer))

    talk(test)
    (part,) = server.bodies[0]["messages"][0]["content"]
    samples, rate = read_wav(base64.b64decode(part["input_audio"]["data"]))
    assert rate == 16000
    np.testing.assert_array_equal(samples, quantized(question))


# --- what is asked ---


def spoken_history() -> ChatPrompt:
    call = ToolCall(call_id="call_1", name="get_weather", arguments='{"city": "Bern"}')
    audio = AudioPart(samples=sine(160, 16000), rate=16000, key="k", transcript="ignored")
    image = ImagePart(data=png(), media_type="image/png", key="i", detail="high")
    return ChatPrompt(
        messages=(
            ChatMessage(role="system", content=(TextPart(text="Be brief."),)),
            ChatMessage(role="user", content=(TextPart(text="Listen:"), audio, image)),
            ChatMessage(role="assistant", tool_calls=(call,)),
            ChatMessage(role="tool", content=(TextPart(text="Sunny"),), tool_call_id="call_1"),
            ChatMessage(role="assistant", content=(TextPart(text="It is sunny."),)),
        ),
        tools=(WEATHER,),
        tool_choice=NamedTool(name="get_weather"),
        template_kwargs={"enable_thinking": False},
        chat_template="{{ messages }}",
        engine_info={"ref_audio": "data:audio/wav;base64,UklGRg=="},
    )


@pytest.mark.parametrize(
    ("api", "limit", "voices"), [("vllm", "max_tokens", ("ethan", None)), ("openai", "max_completion_tokens", (None, "ethan"))]
)
def test_the_request_has_the_fields_that_the_server_honours(server, talk, api, limit, voices):
    server.answers = [REPLY]

    async def test(engine):
        await collect(engine, request(spoken_history(), voice="ethan", max_output_tokens=64))

    talk(test, api=api, extra_body={"temperature": 0.3})
    (body,) = server.bodies
    audio = body["messages"][1]["content"][1].pop("input_audio")
    assert audio["format"] == "wav"
    assert read_wav(base64.b64decode(audio["data"]))[1] == 16000
    assert body.pop("messages") == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Listen:"},
                {"type": "input_audio"},
                {"type": "image_url", "image_url": {"url": data_uri(png()), "detail": "high"}},
            ],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'}},
            ],
        },
        {"role": "tool", "content": "Sunny", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "It is sunny."},
    ]
    assert (body.pop("voice", None), body["audio"].pop("voice", None)) == voices
    assert body.pop("tools")[0]["function"]["parameters"] == WEATHER.parameters
    assert body == {
        "model": "tiny",
        "stream": True,
        "stream_options": {"include_usage": True},
        "modalities": ["text", "audio"],
        "audio": {"format": "pcm16"},
        limit: 64,
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "chat_template_kwargs": {"enable_thinking": False},
        "chat_template": "{{ messages }}",
        "ref_audio": "data:audio/wav;base64,UklGRg==",
        "temperature": 0.3,
    }


def test_a_text_response_asks_for_no_audio_and_no_voice(server, talk):
    server.answers = [REPLY]

    async def test(engine):
        await collect(engine, request(modalities=("text",), voice="ethan"))

    talk(test)
    assert server.bodies[0].keys() == {"model", "messages", "modalities", "stream", "stream_options"}
    assert server.bodies[0]["modalities"] == ["text"]


def test_the_turns_of_a_conversation_name_it_to_a_router(server, talk):
    server.answers = [REPLY]

    def turn(words: str, key: str) -> tuple[ChatMessage, ...]:
        audio = AudioPart(samples=sine(160, 16000), rate=16000, key=key)
        return (
            ChatMessage(role="user", content=(audio, TextPart(text=words))),
            ChatMessage(role="assistant", content=(TextPart(text="Yes."),)),
        )

    system = ChatMessage(role="system", content=(TextPart(text="Be brief."),))
    first, second, other = turn("One", "a"), turn("Two", "b"), turn("One", "c")
    prompts = [(system, *first), (system, *first, *second), (*first, *second), (system, *second), (system, *other), (system,)]

    async def test(engine):
        for messages in prompts:
            await collect(engine, request(ChatPrompt(messages=messages)))

    talk(test)
    names = [headers["x-session-id"] for headers in server.headers]
    assert names[0] == names[1] == names[2]
    assert len(set(names)) == 4


def test_engine_info_that_is_no_json_is_refused_in_words_that_help(server, talk):
    async def test(engine):
        with pytest.raises(EngineError, match="plain JSON values"):
            await collect(engine, request(prompt(engine_info={"reference": (sine(10), 16000)})))
        assert not server.bodies

    talk(test)


# --- failures ---


async def fails(engine, code: str, words: str) -> EngineError:
    with pytest.raises(EngineError, match=words) as caught:
        await collect(engine)
    assert caught.value.code == code
    assert not isinstance(caught.value, EngineDeadError)
    return caught.value


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_a_server_that_is_busy_twice_is_asked_thrice(server, talk, status):
    """500 in plain text is a router's word for a server that it cannot reach; a server's own 500, in JSON, stands."""
    busy = Response(status_code=status)
    server.answers = [busy, busy, REPLY]

    async def test(engine):
        assert said(await collect(engine)) == "Hello."
        assert len(server.bodies) == 3

    talk(test)


@pytest.mark.parametrize(("status", "code"), [(503, "engine_unavailable"), (429, "rate_limit_exceeded")])
def test_retries_are_bounded(server, talk, status, code):
    server.answers = [Response(status_code=status)]

    async def test(engine):
        await fails(engine, code, "Try again")
        assert len(server.bodies) == 2

    talk(test, retries=1)


@pytest.mark.parametrize(("retry_after", "tries"), [("1", 2), ("Thu, 01 Jan 2015 00:00:00 GMT", 2), ("3600", 1), ("soon", 1)])
def test_retry_after_is_kept_where_a_conversation_can_wait_so_long(server, talk, retry_after, tries):
    server.answers = [Response(status_code=429, headers={"retry-after": retry_after}), REPLY]

    async def test(engine):
        start = asyncio.get_running_loop().time()
        if tries == 1:
            await fails(engine, "rate_limit_exceeded", "too busy")
        else:
            assert said(await collect(engine)) == "Hello."
        assert retry_after != "1" or asyncio.get_running_loop().time() - start >= 1
        assert len(server.bodies) == tries

    talk(test)


@pytest.mark.parametrize(
    ("status", "error", "failure"),
    [
        (400, {"message": "At most 4 audio(s) may be provided in one prompt.", "code": 400}, ("engine_refused", r"400\): At most 4 audio")),
        (400, {"message": "This model's maximum context length is 2048 tokens.", "code": 400}, ("context_length_exceeded", "longer")),
        (400, {"message": "x", "param": "input_tokens", "code": 400}, ("context_length_exceeded", "longer")),
        (400, {"message": "x", "code": "context_length_exceeded"}, ("context_length_exceeded", "longer")),
        (401, {"message": f"Incorrect API key provided: {SECRET}"}, ("engine_refused", "refuses the host's key")),
        (404, {"message": "The model `tiny` does not exist."}, ("engine_refused", "does not exist")),
        (422, {"message": "Bad input: 'Hello there, how are you?'"}, ("engine_refused", r"\(HTTP 422\)\.$")),
        (422, {"message": "Bad input: 'there, how are you' is wrong"}, ("engine_refused", r"\(HTTP 422\)\.$")),
        (500, {"message": "/usr/lib/python: CUDA error"}, ("engine_unavailable", r"failed \(HTTP 500\)")),
    ],
)
def test_an_error_body_becomes_an_error_that_quotes_no_prompt_and_no_key(server, talk, status, error, failure):
    server.answers = [JSONResponse({"error": error}, status_code=status)]

    async def test(engine):
        told = (await fails(engine, *failure)).message
        assert SECRET not in told
        assert "/usr" not in told
        assert "there, how" not in told
        assert len(server.bodies) == 1

    talk(test)


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad Request</html>", b"[1]", b'"x"', b'{"error": "told"}', b'{"detail": 1}', b"\xff" * 200_000]
)
def test_error_bodies_of_any_shape(server, talk, body):
    server.answers = [Response(body, status_code=400)]

    async def test(engine):
        await fails(engine, "engine_refused", r"\(HTTP 400\)")

    talk(test)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([b"data: {\n\n"], "not of the chat completions API"),
        ([b'data: {"choices": 5}\n\n'], "not of the chat completions API"),
        ([b"data: \xff\xfe\n\n"], "not of the chat completions API"),
        ([text("", "abort"), DONE], "stopped in the middle"),
        ([text("", "error"), DONE], "stopped in the middle"),
        ([event(error={"message": "Internal server error", "code": 500}), DONE], r"HTTP 500"),
        ([event(error={"message": "Bad things", "type": "BadRequestError", "code": 400}), DONE], "Bad things"),
        ([DONE], "middle of an answer"),
        ([], "middle of an answer"),
        ([omni_audio(sine(10), "wav", data=b"RIFFxxxx")], "cannot be decoded"),
        ([omni_audio(sine(10), "mp3", data=b"ID3")], "sent audio as mp3"),
        ([chunk({"content": "@@@"}, modality="audio")], "cannot be decoded"),
        ([omni_audio(sine(10), "pcm"), omni_audio(sine(10), "pcm", rate=16000)], "from 24000 to 16000 Hz"),
        ([b"data: " + b"x" * 999_999] * 70, "too large"),
    ],
)
def test_a_stream_that_is_wrong_fails_the_answer_and_not_the_engine(server, talk, eventually, events, words):
    server.answers = [[text("Well, "), *events], REPLY]

    async def test(engine):
        with pytest.raises(EngineError, match=words) as caught:
            await collect(engine)
        assert not isinstance(caught.value, EngineDeadError)
        await eventually(lambda: server.running == 0)
        assert said(await collect(engine)) == "Hello."

    talk(test)


def test_a_page_instead_of_a_stream_is_told(server, talk):
    server.answers = [Response("<html>", media_type="text/html")]

    async def test(engine):
        await fails(engine, "server_error", "text/html")

    talk(test)


def test_a_connection_that_drops_in_mid_answer_is_not_asked_again(server, talk):
    server.answers = [[text("Hel"), 0.05, server.drop], REPLY]

    async def test(engine):
        async with aclosing(engine.generate(request())) as deltas:
            assert (await anext(deltas)).text == "Hel"
            with pytest.raises(EngineError, match="broke the connection") as caught:
                await anext(deltas)
        assert caught.value.code == "engine_unavailable"
        assert len(server.bodies) == 1

    talk(test)


def test_a_body_that_does_not_end_after_done_ends_the_answer_all_the_same(server, talk):
    server.answers = [[*REPLY, 60.0]]

    async def test(engine):
        assert said(await collect(engine)) == "Hello."

    talk(test)


def test_a_connection_that_drops_after_the_finish_reason_does_no_harm(server, talk):
    server.answers = [[text("Hello.", "stop"), 0.05, server.drop]]

    async def test(engine):
        deltas = await collect(engine)
        assert (said(deltas), deltas[-1].finish_reason) == ("Hello.", "stop")

    talk(test)


@pytest.mark.parametrize("timeouts", [{"first_chunk": 0.3}, {"between_chunks": 0.3}])
def test_a_server_that_stalls_fails_the_answer_and_frees_its_work(server, talk, eventually, timeouts):
    server.answers = [[60.0] if "first_chunk" in timeouts else [text("Well, "), 60.0], REPLY]

    async def test(engine):
        await fails(engine, "engine_unavailable", "took too long")
        await eventually(lambda: server.running == 0, 1)
        assert len(server.bodies) == 1
        assert said(await collect(engine)) == "Hello."

    talk(test, timeouts=timeouts)


def test_a_slow_first_byte_is_waited_for(server, talk):
    server.answers = [[0.5, *REPLY]]

    async def test(engine):
        assert said(await collect(engine)) == "Hello."

    talk(test, timeouts={"between_chunks": 0.2})


def test_an_upload_that_nobody_reads_ends_in_time(connect, run):
    deaf = socket.create_server(("127.0.0.1", 0))
    section = {"base_url": f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", "retries": 0, "timeouts": {"first_chunk": 0.3}}

    async def test():
        async with connect() as engine:
            engine._settings = engine._settings.model_copy(update={"base_url": section["base_url"]})
            engine._client._settings = read_settings({"type": "chat_completions", "model": "tiny", **section})
            await fails(engine, "engine_unavailable", "took too long")

    with deaf:
        run(test)


def test_a_server_that_is_down_fails_answers_until_it_is_back_and_the_engine_never_dies(server, talk, caplog):
    caplog.set_level(logging.WARNING)
    server.answers = [REPLY]
    with socket.create_server(("127.0.0.1", 0)) as probe:
        nowhere = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"

    async def test(engine):
        up = engine._settings
        down = up.model_copy(update={"base_url": nowhere})
        for setting in (up, down, down, up):
            engine._settings = engine._client._settings = setting
            await engine.check_health()
            if setting is up:
                assert said(await collect(engine)) == "Hello."
            else:
                await fails(engine, "engine_unavailable", "cannot be reached")
        assert [record.message.rsplit(" is ")[1] for record in caplog.records] == ["not healthy", "back"]

    talk(test)


def test_a_server_without_health_is_asked_for_its_models(server, talk, caplog):
    caplog.set_level(logging.WARNING)
    server.health_status = 404

    async def test(engine):
        await engine.check_health()
        assert not caplog.records
        server.models = Response(status_code=500)
        await engine.check_health()
        assert len(caplog.records) == 1

    talk(test)


# --- stopping ---


def test_closing_the_generation_closes_the_connection_within_a_second(server, talk, eventually):
    server.answers = [[text("Well, "), 60.0]]

    async def test(engine):
        for number in range(10):
            async with aclosing(engine.generate(request(request_id=f"r{number}"))) as deltas:
                assert (await anext(deltas)).text == "Well, "
                assert server.running == 1
            await eventually(lambda: server.running == 0, 1)

    talk(test)


@pytest.mark.parametrize("steps", [[60.0], [text("Well, "), 60.0]], ids=["before the first chunk", "between chunks"])
@pytest.mark.parametrize("stop", ["abort", "cancel", "close"])
def test_a_waiting_generation_is_stopped_within_a_second(server, talk, eventually, steps, stop):
    server.answers = [steps]

    async def test(engine):
        task = asyncio.create_task(collect(engine))
        await eventually(lambda: server.running == 1)
        await asyncio.sleep(0.05)
        if stop == "abort":
            await engine.abort("r1")
        elif stop == "close":
            await engine.close()
        else:
            task.cancel()
        await eventually(lambda: server.running == 0, 1)
        if stop == "cancel":
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert (await task)[-1].finish_reason == "abort"
        await engine.abort("r1")
        await engine.abort("unknown")
        assert not engine._calls

    talk(test)


def test_abort_frees_the_server_while_nobody_reads(server, talk, eventually):
    server.answers = [[text("Well, "), 60.0]]

    async def test(engine):
        async with aclosing(engine.generate(request())) as deltas:
            await anext(deltas)
            await engine.abort("r1")
            await eventually(lambda: server.running == 0, 1)
            assert [delta.finish_reason async for delta in deltas] == ["abort"]

    talk(test)


def test_abort_while_waiting_to_retry(server, talk, eventually):
    server.answers = [Response(status_code=503, headers={"retry-after": "9"})]

    async def test(engine):
        task = asyncio.create_task(collect(engine))
        await eventually(lambda: server.bodies)
        await asyncio.sleep(0.05)
        await engine.abort("r1")
        assert (await asyncio.wait_for(task, 1))[-1].finish_reason == "abort"

    talk(test)


def test_one_request_id_is_one_generation(server, talk):
    server.answers = [[text("Well, "), 60.0]]

    async def test(engine):
        async with aclosing(engine.generate(request())) as deltas:
            await anext(deltas)
            await fails(engine, "server_error", "request id")

    talk(test)


# --- many at once ---


def test_fifty_answers_at_once_do_not_mix_and_share_a_pool(server, talk):
    server.answers = [[text("Hel"), 0.3, text("lo.", "stop"), DONE]]

    async def test(engine):
        start = asyncio.get_running_loop().time()
        for wave in range(2):
            replies = await asyncio.gather(*(collect(engine, request(request_id=f"{wave}-{n}")) for n in range(50)))
            assert {said(deltas) for deltas in replies} == {"Hello."}
        assert asyncio.get_running_loop().time() - start < 15
        assert len(server.connections) <= 60
        assert not engine._calls

    talk(test)


# --- start ---


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ({"data": [{"id": "other", "max_model_len": 5}]}, "does not serve 'tiny'; it serves other"),
        ({"data": [{"id": "tiny"}]}, "set context_window"),
        ({"data": [{"id": "tiny", "max_model_len": 0}]}, "no list of models"),
        ({"object": "?"}, "no list of models"),
    ],
)
def test_start_says_what_the_server_lacks(server, connect, run, models, words):
    server.models = JSONResponse(models)

    async def test():
        with pytest.raises(EngineError, match=words):
            async with connect():
                pass

    run(test)


def test_start_waits_for_a_server_that_loads_and_gives_up_on_one_that_does_not_come(server, connect, run):
    server.models = Response(status_code=503)

    async def test():
        with pytest.raises(EngineError, match=r"did not come up within 0.1 s \(HTTP 503\)"):
            async with connect(timeouts={"start": 0.1}):
                pass

        async def load():
            await asyncio.sleep(0.2)
            server.models = JSONResponse({"data": [{"id": "tiny", "max_model_len": 4096}]})

        loading = asyncio.create_task(load())
        async with connect() as engine:
            assert engine.context_window == 4096
        await loading

    run(test)


def test_start_refuses_a_wrong_key_at_once(server, connect, run):
    server.models = Response(status_code=401)

    async def test():
        with pytest.raises(EngineError, match="refuses the key"):
            async with connect():
                pass

    run(test)


def test_a_server_without_a_list_of_models_needs_a_context_window(server, connect, run):
    server.models = Response(status_code=404)

    async def test():
        async with connect(context_window=999) as engine:
            assert engine.context_window == 999
        with pytest.raises(EngineError, match="set context_window"):
            async with connect():
                pass

    run(test)


def test_a_closed_engine_answers_nothing(server, talk):
    async def test(engine):
        await engine.close()
        await engine.check_health()
        await fails(engine, "engine_unavailable", "closed")

    talk(test)


# --- counting ---


def test_the_server_counts_what_it_would_render(server, talk):
    asked = []

    def tokenize(body):
        asked.append(body)
        return JSONResponse({"count": 5000, "max_model_len": 2048, "tokens": [1] * 5000})

    server.tokenize = tokenize

    async def test(engine):
        assert await engine.count_tokens(spoken_history()) == 5000
        assert asked[-1].keys() == {"model", "messages", "tools", "chat_template", "chat_template_kwargs"}

    talk(test)


def test_a_failing_count_is_an_error_and_no_guess(server, talk):
    answers = [JSONResponse({"count": 1}), JSONResponse({"tokens": []}), JSONResponse({"error": {"message": "No"}}, status_code=400)]
    server.tokenize = lambda _: answers.pop(0)

    async def test(engine):
        for words in ("not one", "No"):
            with pytest.raises(EngineError, match=words):
                await engine.count_tokens(prompt())

    talk(test)


@pytest.mark.parametrize("tokenize", ["auto", "off"])
def test_without_a_counting_server_an_upper_bound_counts(server, talk, tokenize):
    async def test(engine):
        assert await engine.count_tokens(prompt(TextPart(text="ü" * 500))) > 1000

    talk(test, tokenize=tokenize)


# --- secrets ---


def test_logs_hold_no_key_no_prompt_and_no_audio(server, talk, caplog, monkeypatch):
    monkeypatch.setenv("MODEL_SERVER_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"{SECRET}: Hello there, how are you?"}}
    server.answers = [Response(status_code=503), [text("A private answer"), server.drop], JSONResponse(echo, status_code=400), REPLY]

    async def test(engine):
        for _ in range(2):
            with pytest.raises(EngineError):
                await collect(engine)
        await collect(engine, request(prompt(AudioPart(samples=sine(1600), rate=16000, key="k"))))

    talk(test, api_key_env="MODEL_SERVER_KEY")
    assert [headers["authorization"] for headers in server.headers] == [f"Bearer {SECRET}"] * 4
    audio = server.bodies[-1]["messages"][0]["content"][0]["input_audio"]["data"]
    for secret in (SECRET, "Hello there", "private answer", audio[100:140]):
        assert secret not in caplog.text


def test_the_package_imports_without_httpx():
    code = "import sys; sys.modules['httpx'] = None; import omni_realtime.engine.chat_completions"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_engine_is_made_from_the_settings_of_a_deployment():
    section = {"type": "chat_completions", "base_url": "http://127.0.0.1:1/v1", "model": "m", "context_window": 10}
    assert ChatCompletionsEngine(read_settings(section)).context_window == 10
