"""The engine's end of the speech worker: one process, sentences in, PCM out."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator

from omni_realtime.engine.port import EngineError
from omni_realtime_local.frames import HEADER, Frame, Kind

START_SECONDS = 60


class WorkerDiedError(Exception):
    """The worker process is gone."""


class Worker:
    """A worker process; it works through its sentences in their order."""

    def __init__(self, process: Process, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self._process = process
        self._stdin = stdin
        self._stdout = stdout
        self._numbers = itertools.count(1)
        self._listeners: dict[int, asyncio.Queue[Frame | None]] = {}
        self._pump: asyncio.Task[None] | None = None
        self.rate = 0
        """The voice's rate in Hz."""

    @classmethod
    async def start(cls, *command: str) -> Worker:
        """Start a process and wait until its voice is loaded.

        Raises:
            WorkerDiedError: if it ends or stays silent instead; what it prints goes to this process's standard error.
        """
        # A session of its own keeps Ctrl-C from the worker: it ends with its standard input.
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        if process.stdin is None or process.stdout is None:
            raise WorkerDiedError
        worker = cls(process, process.stdin, process.stdout)
        try:
            async with asyncio.timeout(START_SECONDS):
                worker.rate = int((await worker._receive()).payload)
        except (asyncio.IncompleteReadError, TimeoutError) as error:
            await worker.close()
            raise WorkerDiedError from error
        except asyncio.CancelledError:
            await worker.close()
            raise
        worker._pump = asyncio.create_task(worker._deliver())
        return worker

    @property
    def alive(self) -> bool:
        """Whether the process runs and is listened to."""
        return self._pump is not None and not self._pump.done()

    async def speak(self, text: str) -> AsyncGenerator[bytes, None]:
        """Chunks of 16-bit PCM; closed early, the rest of the sentence goes by unheard.

        Raises:
            WorkerDiedError: if the process ends.
            EngineError: if the worker cannot speak the text.
        """
        if not self.alive:
            raise WorkerDiedError
        number = next(self._numbers)
        frames = self._listeners[number] = asyncio.Queue()
        try:
            self._stdin.write(Frame(Kind.SPEAK, number, text.encode()).encode())
            while (frame := await frames.get()) is not None:
                if frame.kind is Kind.DONE:
                    return
                if frame.kind is Kind.FAILED:
                    raise EngineError(f"A sentence could not be spoken ({frame.payload.decode()}).")
                yield frame.payload
            raise WorkerDiedError
        finally:
            del self._listeners[number]

    async def close(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        if self._pump is not None:
            await self._pump
        self._stdin.close()

    async def _deliver(self) -> None:
        try:
            while True:
                frame = await self._receive()
                if frame.number in self._listeners:
                    self._listeners[frame.number].put_nowait(frame)
        except (asyncio.IncompleteReadError, ConnectionError):
            for frames in self._listeners.values():
                frames.put_nowait(None)

    async def _receive(self) -> Frame:
        kind, number, length = HEADER.unpack(await self._stdout.readexactly(HEADER.size))
        return Frame(Kind(kind), number, await self._stdout.readexactly(length))
