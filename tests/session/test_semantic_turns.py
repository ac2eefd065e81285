"""Semantic VAD: a turn ends at a pause that sounds like its end, or after the longest silence of its eagerness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_realtime.audio import FORMATS
from omni_realtime.protocol import InputAudioBufferAppend
from omni_realtime.session import Score, ScoreTurn, Send
from omni_realtime.testing import spoken_reply, text_reply, tone

NOTHING = text_reply("")
RATE, WINDOW = 16000, 128_000
FRAME_MS = 32
SCORED_MS, DECIDED_MS = 224, 320
"""Where pauses of 200 and 300 ms end in frames of 32 ms."""
TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]

Semantic = Callable[..., Any]


def semantic(**fields: object) -> dict[str, Any]:
    return {"type": "semantic_vad", **fields}


@pytest.fixture(scope="session")
def listen(connect: Any) -> Semantic:
    """Connects to a session with semantic VAD; its turns are neither answered nor judged by themselves unless told otherwise."""

    def listen(
        *scripts: Any, eagerness: str = "auto", answers: bool = False, scorer: tuple[int, int] = (RATE, WINDOW), **options: Any
    ) -> Any:
        turn_detection = semantic(eagerness=eagerness, create_response=answers)
        return connect(
            *(scripts or [NOTHING]),
            capabilities={"turn_detection": ("server_vad", "semantic_vad")},
            session={"audio": {"input": {"turn_detection": turn_detection}}},
            scorer=scorer,
            **options,
        )

    return listen


class Judge:
    """Gives its probabilities one after another, the last for ever, and notes what it heard."""

    def __init__(self, *probabilities: float) -> None:
        self._probabilities = list(probabilities)
        self.heard: list[Any] = []

    def __call__(self, samples: Any) -> float:
        self.heard.append(samples)
        return self._probabilities[min(len(self.heard), len(self._probabilities)) - 1]


class Host:
    """Carries out nothing by itself: detector and scorer answer when the test says so."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.session = client.session
        self.asked: list[ScoreTurn] = []
        self.session.receive(append(1), client.now)  # what the resampler holds back

    def hear(self, *runs: tuple[float, int]) -> list[str]:
        """Answer the detector's question: so many frames of a probability each, in one answer; return the events that it brings."""
        probabilities = [probability for probability, frames in runs for _ in range(frames)]
        self.client.session.receive(append(len(probabilities)), self.client.now)
        return self.take(self.session.speech_scored(self.session._intake._epoch, probabilities, self.client.now))

    def answer(self, probability: float, question: int = -1) -> list[str]:
        return self.take(self.session.turn_scored(self.asked[question].pause, probability, self.client.now))

    def take(self, effects: Iterable[Any]) -> list[str]:
        heard = list(effects)
        self.asked += [effect for effect in heard if isinstance(effect, ScoreTurn)]
        events = self.client.take([effect for effect in heard if isinstance(effect, Send)])
        return [event["type"] for event in events]


def append(frames: int) -> InputAudioBufferAppend:
    return InputAudioBufferAppend(audio=bytes(frames * FRAME_MS * 48))


def told(client: Any) -> list[tuple[Any, ...]]:
    keys = ("audio_start_ms", "audio_end_ms")
    return [
        (event["type"], *(event.get(key) for key in keys)) for event in client.events if event["type"].startswith("input_audio_buffer.")
    ]


def samples_of(client: Any) -> list[Any]:
    return [entry.audio[0].samples for entry in client.session._conversation if entry.audio]


def test_semantic_vad_is_echoed_with_its_defaults(listen: Semantic) -> None:
    client = listen()
    (updated,) = client.update_input(turn_detection={"type": "semantic_vad", "eagerness": "low"})
    echoed = updated["session"]["audio"]["input"]["turn_detection"]
    assert echoed == {"type": "semantic_vad", "eagerness": "low", "create_response": False, "interrupt_response": True}


