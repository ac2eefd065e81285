"""What a bridge from a Twilio call does: frames of 20 ms, 160 bytes of mu-law each, both ways."""

from __future__ import annotations

import array
import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import websockets

from driving import Event, chunks, run_checks, ws
from plain_checks import PlainChecks
from talk import Talk

MULAW = {"type": "audio/pcmu"}
AUDIO = {"input": {"format": MULAW, "transcription": {"model": "whisper-1"}}, "output": {"format": MULAW}}
FRAME_BYTES = 160
BIAS, CLIP = 132, 32635


def mulaw_frames(pcm: bytes) -> list[bytes]:
    """PCM16 at 24 kHz as mu-law at 8 kHz: each three samples' mean, by G.711's segments."""
    samples = array.array("h", pcm)
    thirds = (sum(samples[start : start + 3]) // 3 for start in range(0, len(samples) - 2, 3))
    return chunks(bytes(_mulaw(sample) for sample in thirds), FRAME_BYTES)


def _mulaw(sample: int) -> int:
    magnitude = min(abs(sample), CLIP) + BIAS
    segment = magnitude.bit_length() - 8
    return ~((0x80 if sample < 0 else 0) | segment << 4 | (magnitude >> segment + 3) & 0x0F) & 0xFF


@asynccontextmanager
async def connect(url: str, model: str, key: str, **session: Any) -> AsyncIterator[Talk]:
    headers = {"Authorization": f"Bearer {key}"}
    async with websockets.connect(f"{ws(url)}?model={model}", additional_headers=headers) as socket:

        async def send(event: Event) -> None:
            await socket.send(event["binary"].encode() if "binary" in event else event.get("raw") or json.dumps(event))

        async def speak(pcm: bytes) -> None:
            for frame in mulaw_frames(pcm):
                await send({"type": "input_audio_buffer.append", "audio": base64.b64encode(frame).decode()})

        talk = Talk(send, speak)
        reader = asyncio.create_task(_read(socket, talk))
        try:
            await talk.configure(audio=AUDIO, **session)
            yield talk
        finally:
            reader.cancel()


async def _read(socket: websockets.ClientConnection, talk: Talk) -> None:
    try:
        async for frame in socket:
            talk.add(json.loads(frame))
            await talk.reading.wait()
    except websockets.ConnectionClosedError:
        pass  # how the package tells of a close with a code such as 1011
    finally:
        talk.end()


if __name__ == "__main__":
    checks = PlainChecks(connect, bytes_per_second=8000)
    asyncio.run(run_checks("websockets", *checks.all()))
