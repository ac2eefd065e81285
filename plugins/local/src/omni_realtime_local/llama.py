"""The llama.cpp server inside this process: load, tokenise, stream. Blocking; :mod:`omni_realtime_local.llm` brings it to the event loop.

llama.cpp insists on an HTTP listener. It gets a Unix socket in a folder that only this user can enter, and no TCP port.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from omni_realtime.engine.port import EngineError
from omni_realtime_local import runtime
from omni_realtime_local.settings import SmolLm2Settings
from omni_realtime_local.weights import WeightsError

Message = dict[str, str]
"""``role`` and ``content``."""
PROMPT_BATCH = 128
"""Tokens of a prompt between two looks at whether it is still wanted: some 0.5 s."""
HTTP_THREADS = 2
CONTEXT_EXCEEDED = "exceed_context_size_error"


class LlamaServer:
    """A loaded model."""

    def __init__(self, model: Path, settings: SmolLm2Settings) -> None:
        xllamacpp = runtime.load("xllamacpp")
        self._schema_grammar: Callable[[dict[str, Any]], str] = xllamacpp.json_schema_to_grammar
        self._folder = Path(tempfile.mkdtemp(prefix="omni-realtime-"))
        self._socket = self._folder / "llama.sock"
        try:
            self._server = xllamacpp.Server(self._parameters(xllamacpp.CommonParams(), model, settings))
        except RuntimeError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise WeightsError(f"llama.cpp cannot load {model} (or cannot listen on {self._socket}).") from error

    def close(self) -> None:
        """Free the model; no call may be running."""
        self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def schema_grammar(self, schema: dict[str, Any]) -> str:
        """A grammar of JSON after a schema; a schema beyond llama.cpp is not found out here, its grammar binds nothing."""
        return self._schema_grammar(schema)

    def count(self, messages: list[Message]) -> int:
        """The length of a prompt in tokens."""
        prompt = self._post("/apply-template", {"messages": messages})["prompt"]
        return len(self._post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})["tokens"])

    def stream(self, body: Mapping[str, Any], emit: Callable[[Mapping[str, Any]], bool]) -> None:
        """Run a chat completion and pass its events to ``emit``, which returns whether to stop.

        Raises:
            EngineError: if the model refuses or fails.
        """
        failures: list[EngineError] = []

        def take(event: Any) -> bool:
            for part in event if isinstance(event, list) else [event]:
                if "error" in part:
                    failures.append(_failure(part["error"]))
                    return True
                if emit(part):
                    return True
            return False

        options = {"stream": True, "return_progress": True, "stream_options": {"include_usage": True}}
        try:
            self._server.handle_chat_completions({**body, **options}, take)
        except (ValueError, RuntimeError) as error:
            raise EngineError("The language model failed.") from error
        if failures:
            raise failures[0]

    def _parameters(self, parameters: Any, model: Path, settings: SmolLm2Settings) -> Any:
        parameters.model.path = str(model)
        parameters.n_parallel = settings.max_concurrent
        parameters.n_ctx = settings.context * settings.max_concurrent
        parameters.n_batch = parameters.n_ubatch = PROMPT_BATCH
        parameters.cpuparams.n_threads = settings.threads
        parameters.cpuparams_batch.n_threads = settings.prompt_threads
        parameters.hostnames = [str(self._socket)]
        parameters.n_threads_http = HTTP_THREADS
        parameters.ui = parameters.endpoint_slots = False
        parameters.cache_ram_mib = 0
        parameters.verbosity = -1
        return parameters

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        connection = _UnixConnection(self._socket)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EngineError("The prompt could not be counted.") from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise EngineError("The prompt could not be rendered by the model's chat template.")
        return answer


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def _failure(error: Mapping[str, Any]) -> EngineError:
    if error.get("type") == CONTEXT_EXCEEDED:
        tokens, context = error.get("n_prompt_tokens"), error.get("n_ctx")
        return EngineError(f"The prompt has {tokens} tokens; the context holds {context}.", code="context_length_exceeded")
    return EngineError("The language model failed.")


def texts(event: Mapping[str, Any]) -> Iterator[str]:
    """The new text of a streamed event."""
    for choice in event.get("choices", ()):
        content = choice.get("delta", {}).get("content")
        if content:
            yield content
