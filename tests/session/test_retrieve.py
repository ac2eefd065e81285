"""What ``conversation.item.retrieve`` gives back."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import orjson
import pytest

from omni_realtime.audio import FORMATS, resample
from omni_realtime.chat import ChatDelta
from omni_realtime.session.items import FRAME_BYTES, RETRIEVED_AUDIO_BYTES
from omni_realtime.testing import spoken_reply, tone

PCM, PCMU, PCMA = FORMATS["audio/pcm"], FORMATS["audio/pcmu"], FORMATS["audio/pcma"]


def audio_of(client: Any, item_id: str) -> bytes | None:
    audio = client.retrieve(item_id)[0]["item"]["content"][0].get("audio")
    return None if audio is None else base64.b64decode(audio)


def sent(client: Any) -> bytes:
    return b"".join(base64.b64decode(event["delta"]) for event in client.of("response.output_audio.delta"))


def close(one: bytes, other: bytes) -> bool:
    """Whether two recordings of PCM16 are the same but for resampling."""
    return len(one) == len(other) and bool(np.abs(np.frombuffer(one, "<i2") / 32768 - np.frombuffer(other, "<i2") / 32768).mean() < 0.01)


@pytest.mark.parametrize("law", ["audio/pcm", "audio/pcmu", "audio/pcma"])
def test_the_audio_of_a_user_comes_back_in_the_format_it_came_in(connect: Any, law: str) -> None:
    client = connect(session={"audio": {"input": {"format": {"type": law}, "turn_detection": None}}})
    spoken = FORMATS[law].encode(tone(1.0, rate=FORMATS[law].rate))
    client.append(spoken, size=FORMATS[law].rate // 50 * FORMATS[law].bytes_per_sample)
    client.commit()
    back = audio_of(client, client.items[0])
    assert back is not None
    as_pcm = [PCM.encode(FORMATS[law].decode(audio)) for audio in (spoken, back)]
    assert close(*as_pcm)


def test_an_answer_comes_back_as_it_was_sent(connect: Any) -> None:
    client = connect(spoken_reply("one two", tone(1.0)))
    client.create()
    assert audio_of(client, client.items[0]) == sent(client)


def test_an_answer_in_progress_comes_back_as_far_as_it_was_sent(connect: Any) -> None:
    client = connect(spoken_reply("one two", tone(1.0)), autoplay=False)
    client.create()
    client.play(1)
    (retrieved,) = client.retrieve(client.items[0])
    assert retrieved["item"]["status"] == "in_progress"
    assert base64.b64decode(retrieved["item"]["content"][0]["audio"]) == sent(client)
    assert sent(client)


def test_a_truncated_answer_comes_back_as_far_as_it_was_heard(connect: Any) -> None:
    client = connect(spoken_reply("one two three four", tone(1.0)), session={"audio": {"output": {"format": {"type": "audio/pcmu"}}}})
    client.create()
    client.truncate(client.items[0], 333)
    assert audio_of(client, client.items[0]) == sent(client)[: 333 * 8]
    client.truncate(client.items[0], 0)
    assert audio_of(client, client.items[0]) == b""


@pytest.mark.parametrize("name", ["audio/pcm", "audio/pcmu", "audio/pcma"])
def test_audio_comes_back_in_the_format_that_the_session_has_now(connect: Any, name: str) -> None:
    client = connect(spoken_reply("one two", tone(1.0)), manual=True)
    client.speak(1.0)
    client.commit()
    client.create()
    now = FORMATS[name]
    client.update(audio={"input": {"format": {"type": name}}, "output": {"format": {"type": name}}})
    users, answers = (audio_of(client, item_id) for item_id in client.items)
    assert users is not None
    assert len(users) == len(answers or b"") == now.rate * now.bytes_per_sample
    assert answers == now.encode(resample(PCM.decode(sent(client)), PCM.rate, now.rate)) or name == "audio/pcm"
    assert np.abs(now.decode(users)[now.rate // 4 : -now.rate // 4]).max() == pytest.approx(0.3, abs=0.02)


def test_an_answer_in_another_format_than_the_session_s_comes_back_in_the_session_s(connect: Any) -> None:
    client = connect(spoken_reply("one two", tone(1.0)))
    client.create(audio={"output": {"format": {"type": "audio/pcma"}}})
    assert len(sent(client)) == 8000
    assert len(audio_of(client, client.items[0]) or b"") == 48000


def spoken_for(size: int) -> list[Any]:
    """An answer whose audio has so many bytes of PCM16."""
    return [ChatDelta(text="long", audio=np.zeros(size // 2, np.float32), rate=24000), ChatDelta(finish_reason="stop")]


@pytest.mark.parametrize(("more", "fits"), [(-2, True), (0, True), (2, False)])
def test_the_bound_is_exact_for_both_sides(connect: Any, more: int, fits: bool) -> None:
    size = RETRIEVED_AUDIO_BYTES + more
    client = connect(spoken_for(size), manual=True, input_rate=24000, detector=(24000, 480))
    client.append(bytes(size))
    client.commit()
    client.create()
    for item_id in client.items:
        assert (audio_of(client, item_id) is not None) == fits
        part = client.last("conversation.item.retrieved")["item"]["content"][0]
        assert "transcript" in part, "the item is whole but for its audio"


def test_the_bound_counts_in_the_format_that_the_audio_comes_back_in(connect: Any) -> None:
    client = connect(spoken_for(2 * RETRIEVED_AUDIO_BYTES))
    client.create()
    assert audio_of(client, client.items[0]) is None
    client.update(audio={"output": {"format": {"type": "audio/pcmu"}}})
    assert len(audio_of(client, client.items[0]) or b"") == RETRIEVED_AUDIO_BYTES // 3


@pytest.mark.parametrize("words", ["x" * 200_000, "\x01" * 30_000, "語" * 60_000])
def test_audio_makes_no_frame_of_1_mib_beside_long_text(connect: Any, words: str) -> None:
    client = connect(manual=True, input_rate=24000, detector=(24000, 480))
    for milliseconds in (14_000, 11_000):
        audio = base64.b64encode(bytes(48 * milliseconds)).decode()
        content = [{"type": "input_audio", "audio": audio}, {"type": "input_text", "text": words}]
        client.item({"type": "message", "role": "user", "content": content})
    parts = [client.retrieve(item_id)[0]["item"]["content"][0].get("audio") for item_id in client.items]
    assert parts[0] is None
    assert parts[1] is not None
    assert all(len(orjson.dumps(event)) < FRAME_BYTES for event in client.of("conversation.item.retrieved"))


def test_pcma_is_kept_apart_from_pcmu(connect: Any) -> None:
    client = connect(spoken_reply("one", tone(0.4)), session={"audio": {"output": {"format": {"type": "audio/pcmu"}}}})
    client.create()
    heard = sent(client)
    client.update(audio={"output": {"format": {"type": "audio/pcma"}}})
    assert audio_of(client, client.items[0]) == PCMA.encode(PCMU.decode(heard))
