"""The parts of the chat_completions engine that do no I/O."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, ImagePart, TextPart, Tool, ToolCall
from omni_realtime.engine.chat_completions import read_settings
from omni_realtime.engine.chat_completions.sse import EventReader
from omni_realtime.engine.chat_completions.tokens import most_tokens
from omni_realtime.engine.hidden_text import HiddenText

SECTION = {"type": "chat_completions", "base_url": "http://127.0.0.1:8000/v1/", "model": "m"}


@given(
    st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), min_size=1, max_size=3), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 500)),
)
def test_events_read_the_same_wherever_the_stream_is_cut(events, end, cuts):
    stream = "".join("".join(f"data: {line}{end}" for line in lines) + f": comment{end}retry: 5{end}{end}" for lines in events).encode()
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    reader = EventReader()
    read = [data for start, stop in pairwise(places) for data in reader.feed(stream[start:stop])]
    assert read == ["\n".join(lines).encode() for lines in events]


def test_an_event_without_a_space_or_without_data():
    assert EventReader().feed(b"data:x\n\nevent: y\n\n\n\ndata\n\n: z\n\n") == [b"x", b""]


@given(st.lists(st.sampled_from(["<|empty|>", "<|eot|>", "a", "<", "<|", "|>", "<|e", "b"])), st.lists(st.integers(0, 60)))
def test_hidden_text_is_cut_out_wherever_the_stream_is_cut(words, cuts):
    text = "".join(words)
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    hidden = HiddenText(("<|empty|>", "<|eot|>", ""))
    shown = "".join(hidden.read(text[start:stop]) for start, stop in pairwise(places)) + hidden.end()
    assert shown == text.replace("<|empty|>", "").replace("<|eot|>", "") or shown == text.replace("<|eot|>", "").replace("<|empty|>", "")


def test_text_without_a_beginning_of_hidden_text_does_not_wait():
    assert HiddenText(("<|empty|>",)).read("Hello ") == "Hello "


def test_the_upper_bound_counts_everything_that_is_written():
    audio = AudioPart(samples=np.zeros(16000 * 3, np.float32), rate=16000, key="k")
    image = ImagePart(data=b"file", media_type="image/png", key="i")
    most = partial(most_tokens, audio_tokens_per_second=25, image_tokens=1000)
    call = ToolCall(call_id="c", name="f" * 50, arguments="ö" * 100)
    message = ChatMessage(role="user", content=(TextPart(text="ü" * 100), audio, image), tool_calls=(call,))
    empty = most(ChatPrompt(messages=()))
    assert most(ChatPrompt(messages=(message,))) - empty >= 200 + 75 + 1000 + 250
    tool = Tool(name="n" * 30, description="d" * 40, parameters={"p": "q" * 50})
    assert most(ChatPrompt(messages=(), tools=(tool,))) - empty >= 120


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base_url": "127.0.0.1:8000"}, "such as http"),
        ({"base_url": "ftp://host/v1"}, "such as http"),
        ({"base_url": "http:///v1"}, "such as http"),
        ({"base_url": "http://user:key@host/v1"}, "without a key"),
        ({"base_url": "http://host/v1?key=x"}, "without a key"),
        ({"model": ""}, "at least 1"),
        ({"api_key_env": "NO_SUCH_VARIABLE"}, "no environment variable"),
        ({"api_key": "sk-1"}, "Extra inputs"),
        ({"extra_body": {"model": "x", "stream": False}}, "Remove model, stream"),
        ({"timeouts": {"connect": 0}}, "greater than 0"),
        ({"timeouts": {"read": 1}}, "Extra inputs"),
        ({"retries": 11}, "less than or equal to 10"),
        ({"context_window": 0}, "greater than or equal to 1"),
        ({"image_tokens": 0}, "greater than 0"),
    ],
)
def test_wrong_settings_are_told(change, words):
    with pytest.raises(ValidationError, match=words):
        read_settings({**SECTION, **change})


def test_a_missing_client_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setattr("omni_realtime.engine.chat_completions.settings.find_spec", lambda _: None)
    with pytest.raises(ValidationError, match=r"pip install 'omni-realtime\[http\]'"):
        read_settings(SECTION)


def test_addresses_of_the_api_and_of_the_server_itself():
    assert read_settings(SECTION).base_url == "http://127.0.0.1:8000/v1"
    assert read_settings(SECTION).root_url == "http://127.0.0.1:8000"
    assert read_settings({**SECTION, "base_url": "https://host/models"}).root_url == "https://host/models"