def test_a_complete_turn_ends_soon(listen: Semantic, types: Any) -> None:
    client = listen(spoken_reply("Hi", tone(0.1)), completeness=Judge(0.9), answers=True)
    heard = client.speak(0.0, 0.32, 0.96, 0.6, size=960)
    assert types(heard)[:6] == [*TURN, "response.created"]
    started, stopped = heard[:2]
    assert started["item_id"] == stopped["item_id"] == heard[2]["item_id"] == client.items[0]
    assert (started["audio_start_ms"], stopped["audio_end_ms"]) == (20, 1280 + DECIDED_MS)
    assert len(samples_of(client)[0]) == (1280 + DECIDED_MS - 20) * 16


@pytest.mark.parametrize(("eagerness", "wait_ms"), [("low", 8000), ("medium", 4000), ("auto", 4000), ("high", 2000)])
def test_an_incomplete_turn_ends_at_the_longest_wait(listen: Semantic, eagerness: str, wait_ms: int) -> None:
    client = listen(eagerness=eagerness, completeness=Judge(0.1))
    client.speak(0.96, wait_ms / 1000, size=960)
    assert client.of("input_audio_buffer.speech_stopped") == []
    client.speak(0.0, 0.1)
    assert client.last("input_audio_buffer.speech_stopped")["audio_end_ms"] == pytest.approx(960 + wait_ms, abs=FRAME_MS)
    assert len(samples_of(client)[0]) == pytest.approx((960 + wait_ms) * 16, abs=FRAME_MS * 16)


@pytest.mark.parametrize(
    ("eagerness", "probability", "complete"),
    [
        *(("low", 0.79, False), ("low", 0.8, True)),
        *(("medium", 0.49, False), ("medium", 0.5, True), ("auto", 0.49, False), ("auto", 0.5, True)),
        *(("high", 0.29, False), ("high", 0.3, True)),
        *(("high", math.nan, False), ("high", -1.0, False), ("low", 7.0, True)),
    ],
)
def test_the_eager_take_less_for_complete(listen: Semantic, eagerness: str, probability: float, complete: bool) -> None:
    client = listen(eagerness=eagerness, completeness=Judge(probability))
    client.speak(0.96, 1.0)
    assert bool(client.of("input_audio_buffer.speech_stopped")) == complete


def test_speech_that_goes_on_is_scored_again_at_its_next_pause(listen: Semantic) -> None:
    judge = Judge(0.1, 0.2, 0.9)
    client = listen(completeness=judge)
    client.speak(0.96, 0.64, 0.96, 0.64, 0.96, 0.64, size=960)
    assert told(client) == [
        ("input_audio_buffer.speech_started", 0, None),
        ("input_audio_buffer.speech_stopped", None, 4160 + DECIDED_MS),
        ("input_audio_buffer.committed", None, None),
    ]
    assert [len(heard) for heard in judge.heard] == [(end + SCORED_MS) * 16 for end in (960, 2560, 4160)]
    assert np.array_equal(judge.heard[-1], samples_of(client)[0][: len(judge.heard[-1])]), "the scorer hears what the model hears"


def test_a_pause_is_scored_once(listen: Semantic) -> None:
    judge = Judge(0.1)
    client = listen(completeness=judge)
    client.speak(0.96, 3.5, size=960)
    assert len(judge.heard) == 1


@pytest.mark.parametrize(
    ("input_rate", "scorer"), [(16000, (16000, 16000)), (24000, (16000, 8000)), (16000, (8000, 12345)), (24000, (24000, 99))]
)
def test_the_scorer_hears_the_end_of_the_turn_at_its_own_rate(listen: Semantic, input_rate: int, scorer: tuple[int, int]) -> None:
    judge = Judge(0.1)
    client = listen(completeness=judge, scorer=scorer, input_rate=input_rate)
    client.speak(3.2, 0.5, size=4800)
    (heard,) = judge.heard
    assert len(heard) == scorer[1]
    silence = SCORED_MS * scorer[0] // 1000
    assert np.abs(heard[-min(silence - 200, len(heard)) :]).max() < 0.01
    assert len(heard) <= silence or np.sqrt(np.mean(heard[: -silence - 200] ** 2)) == pytest.approx(0.3 / math.sqrt(2), rel=0.05)


