"""vLLM-Omni's platform plugin for a CPU."""

from __future__ import annotations


def register() -> str | None:
    """Return the platform class, where vLLM itself runs on its CPU platform."""
    from vllm.platforms import current_platform

    return "omni_cpu.platform.CpuOmniPlatform" if current_platform.is_cpu() else None
