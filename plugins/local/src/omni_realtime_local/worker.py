"""The engine's end of the speech worker: one process, sentences in, PCM out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from subprocess import PIPE, Popen

from omni_realtime.engine.port import EngineError
from omni_realtime_local.frames import HEADER, Frame, Kind

START_SECONDS = 60


class WorkerDiedError(Exception):
    """The worker process is gone."""


class Worker:
    """A worker process; it works through its sentences in their order."""

    def __init__(
        self, process: Popen[bytes], stdin: asyncio.WriteTransport, stdout: asyncio.StreamReader, stdout_pipe: asyncio.ReadTransport
    ) -> None:
        self._process = process
        self._stdin = stdin
        self._stdout = stdout
        self._stdout_pipe = stdout_pipe
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
        process = await asyncio.to_thread(_spawn, command)
        worker = cls(process, *await _connect(process))
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
        self._process.kill()
        await asyncio.to_thread(self._process.wait)
        if self._pump is not None:
            await self._pump
        self._stdin.close()
        self._stdout_pipe.close()

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


def _spawn(command: Sequence[str]) -> Popen[bytes]:
    """Start a process without the fork that uvloop makes.

    OpenBLAS ends its threads at a fork, and another thread that is amid a matrix product then waits for ever. ``Popen`` uses ``vfork``.
    """
    # A session of its own keeps Ctrl-C from the worker: it ends with its standard input.
    return Popen(command, stdin=PIPE, stdout=PIPE, bufsize=0, start_new_session=True)  # noqa: S603 - made by the speaker


async def _connect(process: Popen[bytes]) -> tuple[asyncio.WriteTransport, asyncio.StreamReader, asyncio.ReadTransport]:
    loop, stdout = asyncio.get_running_loop(), asyncio.StreamReader()
    stdout_pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), process.stdout)
    stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
    return stdin, stdout, stdout_pipe
