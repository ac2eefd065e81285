"""Hold a spoken conversation with a running server, through the official OpenAI client.

    python examples/voice_turn.py                                   # three turns with the WAVs in examples/audio
    python examples/voice_turn.py question.wav --out reply.wav      # one turn: a WAV in, a WAV and the transcripts out

Without arguments: a question that the server's voice detection ends, a question that is committed by hand, and a question whose answer is
interrupted by speech.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import os
import sys
import time
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeAudioConfigInputParam, RealtimeServerEvent, RealtimeSessionCreateRequestParam
from openai.types.realtime.realtime_audio_input_turn_detection_param import RealtimeAudioInputTurnDetectionParam
from websockets.exceptions import InvalidStatus

RATE = 24000
CHUNK_MS = 40
AUDIO = Path(__file__).parent / "audio"

Connection: TypeAlias = AsyncRealtimeConnection


@dataclass
class Turn:
    """What one turn brought: both sides' words and the reply's audio, PCM16 at 24 kHz."""

    heard: str | None = None
    said: str = ""
    status: str = ""
    item_id: str = ""
    audio: bytearray = field(default_factory=bytearray)

    def show(self) -> None:
        """Print the turn."""
        seconds, heard = len(self.audio) / RATE / 2, self.heard or "(nothing was heard)"
        print(f"  you:   {heard}\n  model: {self.said}\n  ({self.status}, {seconds:.1f} s of audio)\n")


def read_wav(path: Path) -> bytes:
    """Return the PCM16 of a mono WAV at 24 kHz."""
    if not path.is_file():
        sys.exit(f"{path}: there is no such file.")
    with wave.open(str(path)) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            sys.exit(f"{path}: send 16-bit mono at 24 kHz; convert with: sox {path} -b 16 -c 1 -r 24000 converted.wav")
        pcm: bytes = file.readframes(file.getnframes())
        return pcm


def write_wav(path: Path, pcm: bytes) -> None:
    """Write PCM16 as a mono WAV at 24 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(pcm)


