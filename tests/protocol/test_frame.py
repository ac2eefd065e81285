"""Frames of text that no UTF-8 can carry."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.protocol import encode, whole_characters
from omni_realtime.protocol.frame import to_frame
from omni_realtime.protocol.server_events import ErrorEvent


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", ""),
        ("plain", "plain"),
        ("é日😀", "é日😀"),
        ("\ud83d", "\ufffd"),
        ("a\udc00b", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
    ],
)
def test_halves_of_surrogate_pairs_join_or_are_replaced(text: str, whole: str) -> None:
    assert whole_characters(text) == whole


@given(st.text(st.characters(exclude_categories=[])))
def test_every_text_becomes_a_frame(text: str) -> None:
    assert orjson.loads(to_frame({"a": [text, {text: (text, 1)}]}))["a"][0] == whole_characters(text)


@given(st.text())
def test_text_without_halves_stays_as_it_is(text: str) -> None:
    assert whole_characters(text) == text


def test_what_cannot_be_json_is_still_an_error() -> None:
    with pytest.raises(TypeError):
        to_frame({"a": object()})


def test_an_event_with_half_a_surrogate_pair_is_a_frame() -> None:
    frame = encode(ErrorEvent(event_id="e", error_type="server_error", message="It said \ud800."))
    assert orjson.loads(frame)["error"]["message"] == "It said \ufffd."
