"""vLLM's exceptions as those of the engine port."""

from __future__ import annotations

from omni_realtime.engine.port import EngineDeadError, EngineError

TOO_LONG = frozenset({"input_text", "input_tokens", "audio", "image"})
"""What vLLM names as the parameter at fault where a prompt has too much text, too many tokens, audio parts or images."""


def is_too_long(error: BaseException) -> bool:
    """Whether vLLM refused a prompt for its size."""
    return getattr(error, "parameter", None) in TOO_LONG


def context_length_exceeded(window: int) -> EngineError:
    """A prompt does not fit."""
    return EngineError(f"The input is longer than the model's context of {window} tokens.", code="context_length_exceeded")


def engine_dead() -> EngineDeadError:
    """The engine is gone for good."""
    return EngineDeadError("The engine has died.")


def port_error(error: Exception) -> EngineError:
    """The port's error for one of vLLM's, whose own words may quote the prompt and stay inside."""
    if _is_client_error(error):
        return EngineError("The engine cannot take this input.", code="invalid_prompt")
    return EngineError("The engine failed to make this response.")


def is_engine_death(error: BaseException) -> bool:
    """Whether vLLM says that an engine, or a part of it, is gone."""
    from vllm.v1.engine.exceptions import EngineDeadError as VllmEngineDeadError  # noqa: PLC0415 - vLLM is there by now

    return isinstance(error, VllmEngineDeadError)


def _is_client_error(error: BaseException) -> bool:
    from vllm.exceptions import VLLMClientError  # noqa: PLC0415 - vLLM is there by now

    return isinstance(error, VLLMClientError | ValueError)