def test_speech_within_300_ms_is_no_pause_whatever_the_score(listen: Semantic) -> None:
    judge = Judge(0.99)
    client = listen(completeness=judge)
    client.speak(0.96, 0.288, 0.96, 0.288, 0.96, 0.64, size=960)
    assert len(judge.heard) == 3
    assert len(client.of("input_audio_buffer.speech_stopped")) == len(client.items) == 1


@pytest.mark.parametrize("size", [960, 1001, 4800, 10**6])
def test_one_big_append_gives_the_same_turns_as_frames(listen: Semantic, size: int) -> None:
    spoken = [part for pause in (0.4, 0.25, 0.9, 3.0, 0.5) for part in (0.7, pause)]
    probabilities = (0.9, 0.9, 0.1, 0.6, 0.8)
    whole, streamed = listen(completeness=Judge(*probabilities)), listen(completeness=Judge(*probabilities))
    whole.speak(*spoken)
    streamed.speak(*spoken, size=size)
    assert told(whole) == told(streamed)
    assert len(samples_of(whole)) > 2
    for one, other in zip(samples_of(whole), samples_of(streamed), strict=True):
        assert np.array_equal(one, other)


def test_a_late_score_changes_nothing_and_what_follows_waits_for_it(listen: Semantic) -> None:
    host = Host(listen())
    assert host.hear((0.9, 20), (0.0, 20), (0.9, 10)) == TURN[:1]
    assert host.hear((0.9, 10)) == []
    assert host.answer(0.9) == [*TURN[1:], TURN[0]]
    assert host.client.last(TURN[1])["audio_end_ms"] == 20 * FRAME_MS + DECIDED_MS
    assert host.client.last(TURN[0])["audio_start_ms"] == 40 * FRAME_MS - 300


def test_a_score_that_comes_before_300_ms_waits_for_them(listen: Semantic) -> None:
    host = Host(listen())
    host.hear((0.9, 20), (0.0, 8))
    assert host.answer(0.9) == []
    assert host.hear((0.0, 1)) == []
    assert host.hear((0.0, 1)) == TURN[1:]


def test_what_is_heard_behind_a_pause_waits_for_its_score(listen: Semantic) -> None:
    host = Host(listen(eagerness="high"))
    assert host.hear((0.9, 20), (0.0, 200), (0.9, 30)) == TURN[:1]
    assert host.answer(0.1) == [*TURN[1:], TURN[0]]
    assert host.client.last(TURN[1])["audio_end_ms"] == (20 + 63) * FRAME_MS


@pytest.mark.parametrize("after", ["resume", "commit", "clear", "off", "off and on", "close"])
def test_a_stale_score_is_ignored(listen: Semantic, after: str) -> None:
    host = Host(listen(eagerness="high"))
    host.hear((0.9, 20), (0.0, 8))
    match after:
        case "resume":
            host.hear((0.9, 1), (0.0, 5))
        case "commit":
            host.client.commit()
        case "clear":
            host.client.clear()
        case "off" | "off and on":
            host.client.update_input(turn_detection=None)
            if after == "off and on":
                host.client.update_input(turn_detection=semantic())
        case "close":
            host.session.shutdown(host.client.now)
    assert host.answer(0.9) == []
    if after not in {"close", "off"}:
        host.hear((0.9, 10), (0.0, 12))
        assert host.answer(0.9, 0) == []
        assert host.answer(0.9)[-len(TURN) + 1 :] == TURN[1:]


