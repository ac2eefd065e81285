"""What the engines in process with vLLM have in common: they render, admit, stream and close in the same way."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pluggy

from omni_realtime.chat import ChatDelta, ChatPrompt, GenerateRequest
from omni_realtime.engine.port import EngineError, StageInfo
from omni_realtime.engine.vllm_common import faults
from omni_realtime.engine.vllm_common.completion import Completion
from omni_realtime.engine.vllm_common.images import BrokenImageError
from omni_realtime.engine.vllm_common.rendering import PromptRenderer, Rendered
from omni_realtime.engine.vllm_common.sampling import fit_params
from omni_realtime.engine.vllm_common.settings import VllmSettings
from omni_realtime.engine.vllm_common.thread import EngineThread
from omni_realtime.engine.vllm_common.tools import ToolCalls, load_parser

logger = logging.getLogger(__name__)


class Outputs(Protocol):
    """The outputs of a request that the engine has; closing it ends the request."""

    def __aiter__(self) -> Outputs:
        """Itself."""
        ...

    async def __anext__(self) -> Any:
        """The next output."""
        ...

    async def aclose(self) -> None:
        """End the request and free its work, if it still runs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A request that the engine has."""

    outputs: Outputs
    completion: Completion


class InProcessEngine(ABC):
    """An engine of vLLM's on a loop of its own; methods with an underscore run over there."""

    _client: Any = None
    """The engine: its ``renderer``, ``model_config``, ``check_health``, ``abort`` and ``shutdown``."""
    _stages: tuple[StageInfo, ...] = ()

    def __init__(self, settings: VllmSettings, hook: pluggy.HookRelay) -> None:
        self._settings = settings
        self._hook = hook
        self._thread = EngineThread("omni-realtime-engine")
        self._window = 0

    @property
    def context_window(self) -> int:
        """Tokens that a prompt and its output share; ``0`` before ``start``."""
        return self._window

    async def start(self) -> None:
        """Load the model, and render once, so that the first turn is as fast as any."""
        self._thread.start()
        await self._thread.run(self._start())

    async def close(self) -> None:
        """End what runs and free the engine."""
        if self._thread.running:
            await self._thread.run(self._stop())
            await self._thread.stop()

    async def check_health(self) -> None:
        """Return while the engine can serve.

        Raises:
            EngineDeadError: once it cannot, ever again.
        """
        await self._thread.run(self._check_health())

    async def count_tokens(self, prompt: ChatPrompt) -> int:
        """The length of the rendered prompt; where there is more of it than vLLM renders at all, a length beyond the context window.

        Raises:
            EngineError: if the prompt cannot be rendered.
        """
        return await self._thread.run(self._count_tokens(prompt))

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the answer; see the port."""
        async with aclosing(self._thread.stream(lambda: self._generate(request))) as deltas:
            async for delta in deltas:
                yield delta

    async def abort(self, request_id: str) -> None:
        """Stop a generation and free its work."""
        await self._thread.run(self._abort(request_id))

    @abstractmethod
    def _load(self) -> Any:
        """Make the engine; may block."""

    @abstractmethod
    def _default_params(self) -> list[Any]:
        """The deployment's sampling parameters of each stage, as deltas and free to be changed."""

    @abstractmethod
    async def _submit(self, request: GenerateRequest, rendered: Rendered, params: list[Any]) -> Outputs:
        """Hand a request over; once this returns, the engine has it."""

    @abstractmethod
    def _read(self, output: Any, completion: Completion) -> Iterable[ChatDelta]:
        """The deltas of one output."""

    async def _start(self) -> None:
        self._admission = asyncio.Lock()
        self._client = self._load()
        self._window = self._client.model_config.max_model_len
        self._renderer = PromptRenderer(self._client.renderer, self._chat_template())
        self._parser = load_parser(self._settings.tool_parser) if self._settings.tool_parser else None
        await asyncio.to_thread(self._client.renderer.warmup_mm)

    def _chat_template(self) -> str | None:
        path = self._settings.chat_template
        return Path(path).read_text(encoding="utf-8") if path else None

    async def _stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.shutdown()

    async def _check_health(self) -> None:
        try:
            await self._client.check_health()
        except Exception as error:
            if faults.is_engine_death(error):
                raise faults.engine_dead() from error
            raise

    async def _count_tokens(self, prompt: ChatPrompt) -> int:
        try:
            return await self._renderer.measure(prompt)
        except EngineError:
            raise
        except Exception as error:
            if faults.is_too_long(error):
                return self._window + 1
            raise faults.port_error(error) from error

    async def _generate(self, request: GenerateRequest) -> AsyncGenerator[ChatDelta, None]:
        try:
            admitted = await self._admit(request)
            async with aclosing(self._stream(admitted)) as deltas:
                async for delta in deltas:
                    yield delta
        except EngineError:
            raise
        except Exception as error:
            raise await self._fault(request, error) from error

    async def _stream(self, admitted: Admitted) -> AsyncGenerator[ChatDelta, None]:
        try:
            async for output in admitted.outputs:
                for delta in self._read(output, admitted.completion):
                    yield delta
            yield admitted.completion.end()
        except EngineError:
            raise
        except Exception:
            # Its audio may be the reason: the engine no longer has what the sender cache believes it to have.
            await self._renderer.forget()
            raise
        finally:
            await admitted.outputs.aclose()

    async def _admit(self, request: GenerateRequest) -> Admitted:
        """Render and submit, one request at a time: the engine's cache of audio relies on the order of the renders.

        A render is always submitted, also for a request that is cancelled meanwhile: the sender cache counts on it.
        """
        async with self._admission:
            admission = asyncio.ensure_future(self._render_and_submit(request))
            try:
                return await asyncio.shield(admission)
            except asyncio.CancelledError:
                await asyncio.wait([admission])
                if admission.exception() is None:
                    await admission.result().outputs.aclose()
                raise

    async def _render_and_submit(self, request: GenerateRequest) -> Admitted:
        tools = self._tool_calls(request.prompt)
        params = fit_params(self._default_params(), self._stages, request, tools, self._hook)
        try:
            rendered = await self._render(request.prompt)
            outputs = await self._submit(request, rendered, params)
        except BrokenImageError:
            raise
        except Exception as error:
            if not faults.is_too_long(error):
                await self._renderer.forget()
            raise
        return Admitted(outputs=outputs, completion=Completion(rendered, request.prompt.hidden_text, tools))

    async def _render(self, prompt: ChatPrompt) -> Rendered:
        rendered = await self._renderer.render(prompt)
        if rendered.tokens >= self._window:
            raise faults.context_length_exceeded(self._window)
        return rendered

    def _tool_calls(self, prompt: ChatPrompt) -> ToolCalls | None:
        if not prompt.tools or prompt.tool_choice == "none":
            return None
        if self._parser is None:
            raise EngineError("This model's deployment has no tool parser, so it serves no tools.", code="invalid_prompt")
        return ToolCalls(self._parser, self._client.renderer.get_tokenizer(), prompt)

    async def _fault(self, request: GenerateRequest, error: Exception) -> EngineError:
        if faults.is_too_long(error):
            return faults.context_length_exceeded(self._window)
        logger.warning("Generation %s failed: %s", request.request_id, type(error).__name__)
        if faults.is_engine_death(error):
            await self._check_health()
            return EngineError("A part of the engine has died; another takes its place.")
        return faults.port_error(error)

    async def _abort(self, request_id: str) -> None:
        await self._client.abort(request_id)
