"""What goes wrong with the user's audio."""

from __future__ import annotations

import base64
import math
from itertools import cycle
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_realtime.audio import FORMATS, resample
from omni_realtime.protocol import ServerVad, decode
from omni_realtime.session import Score
from omni_realtime.session.input_buffer import InputBuffer
from omni_realtime.session.turn_detector import TurnDetector
from omni_realtime.testing import spoken_reply, text_reply, tone

SPEAKING = [part for _ in range(3) for part in (0.4, 0.9)]
NOTHING = text_reply("")


def pcm(samples: Any) -> bytes:
    encoded: bytes = (samples * 32767).astype("<i2").tobytes()
    return encoded


def spoken_pcm(seconds: list[float]) -> bytes:
    return pcm(np.concatenate([tone(length, level=0.0 if index % 2 else 0.3) for index, length in enumerate(seconds)]))


def told(client: Any) -> list[tuple[Any, ...]]:
    """What the client was told of its turns, ids and responses apart."""
    keys = ("audio_start_ms", "audio_end_ms")
    kinds = ("input_audio_buffer.", "conversation.item.added")
    return [(event["type"], *(event.get(key) for key in keys)) for event in client.events if event["type"].startswith(kinds)]


def samples_of(client: Any) -> list[Any]:
    """The audio of each user message, as the model gets it."""
    return [entry.audio[0].samples for entry in client.session._conversation if entry.audio]


def test_an_append_of_odd_bytes_is_carried_to_the_next(connect: Any) -> None:
    client = connect(NOTHING, input_rate=24000, manual=True)
    audio = pcm(tone(0.3))
    assert client.append(audio, size=777) == []
    client.commit()
    assert pcm(samples_of(client)[0] * 32768 / 32767) == audio


def test_a_commit_ends_the_stream_so_its_odd_byte_does_not_shift_the_next_turn(connect: Any) -> None:
    client = connect(NOTHING, input_rate=24000, manual=True)
    audio = pcm(tone(0.3))
    client.append(audio + b"\x01")
    client.commit()
    client.append(audio)
    client.commit()
    first, second = samples_of(client)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("audio", ["AA!!AA==", "AAA", "AAAA\n", "data:audio/wav;base64,AAAA", "_-__", "", None, 5])
def test_foreign_base64_appends_nothing(connect: Any, audio: object) -> None:
    client = connect(NOTHING, manual=True)
    client.speak(0.2)
    (error,) = client.send({"type": "input_audio_buffer.append", "audio": audio, "event_id": "mine"})
    assert (error["type"], error["error"]["param"], error["error"]["event_id"]) == ("error", "audio", "mine")
    client.commit()
    assert len(samples_of(client)[0]) == 3200


@pytest.mark.parametrize(("size", "fits"), [(9599, True), (9600, True), (9601, False)])
def test_overflow_is_an_error_and_leaves_the_buffer(connect: Any, size: int, fits: bool) -> None:
    client = connect(NOTHING, manual=True, limits={"input_buffer_bytes": 9600})
    heard = client.append(bytes(size))
    assert [event["error"]["code"] for event in heard] == ([] if fits else ["input_audio_buffer_full"])
    assert client.append(bytes(9600)) == [] or fits
    assert client.clear()[0]["type"] == "input_audio_buffer.cleared"
    assert client.append(bytes(9600)) == []
    assert client.append(b"ab")[0]["error"]["code"] == "input_audio_buffer_full"
    assert client.commit()[0]["type"] == "input_audio_buffer.committed"
    assert client.append(bytes(9600)) == []


def test_an_append_of_15_mib_is_legal(connect: Any) -> None:
    client = connect(NOTHING, manual=True)
    assert client.append(bytes(15 * 1024 * 1024)) == []
    assert client.commit()[0]["type"] == "input_audio_buffer.committed"


@pytest.mark.parametrize("milliseconds", [0, 1, 99])
def test_a_commit_of_less_than_100_ms_is_empty(connect: Any, milliseconds: int) -> None:
    client = connect(NOTHING, manual=True)
    if milliseconds:
        client.append(bytes(48 * milliseconds))
    (error,) = client.commit()
    assert error["error"]["code"] == "input_audio_buffer_commit_empty"
    assert f"only has {milliseconds}.00ms of audio" in error["error"]["message"]
    client.append(bytes(48 * (100 - milliseconds)))
    assert client.commit()[0]["type"] == "input_audio_buffer.committed"
    assert len(samples_of(client)[0]) == 1600


