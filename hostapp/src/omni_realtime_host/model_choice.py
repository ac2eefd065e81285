"""Which served model a request asks for, and what it may not ask for in its query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omni_realtime_host.http_errors import RequestRefusedError
from omni_realtime_host.served_model import ServedModel

_OFF = frozenset({"", "0", "false", "off", "no"})


def choose_model(query: Mapping[str, str], models: Iterable[ServedModel]) -> ServedModel:
    """Return the model that ``?model=`` names, or the only one; unknown query keys are the client's business.

    Raises:
        RequestRefusedError: the name is unknown or missing, or the query asks for a mode that is not served.
    """
    if query.get("intent") == "transcription":
        message = "Transcription sessions are not served here. Leave out `intent`, and set `audio.input.transcription` in the session."
        raise RequestRefusedError(400, message, code="unsupported_value", param="intent")
    if query.get("duplex", "").lower() not in _OFF:
        message = "Duplex sessions are not served here. Leave out `duplex`."
        raise RequestRefusedError(400, message, code="unsupported_value", param="duplex")
    served = {model.name: model for model in models}
    name = query.get("model", "")
    if not name and len(served) == 1:
        return next(iter(served.values()))
    if name in served:
        return served[name]
    names = ", ".join(f"'{each}'" for each in served)
    if not name:
        raise RequestRefusedError(
            400, f"Say which model: add `?model=` with one of {names}.", code="missing_required_parameter", param="model"
        )
    message = f"The model {name[:128]!r} is not served here. Served: {names}."
    raise RequestRefusedError(404, message, code="model_not_found", param="model")
