"""The engine: what the user said → a reply, token by token → sentences → speech."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

from omni_realtime.chat import AudioPart, ChatDelta, ChatPrompt, GenerateRequest
from omni_realtime.engine.port import EngineError, TranscriptionRequest

from omni_realtime_local.asr import shared_transcriber
from omni_realtime_local.llama import Message
from omni_realtime_local.llm import LanguageModel
from omni_realtime_local.pipeline import Speech, with_speech
from omni_realtime_local.render import render
from omni_realtime_local.reply import reply
from omni_realtime_local.settings import LocalSettings
from omni_realtime_local.tts import PiperSpeaker

_log = logging.getLogger(__name__)
_Deltas = asyncio.Queue[ChatDelta | EngineError]