def test_a_score_of_nothing_is_ignored(listen: Semantic) -> None:
    client = listen()
    assert client.session.turn_scored(0, 1.0, client.now) == []
    client.speak(0.5)
    assert client.session.turn_scored(0, 1.0, client.now) == client.session.turn_scored(1, 1.0, client.now) == []


def test_a_manual_commit_amid_a_semantic_turn_is_one_item(listen: Semantic, types: Any) -> None:
    client = listen(completeness=Judge(0.1))
    started = client.speak(0.5, 1.0)[0]["item_id"]
    heard = client.commit()
    assert types(heard) == TURN[1:]
    assert heard[1]["item_id"] == started
    assert len(samples_of(client)[0]) == 24000


def test_from_server_vad_to_semantic_vad_amid_speech_is_the_same_turn(listen: Semantic) -> None:
    client = listen(completeness=Judge(0.9))
    client.update_input(turn_detection={"type": "server_vad", "silence_duration_ms": 5000, "create_response": False})
    started = client.speak(0.96, 0.96)[0]["item_id"]
    client.update_input(turn_detection=semantic(create_response=False))
    heard = client.speak(0.0, 0.1)
    assert [event["type"] for event in heard] == TURN[1:]
    assert heard[0]["item_id"] == heard[1]["item_id"] == started
    assert len(samples_of(client)[0]) == heard[0]["audio_end_ms"] * 16
    assert heard[0]["audio_end_ms"] == pytest.approx(1920, abs=FRAME_MS)


def test_from_semantic_vad_to_server_vad_amid_speech_is_the_same_turn(listen: Semantic) -> None:
    client = listen(completeness=Judge(0.1))
    started = client.speak(0.96, 0.96)[0]["item_id"]
    client.update_input(turn_detection={"type": "server_vad", "silence_duration_ms": 1200, "create_response": False})
    heard = client.speak(0.0, 0.32)
    assert [event["type"] for event in heard] == TURN[1:]
    assert heard[0]["item_id"] == started
    assert len(samples_of(client)[0]) == heard[0]["audio_end_ms"] * 16
    assert heard[0]["audio_end_ms"] == pytest.approx(960 + 1200, abs=FRAME_MS)


def test_semantic_vad_off_amid_speech_keeps_the_audio_for_a_manual_commit(listen: Semantic) -> None:
    client = listen(completeness=Judge(0.1))
    started = client.speak(0.96, 0.96)[0]["item_id"]
    client.update_input(turn_detection=None)
    committed = client.commit()[0]
    assert committed["type"] == "input_audio_buffer.committed"
    assert committed["item_id"] != started
    assert len(samples_of(client)[0]) == 1920 * 16


def test_a_change_to_server_vad_while_a_score_is_due_loses_nothing(listen: Semantic) -> None:
    host = Host(listen())
    host.hear((0.9, 20), (0.0, 14))
    host.client.update_input(turn_detection={"type": "server_vad", "silence_duration_ms": 700, "create_response": False})
    assert host.answer(0.9) == [], "only semantic VAD listens to the score"
    assert host.hear((0.0, 8)) == TURN[1:]
    assert len(samples_of(host.client)[0]) == (20 + 22) * FRAME_MS * 16


def test_a_change_of_eagerness_counts_from_the_next_frame(listen: Semantic) -> None:
    host = Host(listen(eagerness="low"))
    host.hear((0.9, 20), (0.0, 12))
    assert host.answer(0.6) == []
    host.client.update_input(turn_detection={"eagerness": "high"})
    assert host.hear((0.0, 1)) == TURN[1:]


def test_a_change_of_format_amid_a_semantic_turn_keeps_what_is_there(listen: Semantic) -> None:
    judge = Judge(0.9)
    client = listen(completeness=judge)
    client.speak(0.96)
    client.update_input(format={"type": "audio/pcmu"})
    client.append(FORMATS["audio/pcmu"].encode(np.zeros(8000, np.float32)))
    assert len(client.of("input_audio_buffer.committed")) == 1
    assert len(judge.heard[0]) == pytest.approx((960 + SCORED_MS) * 16, abs=130 * 16)


