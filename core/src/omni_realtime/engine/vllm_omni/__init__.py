"""vLLM-Omni in process: omni models in stages, text and audio out.

Importing this package imports no vLLM; ``VllmOmniEngine.start`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from omni_realtime.engine.vllm_omni.engine import VllmOmniEngine as VllmOmniEngine
from omni_realtime.engine.vllm_omni.settings import VllmOmniSettings as VllmOmniSettings


def read_settings(section: Mapping[str, Any]) -> VllmOmniSettings:
    """Check ``settings.engine``.

    Raises:
        pydantic.ValidationError: if something in it is wrong.
    """
    return VllmOmniSettings.model_validate(section)


def make_engine(settings: VllmOmniSettings, hook: pluggy.HookRelay) -> VllmOmniEngine:
    """Make the engine, without loading it."""
    return VllmOmniEngine(settings, hook)
