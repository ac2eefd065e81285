"""Semantic VAD with the local model, through the official client on a real socket."""

from __future__ import annotations

import asyncio
import base64

import pytest

from serving import recording, talk

pytestmark = pytest.mark.slow

PAUSE = bytes(24000)
"""Half a second: enough for a complete question, and less than any silence that ends a turn by itself."""


def test_questions_are_answered_after_a_short_pause_and_speech_interrupts(server: str) -> None:
    async def conversation() -> None:
        async with talk(server) as client:
            await client.until("session.created")
            turn_detection = {"type": "semantic_vad", "eagerness": "low"}
            await client.connection.session.update(session={"type": "realtime", "audio": {"input": {"turn_detection": turn_detection}}})
            (updated,) = await client.until("session.updated")
            assert updated.session.audio.input.turn_detection.interrupt_response is True

            async def ask(name: str) -> None:
                pcm = recording(name) + PAUSE
                for start in range(0, len(pcm), 4800):
                    await client.connection.input_audio_buffer.append(audio=base64.b64encode(pcm[start : start + 4800]).decode())

            await ask("capital")
            first = await client.until("response.done")
            assert "Paris" in first[-1].response.output[0].content[0].transcript

            await ask("sky")
            await client.until("response.output_audio.delta")
            await ask("interrupt")
            cut_off = await client.until("response.done")
            assert cut_off[-1].response.status_details.reason == "turn_detected"
            second = await client.until("response.done")
            assert second[-1].response.status == "completed"

    asyncio.run(conversation())
