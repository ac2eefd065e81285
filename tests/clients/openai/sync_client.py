"""``OpenAI(...).realtime.connect``, with its blocking calls in threads."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openai import OpenAI
from openai.resources.realtime.realtime import RealtimeConnection
from sending import AUDIO, frame_of, method_of
from websockets.exceptions import ConnectionClosedError

from driving import Event, chunks, run_checks
from plain_checks import PlainChecks
from talk import Talk


@asynccontextmanager
async def connect(url: str, model: str, key: str, **session: Any) -> AsyncIterator[Talk]:
    client = OpenAI(base_url=f"{url}/v1", api_key=key)
    connection = await asyncio.to_thread(client.realtime.connect(model=model).enter)
    talk = Talk(lambda event: asyncio.to_thread(_send, connection, event), lambda pcm: asyncio.to_thread(_speak, connection, pcm))
    loop = asyncio.get_running_loop()
    reader = asyncio.create_task(asyncio.to_thread(_read, connection, talk, loop))
    try:
        await talk.configure(audio=AUDIO, **session)
        yield talk
    finally:
        await asyncio.to_thread(connection.close)
        await reader
        client.close()


def _send(connection: RealtimeConnection, event: Event) -> None:
    frame = frame_of(event)
    if frame is not None:
        connection.send_raw(frame)
    elif method := method_of(connection, event):
        method(**{name: value for name, value in event.items() if name != "type"})
    else:
        connection.send(event)


def _speak(connection: RealtimeConnection, pcm: bytes) -> None:
    for chunk in chunks(pcm):
        connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())


def _read(connection: RealtimeConnection, talk: Talk, loop: asyncio.AbstractEventLoop) -> None:
    try:
        for event in connection:
            loop.call_soon_threadsafe(talk.add, event.to_dict())
            if not talk.reading.is_set():
                asyncio.run_coroutine_threadsafe(talk.reading.wait(), loop).result()
    except ConnectionClosedError:
        pass  # how the package tells of a close with a code such as 1011
    finally:
        loop.call_soon_threadsafe(talk.end)


if __name__ == "__main__":
    checks = PlainChecks(connect, bytes_per_second=48000)
    asyncio.run(run_checks("openai", *checks.all()))
