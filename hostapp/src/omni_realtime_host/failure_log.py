"""Logs an unexpected exception without what it says: messages of engines may quote prompts, transcripts or tool arguments."""

from __future__ import annotations

import logging
import traceback


def log_failure(logger: logging.Logger, what: str, error: BaseException) -> None:
    """Log ``what`` failed, with the types and the code lines of ``error`` and its causes, and without their messages."""
    logger.error("%s failed\n%s", what, "\n".join(_lines(error)))


def _lines(error: BaseException) -> list[str]:
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    lines = []
    for each in seen:
        lines.append(f"{type(each).__module__}.{type(each).__qualname__}")
        lines += [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in traceback.extract_tb(each.__traceback__)]
    return lines
