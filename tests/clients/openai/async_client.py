"""``AsyncOpenAI(...).realtime.connect``."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from sending import AUDIO, frame_of, method_of
from websockets.exceptions import ConnectionClosedError

from driving import Event, chunks, run_checks
from plain_checks import PlainChecks
from talk import Talk


@asynccontextmanager
async def connect(url: str, model: str, key: str, **session: Any) -> AsyncIterator[Talk]:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=key) as client, client.realtime.connect(model=model) as connection:

        async def send(event: Event) -> None:
            frame = frame_of(event)
            if frame is not None:
                await connection.send_raw(frame)
            elif method := method_of(connection, event):
                await method(**{name: value for name, value in event.items() if name != "type"})
            else:
                await connection.send(event)

        async def speak(pcm: bytes) -> None:
            for chunk in chunks(pcm):
                await connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())

        talk = Talk(send, speak)
        reader = asyncio.create_task(_read(connection, talk))
        try:
            await talk.configure(audio=AUDIO, **session)
            yield talk
        finally:
            reader.cancel()


async def _read(connection: AsyncRealtimeConnection, talk: Talk) -> None:
    try:
        async for event in connection:
            talk.add(event.to_dict())
            await talk.reading.wait()
    except ConnectionClosedError:
        pass  # how the package tells of a close with a code such as 1011
    finally:
        talk.end()


if __name__ == "__main__":
    checks = PlainChecks(connect, bytes_per_second=48000)
    asyncio.run(run_checks("openai", *checks.all()))
