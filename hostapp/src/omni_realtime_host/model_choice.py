"""Which served model a request asks for, and what it may not ask for in its query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from omni_realtime.protocol.capability_check import OPENAI_TRANSCRIPTION_MODELS
from omni_realtime.protocol.session_update import OPENAI_MODELS
from omni_realtime_host.http_errors import RequestRefusedError
from omni_realtime_host.served_model import ServedModel

_OFF = frozenset({"", "0", "false", "off", "no"})
_TRANSCRIPTION = "transcription"
_INTENTS = ("", "conversation", _TRANSCRIPTION)


def choose_model(query: Mapping[str, str], models: Iterable[ServedModel]) -> ServedModel:
    """Return the model that ``?model=`` names, or the only one; unknown query keys are the client's business.

    Raises:
        RequestRefusedError: the name is unknown or missing, or the query asks for a mode that is not served.
    """
    intent, name = query.get("intent", ""), query.get("model", "")
    if intent not in _INTENTS:
        message = f"The intent {intent[:128]!r} is not served here. Leave out `intent` for a conversation, or send '{_TRANSCRIPTION}'."
        raise RequestRefusedError(400, message, code="unsupported_value", param="intent")
    if query.get("duplex", "").lower() not in _OFF:
        message = "Duplex sessions are not served here. Leave out `duplex`."
        raise RequestRefusedError(400, message, code="unsupported_value", param="duplex")
    return find_transcriber(name, models) if intent == _TRANSCRIPTION else find_model(name, models)


def opening_of(query: Mapping[str, str], model: ServedModel) -> Mapping[str, Any]:
    """Return the partial session object that the query stands for, at the model that it chose."""
    if query.get("intent") != _TRANSCRIPTION:
        return {}
    name = query.get("model", "")
    named = {"audio": {"input": {"transcription": {"model": name}}}} if _transcribes_by(model, name) else {}
    return {"type": _TRANSCRIPTION, **named}


def find_transcriber(name: str, models: Iterable[ServedModel]) -> ServedModel:
    """Return the model of that name, or the only one that transcribes if there is no name, or that of a transcription model.

    Raises:
        RequestRefusedError: it does not transcribe, or the name is unknown or missing.
    """
    served = tuple(models)
    able = [model for model in served if model.settings.capabilities.transcribes]
    if not able:
        raise _no_transcriber("No model here transcribes", "Leave out `intent`")
    if all(model.name != name for model in served):
        meant = [model for model in able if name in {"", *OPENAI_TRANSCRIPTION_MODELS} or _transcribes_by(model, name)]
        if meant:
            return find_model("", meant)
    model = find_model(name, served)
    if model not in able:
        names = ", ".join(f"'{each.name}'" for each in able)
        raise _no_transcriber(f"The model '{name}' does not transcribe", f"Leave out `intent`, or connect to a model that does: {names}")
    return model


def _transcribes_by(model: ServedModel, name: str) -> bool:
    return name in model.settings.capabilities.transcription_models


def find_model(name: str, models: Iterable[ServedModel], param: str = "model") -> ServedModel:
    """Return the model of that name, or the only one if there is no name, or one of the API's own models.

    Raises:
        RequestRefusedError: the name, which came in ``param``, is unknown or missing.
    """
    served = {model.name: model for model in models}
    if name in served:
        return served[name]
    if len(served) == 1 and (not name or name.startswith(OPENAI_MODELS)):
        return next(iter(served.values()))
    names = ", ".join(f"'{each}'" for each in served)
    if not name:
        raise RequestRefusedError(
            400, f"Say which model: add `?model=` with one of {names}.", code="missing_required_parameter", param=param
        )
    message = f"The model {name[:128]!r} is not served here. Served: {names}."
    raise RequestRefusedError(404, message, code="model_not_found", param=param)


def _no_transcriber(what: str, advice: str) -> RequestRefusedError:
    message = f"{what}. {advice}; the operator can add `transcriber: local` to a deployment whose model takes audio."
    return RequestRefusedError(400, message, code="unsupported_value", param="intent")
