"""Which text was heard by which millisecond."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.session.alignment import Alignment

texts = st.text(st.sampled_from("ab ,.é日本語ル"), min_size=1, max_size=12)


def aligned(pieces: list[tuple[str, int]]) -> tuple[Alignment, str, int]:
    """Pieces of text, each spoken for so many samples."""
    alignment, transcript, sample = Alignment(), "".join(text for text, _ in pieces), 0
    for text, samples in pieces:
        alignment.mark(text, transcript, sample)
        sample += samples
    return alignment, transcript, sample


@given(pieces=st.lists(st.tuples(texts, st.integers(0, 50)), max_size=6), marked=st.booleans())
def test_what_is_heard_is_a_growing_prefix(pieces: list[tuple[str, int]], *, marked: bool) -> None:
    alignment, transcript, total = aligned(pieces)
    if not marked:
        alignment = Alignment()
    heard = [alignment.heard(transcript, sample, total) for sample in range(total + 1)]
    assert heard[0] == ""
    for less, more in pairwise(heard):
        assert more.startswith(less)
    assert all(transcript.startswith(prefix) for prefix in heard)
    assert total == 0 or heard[-1].rstrip() == transcript.rstrip()


@given(st.lists(st.tuples(texts, st.integers(1, 50)), min_size=1, max_size=6), st.data())
def test_a_cut_of_a_cut_is_the_shorter_cut(pieces: list[tuple[str, int]], data: st.DataObject) -> None:
    alignment, transcript, total = aligned(pieces)
    first = data.draw(st.integers(0, total))
    second = data.draw(st.integers(0, first))
    once = alignment.heard(transcript, first, total)
    twice = alignment.heard(once, second, first)
    assert once.startswith(twice)
    assert alignment.heard(once, first, first) == once


@pytest.mark.parametrize(
    ("sample", "heard"),
    [
        (0, ""),
        (999, "Hello"),
        (1000, "Hello there."),
        (1001, "Hello there."),
        (2500, "Hello there. How"),
        (4000, "Hello there. How are you?"),
    ],
)
def test_spoken_marks_are_exact_at_their_ends_and_linear_within(sample: int, heard: str) -> None:
    alignment, transcript, total = aligned([("Hello there.", 1000), (" How are you?", 3000)])
    assert alignment.heard(transcript, sample, total) == heard


def test_text_that_is_ahead_of_its_audio_was_not_heard() -> None:
    alignment = Alignment()
    transcript = "Hello there. How are you?"
    alignment.mark("Hello there.", transcript, 0)
    assert alignment.heard(transcript, 1000, 1000) == "Hello there."


def test_text_ahead_of_a_mark_that_is_not_in_the_transcript_is_ignored() -> None:
    alignment = Alignment()
    alignment.mark("Goodbye.", "Hello there.", 0)
    alignment.mark("   ", "Hello there.", 0)
    assert alignment.heard("Hello there.", 500, 1000) == "Hello"


def test_white_space_of_a_mark_may_differ() -> None:
    alignment = Alignment()
    transcript = "Hello\n\nthere.  How are you?"
    alignment.mark(" Hello there. How", transcript, 0)
    alignment.mark("are you?", transcript, 1000)
    assert alignment.heard(transcript, 1000, 2000) == "Hello\n\nthere.  How"


def test_nothing_is_heard_of_no_audio() -> None:
    assert Alignment().heard("Hello there.", 0, 0) == ""


@pytest.mark.parametrize(
    ("transcript", "heard"),
    [("one two three four", "one two"), ("今日は良い天気です", "今日は良"), ("日本 is far away", "日本 is"), ("unbreakable!", "")],
)
def test_without_marks_it_is_by_proportion_and_in_whole_words(transcript: str, heard: str) -> None:
    assert Alignment().heard(transcript, 500, 1000) == heard


def test_repeated_words_are_told_apart() -> None:
    alignment, transcript, total = aligned([("no ", 100), ("no ", 100), ("no", 100)])
    assert [alignment.heard(transcript, sample, total) for sample in (100, 200, 300)] == ["no", "no no", "no no no"]
