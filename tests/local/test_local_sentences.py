from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime_local.sentences import LONGEST, SentenceSplitter


def split(*pieces: str) -> list[str]:
    splitter = SentenceSplitter()
    return [sentence for piece in pieces for sentence in splitter.feed(piece)] + splitter.finish()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("  \n ", []),
        ("Paris", ["Paris"]),
        ("It is Paris. Really! Is it?", ["It is Paris.", "Really!", "Is it?"]),
        ("Ask Dr. Smith. He knows.", ["Ask Dr. Smith.", "He knows."]),
        ("J. R. Smith wrote it.", ["J. R. Smith wrote it."]),
        ("Fruit, e.g. apples. Or pears.", ["Fruit, e.g. apples.", "Or pears."]),
        ("It costs 3.5 euros. Cheap.", ["It costs 3.5 euros.", "Cheap."]),
        ("It is 4. It is even.", ["It is 4.", "It is even."]),
        ("1. Boil water.\n2. Add tea.", ["1. Boil water.", "2. Add tea."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("Well... yes. No", ["Well...", "yes.", "No"]),
        ("Title\n\nText goes on", ["Title", "Text goes on"]),
    ],
)
def test_text_is_split_at_the_ends_of_sentences(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


def test_a_sentence_is_given_as_soon_as_the_next_begins() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("It is Paris.") == []
    assert splitter.feed(" It") == ["It is Paris."]


def test_text_without_full_stops_is_split_at_a_pause_else_at_a_space_else_anywhere() -> None:
    pause = "word " * 30 + "pause, " + "word " * 30
    assert split(pause)[0].endswith("pause,")
    assert all(len(part) <= LONGEST for part in split("word " * 200))
    assert split("x" * 1000) == ["x" * LONGEST] * 4 + ["x" * (1000 - 4 * LONGEST)]


TEXT = st.text(st.sampled_from("ab .,!?\n\"'1Dr…)"), max_size=800)


@given(TEXT)
def test_nothing_but_white_space_is_lost(text: str) -> None:
    sentences = split(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() and sentence for sentence in sentences)


@given(TEXT, st.lists(st.integers(0, 800), max_size=20))
def test_the_pieces_do_not_matter(text: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(bounds)]
    assert split(*pieces) == split(text)