@pytest.mark.parametrize("interrupt", [True, False])
def test_a_semantic_turn_interrupts_a_response_unless_told_otherwise(listen: Semantic, interrupt: bool) -> None:
    client = listen(spoken_reply("One two", tone(0.2)), autoplay=False, completeness=Judge(0.9))
    client.update_input(turn_detection=semantic(interrupt_response=interrupt, create_response=True))
    client.create()
    client.play(1)
    heard = client.speak(0.5)
    assert heard[0]["type"] == "input_audio_buffer.speech_started"
    done = client.of("response.done")
    assert [event["response"]["status_details"]["reason"] for event in done] == (["turn_detected"] if interrupt else [])
    client.speak(0.0, 0.6)
    assert len(client.of("input_audio_buffer.committed")) == 1
    assert len(client.of("response.created")) == (2 if interrupt else 1)


def test_semantic_vad_events_alone_without_create_response(listen: Semantic) -> None:
    client = listen(completeness=Judge(0.9))
    client.speak(0.5, 0.6)
    assert len(client.of("input_audio_buffer.committed")) == 1
    assert client.of("response.created") == []


def test_an_idle_timeout_is_no_part_of_semantic_vad(listen: Semantic) -> None:
    client = listen()
    (error,) = client.update_input(turn_detection=semantic(idle_timeout_ms=5000))
    assert error["error"]["param"] == "session.audio.input.turn_detection.idle_timeout_ms"
    client.create()
    assert client.session.deadline == client.session._expires


def test_semantic_vad_is_refused_where_only_server_vad_is_served(connect: Any) -> None:
    client = connect(NOTHING)
    (error,) = client.update_input(turn_detection=semantic())
    assert error["error"]["param"] == "session.audio.input.turn_detection.type"
    assert "served: 'server_vad', null" in error["error"]["message"]


@settings(deadline=None, max_examples=60)
@given(
    runs=st.lists(st.tuples(st.sampled_from([0.9, 0.0, 0.4, math.nan]), st.integers(1, 40)), min_size=1, max_size=12),
    groups=st.lists(st.tuples(st.integers(1, 60), st.booleans()), max_size=12),
    scores=st.lists(st.sampled_from([0.1, 0.4, 0.9]), min_size=1, max_size=8),
    eagerness=st.sampled_from(["low", "auto", "high"]),
)
def test_turns_do_not_depend_on_when_the_answers_come(
    listen: Semantic, runs: list[tuple[float, int]], groups: list[tuple[int, bool]], scores: list[float], eagerness: str
) -> None:
    """However the frames are grouped and however late the scorer is, the turns are the same."""
    frames = [(probability, 1) for probability, count in runs for _ in range(count)]
    at_once, late = Host(listen(eagerness=eagerness)), Host(listen(eagerness=eagerness))
    for host, groups_of in ((at_once, [(1, True)] * len(frames)), (late, [*groups, (len(frames), True)])):
        rest, judge, answered = frames, Judge(*scores), 0
        for size, is_answered in groups_of:
            host.hear(*rest[:size])
            rest = rest[size:]
            while is_answered and answered < len(host.asked):
                host.answer(judge(None), answered)
                answered += 1
    assert told(at_once.client) == told(late.client)
    assert len(samples_of(at_once.client)) == len(samples_of(late.client))
    for one, other in zip(samples_of(at_once.client), samples_of(late.client), strict=True):
        assert np.array_equal(one, other)


def test_a_detector_is_asked_under_semantic_vad(listen: Semantic) -> None:
    client = listen()
    client.speak(0.1)
    assert any(isinstance(effect, Score) for effect in client.effects)
