"""Images in a conversation: what the model is shown, and what the client is told of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from omni_realtime.chat import AudioPart, ImagePart, TextPart, Turn, Usage
from omni_realtime.session.items import RETRIEVED_AUDIO_BYTES
from omni_realtime.testing import text_reply
from omni_realtime.testing.wire_log import LARGEST_FRAME
from pictures import JPEG, chunk, data_uri, hollow_png, input_image, png, seen

Connect = Callable[..., Any]

SEES = {"image_input": True}
OK = text_reply("ok")
NOISE = bytes(range(256))


def large(size: int) -> bytes:
    """An image of about so many bytes."""
    return hollow_png()[:-12] + chunk(b"IDAT", NOISE * (size // 256)) + chunk(b"IEND")


def shown(turn: Turn) -> list[list[Any]]:
    """What each message of a prompt holds: texts, files, and the rate of audio."""
    content = {TextPart: lambda part: part.text, ImagePart: lambda part: part.data, AudioPart: lambda part: part.rate}
    return [[content[type(part)](part) for part in message.content] for message in turn.messages]


@pytest.fixture
def client(connect: Connect) -> Any:
    return connect(OK, manual=True, text=True, capabilities=SEES)


def test_the_model_is_shown_images_speech_and_text_in_their_order(client: Any) -> None:
    item = seen("this", png(), "or this?", JPEG)
    item["content"].insert(1, {"type": "input_audio", "audio": base64.b64encode(bytes(480)).decode()})
    client.item(item)
    client.create()
    assert shown(client.turns[0]) == [["this", 16000, png(), "or this?", JPEG]]
    (message,) = client.turns[0].messages
    kinds = [(part.media_type, part.detail) for part in message.content if isinstance(part, ImagePart)]
    assert kinds == [("image/png", "auto"), ("image/jpeg", "auto")]


def test_an_image_is_the_same_to_the_engine_in_every_turn(client: Any) -> None:
    client.item(seen(png()))
    client.item(seen(png()))
    client.create()
    client.create()
    (first, other), (again, *_) = ([message.content[0] for message in turn.messages if message.role == "user"] for turn in client.turns)
    assert first is again
    assert first.key != other.key


@pytest.mark.parametrize("detail", ["auto", "low", "high"])
def test_detail_reaches_the_model_and_is_told_back(client: Any, detail: str) -> None:
    client.item({"type": "message", "role": "user", "content": [input_image(png(), detail=detail)]})
    client.create()
    assert client.turns[0].messages[0].content[0].detail == detail
    assert client.of("conversation.item.added")[0]["item"]["content"] == [input_image(png(), detail=detail)]


def test_an_item_is_told_with_its_images(client: Any) -> None:
    added, done = client.item(seen("what is it?", png(), id="mine"))
    (retrieved,) = client.retrieve("mine")
    parts = [{"type": "input_text", "text": "what is it?"}, input_image(png(), detail="auto")]
    assert [event["item"]["content"] for event in (added, done, retrieved)] == [parts] * 3


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ((RETRIEVED_AUDIO_BYTES - 1024,), [True]),
        ((RETRIEVED_AUDIO_BYTES + 1024,), [False]),
        ((500_000, 500_000, 100_000), [True, False, True]),
    ],
)
def test_no_event_with_an_image_is_a_frame_of_1_mib(client: Any, sizes: tuple[int, ...], told: list[bool]) -> None:
    events = client.item(seen(*map(large, sizes), id="mine")) + client.retrieve("mine")
    assert [event["type"] for event in events] == ["conversation.item.added", "conversation.item.done", "conversation.item.retrieved"]
    for event in events:
        assert ["image_url" in part for part in event["item"]["content"]] == told
        assert all(part["detail"] == "auto" for part in event["item"]["content"])
        assert len(str(event)) < LARGEST_FRAME
    client.create()
    assert shown(client.turns[0]) == [[large(size) for size in sizes]], "the model is shown all of it"


def test_an_image_and_a_long_text_share_the_frame(client: Any) -> None:
    added, _ = client.item(seen("x" * 400_000, large(600_000)))
    assert "image_url" not in added["item"]["content"][1]
    assert len(str(added)) < LARGEST_FRAME


@pytest.mark.parametrize(
    "url", ["https://example.com/a.png", "data:image/gif;base64,AAAA", "data:image/png;base64,AAAA", data_uri(png()[:-20])]
)
def test_a_broken_image_is_one_error_and_nothing_is_added(client: Any, url: str) -> None:
    client.say("hello")
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": url}]}
    (error,) = client.item(item, event_id="mine")
    assert (error["type"], error["error"]["param"], error["error"]["event_id"]) == ("error", "item.content.1.image_url", "mine")
    assert len(client.items) == 1
    client.create()
    assert shown(client.turns[0]) == [["hello"]]


def test_a_model_that_does_not_see_refuses_an_image_by_name(connect: Connect) -> None:
    client = connect(OK, manual=True, text=True)
    (error,) = client.item(seen("x", png()))
    assert error["error"]["param"] == "item.content.1.type"
    assert "'input_image' is not served; served: 'input_text', 'input_audio'." in error["error"]["message"]
    assert not client.items


def test_an_image_is_the_users_alone(client: Any) -> None:
    for role in ("system", "assistant"):
        (error,) = client.item(seen(png()) | {"role": role})
        assert error["error"]["param"] == "item.content.0.type"


def test_images_of_a_response_out_of_band(client: Any) -> None:
    client.item(seen(png(), id="mine"))
    client.create(conversation="none", input=[seen(JPEG), {"type": "item_reference", "id": "mine"}])
    assert shown(client.turns[0]) == [[JPEG], [png()]]
    (error,) = client.create(conversation="none", input=[seen("x", png()[:-1])])
    assert error["error"]["param"] == "response.input.0.content.1.image_url"
    client.create()
    assert shown(client.turns[1])[0] == [png()]


def test_a_deleted_image_is_gone(client: Any) -> None:
    client.item(seen(png(), id="mine"))
    client.item(seen(JPEG))
    client.delete("mine")
    client.create()
    assert shown(client.turns[0]) == [[JPEG]]


def test_beyond_its_bound_the_conversation_lets_the_oldest_images_go(connect: Connect) -> None:
    client = connect(OK, manual=True, text=True, capabilities=SEES, limits={"conversation_audio_bytes": 250_000})
    for name in ("one", "two", "three"):
        client.item(seen(name, large(100_000), id=name))
    client.create()
    assert shown(client.turns[0]) == [["one"], ["two", large(100_000)], ["three", large(100_000)]]
    (retrieved,) = client.retrieve("one")
    assert retrieved["item"]["content"] == [{"type": "input_text", "text": "one"}, {"type": "input_image", "detail": "auto"}]


def test_usage_tells_the_tokens_of_images(connect: Connect) -> None:
    usage = Usage(input_text_tokens=5, input_image_tokens=64, cached_image_tokens=60, output_text_tokens=1)
    client = connect(text_reply("ok", usage=usage), manual=True, text=True, capabilities=SEES)
    client.item(seen(png()))
    client.create()
    told = client.last("response.done")["response"]["usage"]
    assert (told["input_tokens"], told["total_tokens"]) == (69, 70)
    assert told["input_token_details"]["image_tokens"] == 64
    assert told["input_token_details"]["cached_tokens_details"]["image_tokens"] == 60


def test_an_image_counts_in_truncation_before_its_cost_is_known(connect: Connect) -> None:
    counted: list[Turn] = []

    def count(turn: Turn) -> int:
        counted.append(turn)
        return sum(700 if isinstance(part, ImagePart) else 1 for message in turn.messages for part in message.content)

    client = connect(OK, manual=True, text=True, capabilities=SEES | {"image_tokens": 800}, window=2000, count=count)
    client.item(seen(png()))
    client.create()
    assert (len(counted), len(client.turns)) == (0, 1), "one image fits for sure"
    for _ in range(2):
        client.item(seen(png()))
    client.create()
    assert len(counted) == 1, "three may not, so they are counted"
    assert shown(client.turns[1]) == [[png()]], "and the oldest turns are left out"


def test_a_prompt_holds_no_more_images_than_the_engine_takes(connect: Connect) -> None:
    client = connect(OK, manual=True, text=True, capabilities=SEES | {"image_parts": 2}, window=100_000)
    for name in ("one", "two", "three"):
        client.item(seen(name, png()))
    client.create()
    assert shown(client.turns[0]) == [["two", png()], ["three", png()]]
    client.item(seen(png(), png(), png()))
    (*_, refused) = client.create()
    assert refused["error"]["code"] == "context_length_exceeded"
    assert "2 images" in refused["error"]["message"]
