"""What a server says about itself when the host starts."""

from __future__ import annotations

import asyncio
import logging

import httpx
from pydantic import BaseModel, Field, ValidationError

from omni_realtime.chat import ChatMessage, ChatPrompt, TextPart
from omni_realtime.engine.chat_completions.client import Client
from omni_realtime.engine.chat_completions.request import encode_tokenize
from omni_realtime.engine.chat_completions.settings import ChatCompletionsSettings
from omni_realtime.engine.port import EngineError

POLL_S = 1.0
NO_MODEL_LIST = frozenset({404, 405})

_log = logging.getLogger(__name__)


class ServedModelInfo(BaseModel):
    """``data[]`` of the list of models."""

    id: str
    max_model_len: int | None = Field(default=None, gt=0)


class ModelList(BaseModel):
    """The answer of ``GET /v1/models``."""

    data: list[ServedModelInfo]


class TokenCount(BaseModel):
    """The answer of ``POST /tokenize``."""

    count: int = Field(ge=0)


async def wait_for_models(client: Client, settings: ChatCompletionsSettings) -> list[ServedModelInfo] | None:
    """The models that the server lists, once it is up; ``None`` where it lists none.

    Raises:
        EngineError: if it does not come up in time, or refuses the key.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + settings.timeouts.start
    while True:
        try:
            response = await client.get(f"{settings.base_url}/models")
        except httpx.RequestError as error:
            cause = type(error).__name__
        else:
            if response.is_success:
                return _models(response.content, settings)
            if response.status_code in NO_MODEL_LIST:
                return None
            if response.status_code in {401, 403}:
                raise EngineError(f"{settings.base_url} refuses the key (HTTP {response.status_code}): see api_key_env.")
            cause = f"HTTP {response.status_code}"
        if loop.time() + POLL_S > deadline:
            raise EngineError(f"{settings.base_url} did not come up within {settings.timeouts.start:g} s ({cause}).")
        await asyncio.sleep(POLL_S)


def find_context_window(models: list[ServedModelInfo] | None, settings: ChatCompletionsSettings) -> int:
    """The context window of the model, as the settings or else the server say.

    Raises:
        EngineError: if the server does not have the model, or nobody says.
    """
    served = {model.id: model.max_model_len for model in models or ()}
    if models is not None and settings.model not in served:
        raise EngineError(f"{settings.base_url} does not serve {settings.model!r}; it serves {', '.join(sorted(served)) or 'no model'}.")
    window = settings.context_window or served.get(settings.model)
    if window is None:
        raise EngineError(f"{settings.base_url} does not tell how long the model's context is: set context_window.")
    return window


async def can_tokenize(client: Client, settings: ChatCompletionsSettings) -> bool:
    """Whether the server counts tokens of chat prompts."""
    if settings.tokenize == "off":
        return False
    prompt = ChatPrompt(messages=(ChatMessage(role="user", content=(TextPart(text="Hello"),)),))
    try:
        await count_tokens(client, settings, prompt)
    except EngineError as error:
        _log.info("%s counts no tokens; prompts are counted by an upper bound (%s)", settings.root_url, error.message)
        return False
    return True


async def count_tokens(client: Client, settings: ChatCompletionsSettings, prompt: ChatPrompt) -> int:
    """The length of a prompt as the server renders it.

    Raises:
        EngineError: if it does not say.
    """
    body = await asyncio.to_thread(encode_tokenize, prompt, settings)
    answer = await client.post(f"{settings.root_url}/tokenize", body, prompt)
    try:
        return TokenCount.model_validate_json(answer).count
    except ValidationError:
        raise EngineError("The model server's count of tokens is not one.") from None


def _models(answer: bytes, settings: ChatCompletionsSettings) -> list[ServedModelInfo]:
    try:
        return ModelList.model_validate_json(answer).data
    except ValidationError:
        raise EngineError(f"{settings.base_url}/models is no list of models: give the address of an OpenAI-compatible API.") from None
