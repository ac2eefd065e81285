"""Images on the real engine, for each omni model that sees: through a real socket and the official client."""

from __future__ import annotations

import base64
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from engine_host import EngineHost
from omni_models import MINICPMO, QWEN3_OMNI
from PIL import PngImagePlugin
from realtime_client import Answer, RealtimeClient, tone

from omni_realtime.audio.pcm import encode_pcm16
from pictures import JPEG, hollow_png, png, seen

Run = Callable[[Coroutine[Any, Any, None]], None]

pytestmark = pytest.mark.parametrize("omni_host", [QWEN3_OMNI, MINICPMO], indirect=True, ids=str)

WRITTEN = 12
"""Tokens of a written answer."""
LARGE = 256
"""Pixels of a side: as many as the tiny models look at, and more."""
RED, BLUE = (220, 20, 20), (20, 20, 220)


def image_tokens(omni_host: EngineHost, width: int, height: int) -> int:
    """By the models' documentation: a token for each 32 x 32 pixels, or 64 between two marks and behind a number between two more."""
    return (width // 32) * (height // 32) if omni_host.model is QWEN3_OMNI else 64 + 2 + 3


async def add(client: RealtimeClient, item: dict[str, Any]) -> dict[str, Any]:
    await client.connection.conversation.item.create(item=item)
    added: dict[str, Any] = (await client.until("conversation.item.done"))["item"]
    return added


async def answer(client: RealtimeClient, **response: Any) -> Answer:
    return await client.respond("text", max_output_tokens=WRITTEN, **response)


def tokens(answer: Answer) -> tuple[int, int, int]:
    details = answer.usage["input_token_details"]
    return details["text_tokens"], details["audio_tokens"], details["image_tokens"]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The size of each PNG that is decoded."""
    sizes: list[tuple[int, int]] = []
    prepare = PngImagePlugin.PngImageFile.load_prepare

    def noted(image: PngImagePlugin.PngImageFile) -> None:
        sizes.append(image.size)
        prepare(image)

    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load_prepare", noted)
    return sizes


def test_an_image_is_seen_and_counted(omni_host: EngineHost, run: Run) -> None:
    async def ask(*parts: bytes | str) -> Answer:
        async with omni_host.connect() as client:
            await add(client, seen(*parts))
            return await answer(client)

    async def scenario() -> None:
        text, _, none = tokens(await ask("what is it?"))
        answers = [await ask("what is it?", png(LARGE, LARGE, colour)) for colour in (RED, BLUE, (0, 0, 0), (255, 255, 255))]
        for one in answers:
            assert one.status in {"completed", "incomplete"}
            assert tokens(one)[2] == image_tokens(omni_host, LARGE, LARGE)
            assert 0 <= tokens(one)[0] - text <= 2, "an image lies between two marks"
        assert none == 0
        assert len({one.text for one in answers}) > 1, "the answer does not depend on the image"

    run(scenario())


def test_a_spoken_answer_to_an_image(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await add(client, seen("what is it?", png(96, 64)))
            spoken = await client.respond()
        assert spoken.text
        assert spoken.audio
        await omni_host.freed()

    run(scenario())


def test_an_image_beside_speech_in_one_message(omni_host: EngineHost, run: Run) -> None:
    sound = base64.b64encode(encode_pcm16(tone(1.0, 437))).decode()

    async def scenario() -> None:
        async with omni_host.connect() as client:
            item = seen(png(LARGE, LARGE, BLUE), "and what do you hear?")
            item["content"].append({"type": "input_audio", "audio": sound})
            await add(client, item)
            text, audio, image = tokens(await answer(client))
            assert image == image_tokens(omni_host, LARGE, LARGE)
            assert audio > 0
            assert text > 0
            await client.speak(encode_pcm16(tone(1.0, 300)))
            assert tokens(await answer(client))[1:] == (2 * audio, image)

    run(scenario())


def test_an_image_of_an_earlier_turn_is_not_decoded_again(omni_host: EngineHost, run: Run, decoded: list[tuple[int, int]]) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await add(client, seen(png(200, 120, RED)))
            first = await answer(client)
            assert set(decoded) == {(200, 120)}
            decoded.clear()
            await add(client, seen("and this?", png(120, 200, BLUE)))
            second = await answer(client)
            assert set(decoded) == {(120, 200)}
            decoded.clear()
            await client.say("and now?")
            third = await answer(client)
            assert not decoded
        assert tokens(second)[2] == 2 * tokens(first)[2] == tokens(third)[2] > 0

    run(scenario())


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(png(1, 1), id="one pixel"),
        pytest.param(png(2, 200), id="a line"),
        pytest.param(png(700, 500), id="larger than is looked at"),
        pytest.param(png(64, 64, (90,), 0), id="grey"),
        pytest.param(png(64, 64, (90, 0), 4), id="grey and transparent"),
        pytest.param(png(64, 64, (90, 0, 0, 128), 6), id="half transparent"),
        pytest.param(JPEG, id="JPEG"),
    ],
)
def test_images_of_all_kinds(omni_host: EngineHost, run: Run, image: bytes) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            for detail in ("auto", "low", "high"):
                item = seen(image)
                item["content"][0]["detail"] = detail
                await add(client, item)
            assert tokens(await answer(client))[2] > 0

    run(scenario())


def test_an_image_out_of_band(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            asked = await answer(client, conversation="none", input=[seen("what is it?", png(LARGE, LARGE))])
            assert tokens(asked)[2] == image_tokens(omni_host, LARGE, LARGE)
            await client.say("hello")
            assert tokens(await answer(client))[2] == 0

    run(scenario())


def test_a_session_outlives_a_corrupt_image(omni_host: EngineHost, run: Run) -> None:
    async def scenario() -> None:
        async with omni_host.connect() as client:
            await client.say("look")
            before = await answer(client)
            await client.connection.conversation.item.create(item=seen("what is it?", png()[:-20]))
            refused = await client.receive()
            assert (refused["type"], refused["error"]["param"]) == ("error", "item.content.1.image_url")
            broken = await add(client, seen(hollow_png()))
            failed = await answer(client)
            assert failed.status == "failed"
            assert failed.done["status_details"]["error"]["code"] == "invalid_image"
            await client.connection.conversation.item.delete(item_id=broken["id"])
            await client.until("conversation.item.deleted")
            after = await answer(client)
            assert after.status == before.status
            assert tokens(after)[2] == 0
            await add(client, seen(png()))
            assert tokens(await answer(client))[2] > 0
        await omni_host.freed()

    run(scenario())