def test_a_manual_commit_amid_speech_is_one_item_and_restarts_the_detector(connect: Any, types: Any) -> None:
    client = connect(NOTHING)
    started = client.speak(0.5)[0]["item_id"]
    epoch = client.session._intake._epoch
    heard = client.commit()
    assert types(heard) == [
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert heard[1]["item_id"] == started
    assert len(samples_of(client)[0]) == 8000
    assert client.session.speech_scored(epoch, [1.0] * 9, client.now) == [], "what was scored before is of no interest"
    heard = client.speak(0.5, 1.0)
    assert [event["type"] for event in heard[:2]] == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"]
    assert heard[0]["audio_start_ms"] == 500, "nothing of what was committed comes again"
    assert len(client.items) == 2


def test_a_manual_commit_in_silence_takes_what_is_there(connect: Any) -> None:
    client = connect(NOTHING)
    client.speak(0.0, 0.5)
    assert len(client.commit()) == 3
    assert len(samples_of(client)[0]) == 8000


@pytest.mark.parametrize("size", [960, 1001, 4800])
def test_speech_silence_speech_in_one_big_append_gives_the_same_events_as_frames(connect: Any, size: int) -> None:
    whole, streamed = connect(NOTHING), connect(NOTHING)
    whole.speak(*SPEAKING)
    streamed.speak(*SPEAKING, size=size)
    assert told(whole) == told(streamed)
    assert len(samples_of(whole)) == 3
    for one, other in zip(samples_of(whole), samples_of(streamed), strict=True):
        assert np.array_equal(one, other)


@settings(deadline=None, max_examples=40)
@given(
    rates=st.sampled_from([(24000, 16000), (16000, 16000), (16000, 8000), (24000, 24000), (22050, 16000)]),
    padding=st.integers(0, 400),
    sizes=st.lists(st.integers(300, 9000), min_size=1, max_size=5),
    name=st.sampled_from(["audio/pcm", "audio/pcmu", "audio/pcma"]),
)
def test_the_first_syllable_is_not_lost(connect: Any, rates: tuple[int, int], padding: int, sizes: list[int], name: str) -> None:
    """Each turn is exactly the stretch that its events name of the whole stream, resampled at once: the prefix comes from a ring buffer."""
    audio_format, rate = FORMATS[name], rates[0]
    client = connect(NOTHING, input_rate=rate, detector=(rates[1], 256))
    client.update_input(format={"type": name}, turn_detection={"prefix_padding_ms": padding, "silence_duration_ms": 200})
    noise = np.random.default_rng(0).normal(0, 0.001, audio_format.rate * 4).astype(np.float32)
    loud = [tone(length, rate=audio_format.rate, level=level) for length, level in [(0.3, 0), (0.5, 0.3), (0.9, 0)] * 2]
    stream = np.concatenate(loud)
    audio = audio_format.encode(stream + noise[: len(stream)])
    whole = resample(audio_format.decode(audio), audio_format.rate, rate)
    for size in cycle(sizes):
        client.append(audio[:size])
        audio = audio[size:]
        if not audio:
            break
    turns = list(zip(client.of("input_audio_buffer.speech_started"), client.of("input_audio_buffer.speech_stopped"), strict=True))
    assert len(turns) == len(samples_of(client)) == 2
    for (started, stopped), samples in zip(turns, samples_of(client), strict=True):
        start, end = (event * rate // 1000 for event in (started["audio_start_ms"], stopped["audio_end_ms"]))
        held_back = rate // 8  # by the resampler of the model, where it is slower than the detector's
        assert end - start - held_back <= len(samples) <= end - start + rate // 1000 + 1
        begins = range(max(0, start - 1), start + rate // 1000 + 2)
        assert any(np.array_equal(samples, whole[begin : begin + len(samples)]) for begin in begins)
    frame_ms = 256 * 1000 / rates[1]
    assert max(0, 300 - padding - frame_ms) - 1 <= turns[0][0]["audio_start_ms"] <= max(0, 300 - padding) + 1


def test_prefix_padding_does_not_reach_into_the_turn_before(connect: Any) -> None:
    client = connect(NOTHING)
    client.update_input(turn_detection={"prefix_padding_ms": 5000, "silence_duration_ms": 100})
    client.speak(0.4, 0.2, 0.4, 0.2)
    (_, first_end), (second_start, _) = [
        (started["audio_start_ms"], stopped["audio_end_ms"])
        for started, stopped in zip(
            client.of("input_audio_buffer.speech_started"), client.of("input_audio_buffer.speech_stopped"), strict=True
        )
    ]
    assert second_start == first_end


def test_a_silence_of_many_minutes_is_not_kept_while_a_detector_listens(connect: Any) -> None:
    client = connect(NOTHING, limits={"input_buffer_bytes": 48_000 * 15})
    for _ in range(30):
        assert client.speak(0.0, 1.0) == []
    assert client.session._intake._buffer.retained_ms <= 10_100
    assert client.speak(0.5, 1.0)[0]["audio_start_ms"] == pytest.approx(29_700, abs=40)


def test_an_unknown_spelling_of_a_format_is_refused_and_the_echo_is_what_is_in_force(connect: Any) -> None:
    client = connect(NOTHING)
    for spelling in ("pcm16", {"type": "pcm16"}, {"type": "audio/pcm", "rate": 16000}, {"type": "g711_ulaw"}):
        (error,) = client.update_input(format=spelling)
        assert error["error"]["param"].startswith("session.audio.input.format")
    (updated,) = client.update_input(format={"type": "audio/pcmu"})
    assert updated["session"]["audio"]["input"]["format"] == {"type": "audio/pcmu"}


@pytest.mark.parametrize("law", ["audio/pcmu", "audio/pcma"])
def test_g711_counts_8_bytes_a_millisecond_and_takes_odd_lengths(connect: Any, law: str) -> None:
    client = connect(NOTHING, session={"audio": {"input": {"format": {"type": law}}}})
    silence = FORMATS[law].encode(np.zeros(160, np.float32))
    voice = FORMATS[law].encode(tone(0.5, rate=8000))
    for _ in range(50):
        assert client.append(silence) == []
    client.append(voice, size=160)
    for _ in range(50):
        client.append(silence)
    started, stopped = client.last("input_audio_buffer.speech_started"), client.last("input_audio_buffer.speech_stopped")
    assert started["audio_start_ms"] == pytest.approx(700, abs=32)
    assert stopped["audio_end_ms"] == pytest.approx(2000, abs=48)
    client.clear()
    client.append(FORMATS[law].encode(np.zeros(801, np.float32)))
    assert len(client.commit()) == 3
    assert client.session._intake._buffer.received == (100 * 160 + 4000 + 801) * 3


def test_a_change_of_format_amid_the_buffer_keeps_what_is_there(connect: Any) -> None:
    client = connect(NOTHING)
    for name in ("audio/pcm", "audio/pcmu", "audio/pcma", "audio/pcm"):
        client.update_input(format={"type": name})
        client.append(FORMATS[name].encode(tone(0.25, rate=FORMATS[name].rate)))
    started = client.last("input_audio_buffer.speech_started")
    client.append(bytes(48000))
    assert (started["audio_start_ms"], len(client.of("input_audio_buffer.speech_stopped"))) == (0, 1)
    samples = samples_of(client)[0]
    assert len(samples) == pytest.approx(1.5 * 16000, abs=1200)
    quarter = 4000
    for part in range(4):
        inner = samples[part * quarter + 400 : (part + 1) * quarter - 400]
        assert float(np.sqrt(np.mean(inner**2))) == pytest.approx(0.3 / math.sqrt(2), rel=0.05)


def test_a_detector_that_answers_late_finds_the_same_turns(connect: Any) -> None:
    at_once = connect(NOTHING)
    at_once.speak(*SPEAKING)
    late = connect(NOTHING)
    scores: list[Score] = []
    append = {"type": "input_audio_buffer.append"}
    audio = spoken_pcm(SPEAKING)
    for start in range(0, len(audio), 960):
        event = decode(orjson.dumps(append | {"audio": base64.b64encode(audio[start : start + 960]).decode()}).decode())
        scores += late.session.receive(event, late.now)
    for score in scores:
        late.take([score])
    assert told(late) == told(at_once)


@pytest.mark.parametrize("frame", ["nonsense", "null", "[]", '"x"', "{}", '{"type":5}', '{"type":"no.such"}', b"\x00", '{"a":NaN}'])
def test_a_bad_frame_is_one_error(connect: Any, frame: str | bytes) -> None:
    client = connect(NOTHING)
    (error,) = client.send(frame)
    assert error["type"] == "error"
    assert error["error"]["type"] == "invalid_request_error"
    assert client.say("still here")[0]["type"] == "conversation.item.added"


def test_no_audio_for_a_model_that_takes_none(connect: Any) -> None:
    client = connect(NOTHING, capabilities={"audio_input": False, "transcription_models": ()}, detector=None)
    assert client.append(bytes(9600))[0]["error"]["message"] == "This model takes no audio; send text items."
    audio = {"type": "input_audio", "audio": base64.b64encode(bytes(100)).decode()}
    (error,) = client.item({"type": "message", "role": "user", "content": [audio]})
    assert error["error"]["param"] == "item.content.0.type"


def test_a_detector_frame_of_nan_is_not_speech(connect: Any) -> None:
    client = connect(NOTHING, probability=lambda _: math.nan)
    assert client.speak(1.0) == []


def test_turns_end_with_a_very_low_threshold(connect: Any) -> None:
    client = connect(NOTHING, probability=lambda frame: 0.9 if np.abs(frame).max() > 0.01 else 0.001)
    client.update_input(turn_detection={"threshold": 0.1})
    client.speak(0.5, 1.0)
    assert len(client.of("input_audio_buffer.speech_stopped")) == 1


def test_turn_detection_off_and_on_again(connect: Any) -> None:
    client = connect(spoken_reply("Hi", tone(0.1)))
    client.speak(0.5)
    assert client.update_input(turn_detection=None)[0]["session"]["audio"]["input"]["turn_detection"] is None
    assert client.speak(0.0, 1.0) == [], "an announced speech is dropped with its detector"
    (updated,) = client.update_input(turn_detection={"type": "server_vad", "threshold": 0.6})
    assert updated["session"]["audio"]["input"]["turn_detection"]["threshold"] == 0.6
    heard = client.speak(0.0, 0.5, 0.5, 1.0)
    assert heard[0]["type"] == "input_audio_buffer.speech_started"
    assert heard[0]["audio_start_ms"] == pytest.approx(1700, abs=50)


def test_a_changed_detector_goes_on_with_the_speech_that_it_hears(connect: Any) -> None:
    client = connect(NOTHING)
    started = client.speak(0.5)[0]["item_id"]
    client.update_input(turn_detection={"silence_duration_ms": 900})
    assert client.speak(0.0, 0.6) == []
    assert client.speak(0.0, 0.6)[0]["item_id"] == started


def test_the_announced_id_of_a_speech_is_not_free(connect: Any) -> None:
    client = connect(NOTHING)
    started = client.speak(0.5)[0]["item_id"]
    (error,) = client.say("mine", item_id=started)
    assert error["error"]["code"] == "item_create_duplicate_item_id"
    client.speak(0.0, 1.0)
    assert client.items[0] == started


def test_an_id_that_the_server_would_make_next_may_be_the_clients(connect: Any) -> None:
    client = connect(spoken_reply("Hi", tone(0.1)))
    ahead = 80
    for number in range(ahead // 2):
        client.say("mine", item_id=f"item_0123456789ab{ahead + number:x}")
    client.speak(0.5, 1.0)
    assert len(set(client.items)) == len(client.items) == ahead // 2 + 2


def test_speech_events_alone_where_the_detector_neither_answers_nor_interrupts(connect: Any) -> None:
    client = connect(NOTHING, autoplay=False)
    client.update_input(turn_detection={"create_response": False, "interrupt_response": False})
    client.create()
    client.speak(0.5, 1.0)
    assert len(client.of("input_audio_buffer.committed")) == 1
    assert len(client.of("response.created")) == 1
    assert client.of("response.done") == []


@pytest.mark.parametrize(
    ("frames", "changes"),
    [
        ([0.5], {0: "started"}),
        ([0.49], {}),
        ([0.9, 0.4, 0.4, 0.4, 0.4], {0: "started"}),
        ([0.9, 0.3, 0.4, 0.4], {0: "started", 3: "stopped"}),
        ([0.9, 0.3, 0.3, 0.6, 0.3, 0.3, 0.3], {0: "started", 6: "stopped"}),
        ([0.9, math.nan, math.nan, math.nan, math.nan, 0.9], {0: "started", 3: "stopped", 5: "started"}),
    ],
)
def test_speech_goes_on_while_the_probability_is_little_below_the_threshold(frames: list[float], changes: dict[int, str]) -> None:
    detector = TurnDetector(32.0)
    vad = ServerVad(silence_duration_ms=96)
    told = [detector.feed(probability, vad) for probability in frames]
    assert {index: change for index, change in enumerate(told) if change} == changes


def test_a_buffer_without_a_detector_makes_no_frames() -> None:
    buffer = InputBuffer(FORMATS["audio/pcm"], model_rate=16000, detector_rate=None, detector_frame=None)
    assert len(buffer.append(bytes(9600))) == 0
    buffer.set_format(FORMATS["audio/pcmu"])
    assert len(buffer.append(bytes(1600))) == 0
    assert len(buffer.take_all()) == 3200 + 3200
