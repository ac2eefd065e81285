"""A plugin framework for the OpenAI Realtime API: any omni model, any Realtime client."""

from __future__ import annotations

__version__ = "0.1.0"
