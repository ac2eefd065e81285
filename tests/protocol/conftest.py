from __future__ import annotations

import pytest

from omni_realtime.protocol import Capabilities, SessionConfig, default_session


@pytest.fixture
def capabilities() -> Capabilities:
    """Everything that the codec can name, served."""
    return Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        turn_detection=("server_vad", "semantic_vad"),
        transcription_models=("tiny", "large"),
        transcription_languages=("en", "de"),
        voices=("anna", "bert"),
        tools=True,
        max_output_tokens=1000,
        default_instructions="Be brief.",
    )


@pytest.fixture
def session(capabilities: Capabilities) -> SessionConfig:
    return default_session(session_id="sess_1", model="served", capabilities=capabilities, defaults={}, expires_at=1_700_000_000)
