"""The conformance kit passes a good adapter and catches a bad one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omni_realtime.adapter import resolve
from omni_realtime.deployment import Deployment
from omni_realtime.plugins import load_plugin
from omni_realtime.testing.conformance import AdapterConformance

Install = Callable[..., None]

FULL = """
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.testing import ScriptedDetector, ScriptedTranscriber

@hookimpl
def realtime_capabilities():
    return Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        image_input=True,
        turn_detection=("server_vad",),
        transcription_models=("ears",),
        tools=True,
    )

@hookimpl
def realtime_detector():
    return ScriptedDetector()

@hookimpl
def realtime_transcriber():
    return ScriptedTranscriber()
"""
CLAIMS = (
    "from omni_realtime.protocol.capabilities import Capabilities\n\n@hookimpl\ndef realtime_capabilities():\n    return Capabilities({})\n"
)
PROMPT = "\n@hookimpl\ndef realtime_build_prompt(turn):\n    return ChatPrompt(messages={})\n"

FAULTS = {
    "a list with a repetition": (CLAIMS.format("output_modalities=('text', 'text')"), "test_capabilities_list_nothing_twice"),
    "no modality": (CLAIMS.format("output_modalities=()"), "test_capabilities_list_nothing_twice"),
    "transcription without audio": (CLAIMS.format("transcription_languages=('en',)"), "test_claims_about_audio_agree"),
    "logprobs without transcription": (CLAIMS.format("transcription_logprobs=True"), "test_claims_about_audio_agree"),
    "voices without audio": (CLAIMS.format("voices=('anna',)"), "test_claims_about_audio_agree"),
    "instructions lost": (FULL + PROMPT.format("turn.messages"), "test_prompt_keeps_the_order"),
    "order lost": (FULL + PROMPT.format("turn.messages[::-1]"), "test_prompt_keeps_the_order"),
    "end lost": (FULL + PROMPT.format("turn.messages[:-1]"), "test_prompt_ends_with_what_was_asked"),
    "instructions lost at the start": (FULL + PROMPT.format("turn.messages"), "test_prompt_of_an_empty_conversation"),
    "beginning lost": (FULL + PROMPT.format("turn.messages[-1:]"), "test_prompt_after_a_truncation"),
    "audio lost": (
        FULL + PROMPT.format("tuple(m for m in turn.messages if all(hasattr(part, 'text') for part in m.content))"),
        "test_prompt_keeps_the_users_audio",
    ),
    "images without sight": (CLAIMS.format("image_tokens=64"), "test_claims_about_images_agree"),
    "sight without images": (CLAIMS.format("image_input=True, image_parts=0"), "test_claims_about_images_agree"),
    "images lost": (
        FULL + PROMPT.format("tuple(m for m in turn.messages if all(hasattr(part, 'text') for part in m.content))"),
        "test_prompt_keeps_the_users_images",
    ),
    "images out of place": (
        FULL + PROMPT.format("tuple(type(m)(role=m.role, content=m.content[::-1]) for m in turn.messages)"),
        "test_prompt_keeps_the_users_images",
    ),
    "tools lost": (FULL + PROMPT.format("turn.messages"), "test_prompt_keeps_calls_and_their_outputs"),
    "calls lost": (
        FULL + PROMPT.format("tuple(m for m in turn.messages if not m.tool_calls), tools=turn.tools"),
        "test_prompt_keeps_calls_and_their_outputs",
    ),
}


class TestGoodAdapter(AdapterConformance):
    deployment = Deployment(name="served", plugin="good")

    @pytest.fixture(autouse=True)
    def _installed(self, install_good: Install) -> None:
        install_good("good", FULL)


class TestPlainAdapter(AdapterConformance):
    deployment = Deployment(name="served", plugin="good")

    @pytest.fixture(autouse=True)
    def _installed(self, install_good: Install) -> None:
        install_good("good")


@pytest.mark.parametrize(("source", "test"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_caught(install_good: Install, source: str, test: str) -> None:
    install_good("good", source)
    kit = AdapterConformance()
    kit.deployment = Deployment(name="served", plugin="good")
    adapter = resolve(kit.deployment, load_plugin("good"))
    with pytest.raises(AssertionError):
        getattr(kit, test)(adapter)


def test_a_check_that_raises_is_caught(install_good: Install) -> None:
    install_good("good", "@hookimpl\ndef realtime_check_deployment(deployment):\n    deployment.settings['folder']\n")
    kit = AdapterConformance()
    kit.deployment = Deployment(name="served", plugin="good")
    with pytest.raises(AssertionError, match="realtime_check_deployment raised KeyError"):
        kit.test_check_survives_unknown_settings()
