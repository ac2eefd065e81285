"""vLLM in process: one model, text out.

Importing this package imports no vLLM; ``VllmEngine.start`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from omni_realtime.engine.vllm.engine import VllmEngine as VllmEngine
from omni_realtime.engine.vllm.settings import VllmEngineSettings as VllmEngineSettings


def read_settings(section: Mapping[str, Any]) -> VllmEngineSettings:
    """Check ``settings.engine``.

    Raises:
        pydantic.ValidationError: if something in it is wrong.
    """
    return VllmEngineSettings.model_validate(section)


def make_engine(settings: VllmEngineSettings, hook: pluggy.HookRelay) -> VllmEngine:
    """Make the engine, without loading it."""
    return VllmEngine(settings, hook)