async def speak(connection: Connection, pcm: bytes, *, silence_ms: int = 0) -> None:
    """Send audio as a microphone would, in real time, and then some silence."""
    pcm += bytes(RATE * 2 * silence_ms // 1000)
    size = RATE * 2 * CHUNK_MS // 1000
    for start in range(0, len(pcm), size):
        await connection.input_audio_buffer.append(audio=base64.b64encode(pcm[start : start + size]).decode())
        await asyncio.sleep(CHUNK_MS / 1000)


async def events(connection: Connection, timeout_s: float = 120) -> AsyncIterator[RealtimeServerEvent]:
    """Yield server events; an error, or too long a silence, ends the program."""
    while True:
        event = await asyncio.wait_for(connection.recv(), timeout_s)
        if event.type == "error":
            sys.exit(f"The server refused: {event.error.message}")
        yield event


async def listen(connection: Connection, turn: Turn) -> Turn:
    """Collect the events of one turn until its response is done and the question is written down."""
    async for event in events(connection):
        if event.type == "conversation.item.input_audio_transcription.completed":
            turn.heard = event.transcript
        elif event.type == "response.output_item.added":
            turn.item_id = event.item.id or ""
        elif event.type == "response.output_audio_transcript.delta":
            turn.said += event.delta
        elif event.type == "response.output_audio.delta":
            turn.audio += base64.b64decode(event.delta)
        elif event.type == "response.done":
            turn.status = event.response.status or ""
        if turn.status and turn.heard is not None:
            break
    return turn


async def configure(connection: Connection, *, detect_turns: bool) -> None:
    """Say how turns end: by the server's voice detection, or by hand."""
    detection: RealtimeAudioInputTurnDetectionParam | None = {"type": "server_vad"} if detect_turns else None
    audio: RealtimeAudioConfigInputParam = {"transcription": {"model": "whisper-1"}, "turn_detection": detection}
    session: RealtimeSessionCreateRequestParam = {"type": "realtime", "audio": {"input": audio}}
    await connection.session.update(session=session)


async def ask(connection: Connection, pcm: bytes) -> Turn:
    """Ask aloud; the server hears where the question ends."""
    await configure(connection, detect_turns=True)
    speaking = asyncio.create_task(speak(connection, pcm, silence_ms=900))
    turn = await listen(connection, Turn())
    await speaking
    return turn


async def ask_by_hand(connection: Connection, pcm: bytes) -> Turn:
    """Ask aloud, and say where the question ends."""
    await configure(connection, detect_turns=False)
    await speak(connection, pcm)
    await connection.input_audio_buffer.commit()
    await connection.response.create()
    return await listen(connection, Turn())


async def interrupt(connection: Connection, question: bytes, interruption: bytes, heard_ms: int) -> tuple[Turn, Turn]:
    """Ask for a long answer, and talk over it once ``heard_ms`` of it has played."""
    await configure(connection, detect_turns=True)
    first = Turn()
    asking = asyncio.create_task(speak(connection, question, silence_ms=900))
    barging_in: asyncio.Task[None] | None = None

    async def barge_in() -> None:
        await asyncio.gather(asking, asyncio.sleep(heard_ms / 1000))
        await speak(connection, interruption, silence_ms=900)

    async for event in events(connection):
        if event.type == "conversation.item.input_audio_transcription.completed":
            first.heard = event.transcript
        elif event.type == "response.output_audio.delta":
            first.item_id, first.audio = event.item_id, first.audio + base64.b64decode(event.delta)
            if barging_in is None:
                started, barging_in = time.monotonic(), asyncio.create_task(barge_in())
        elif event.type == "response.done":
            first.status = event.response.status or ""
        elif event.type == "input_audio_buffer.speech_started" and barging_in:
            played_ms = min(int((time.monotonic() - started) * 1000), len(first.audio) * 1000 // RATE // 2)
            await connection.conversation.item.truncate(item_id=first.item_id, content_index=0, audio_end_ms=played_ms)
        elif event.type == "conversation.item.truncated":
            break
    del first.audio[played_ms * RATE * 2 // 1000 :]
    first.said = await transcript_of(connection, first.item_id)
    second = await listen(connection, Turn())
    await asyncio.gather(asking, barging_in or asking)
    return first, second


async def transcript_of(connection: Connection, item_id: str) -> str:
    """Ask the server what it keeps of an answer."""
    await connection.conversation.item.retrieve(item_id=item_id)
    async for event in events(connection):
        if event.type == "conversation.item.retrieved" and event.item.type == "message" and event.item.role == "assistant":
            return event.item.content[0].transcript or ""
    return ""


async def converse(arguments: argparse.Namespace) -> None:
    """Connect, and hold the conversation."""
    client = AsyncOpenAI(base_url=arguments.url, api_key=arguments.key)
    async with client.realtime.connect(model=arguments.model) as connection:
        if arguments.wav:
            turn = await ask(connection, read_wav(arguments.wav))
            turn.show()
        else:
            print("A question, ended by the server's voice detection:")
            turn = await ask(connection, read_wav(AUDIO / "capital.wav"))
            turn.show()
            print("A question, committed by hand:")
            (await ask_by_hand(connection, read_wav(AUDIO / "week.wav"))).show()
            print("An answer, interrupted by speech after a second, and what follows:")
            for part in await interrupt(connection, read_wav(AUDIO / "sky.wav"), read_wav(AUDIO / "interrupt.wav"), heard_ms=1000):
                part.show()
        write_wav(arguments.out, bytes(turn.audio))
        print(f"The first reply's audio is in {arguments.out}.")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wav", nargs="?", type=Path, help="a question: 16-bit mono WAV at 24 kHz")
    parser.add_argument("--out", type=Path, default=Path("reply.wav"), help="where the reply's audio goes (reply.wav)")
    parser.add_argument("--url", default="http://127.0.0.1:8000/v1", help="the server's base URL")
    parser.add_argument("--model", default="local-smollm2-135m", help="the served model")
    parser.add_argument("--key", default=os.environ.get("OPENAI_API_KEY", "none"), help="the server's API key, if it has one")
    arguments = parser.parse_args()
    try:
        asyncio.run(converse(arguments))
    except ConnectionRefusedError:
        sys.exit(f"No server answers at {arguments.url}. Start one with make serve, or say where it is with --url.")
    except InvalidStatus as error:
        sys.exit(f"The server refused: HTTP {error.response.status_code} {error.response.body.decode()}")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
