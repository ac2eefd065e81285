"""A deployment may borrow its speech detector and its transcriber from another plugin."""

from __future__ import annotations

import pytest

from omni_realtime.adapter import resolve
from omni_realtime.deployment import Deployment
from omni_realtime.plugins import PluginError, load_plugin

LENDER = """
from omni_realtime.protocol import Capabilities
from omni_realtime.testing import ScriptedDetector, ScriptedTranscriber, ScriptedTurnScorer

@hookimpl
def realtime_capabilities(deployment):
    assert not deployment.settings, "the lender gets its own settings"
    return Capabilities(
        turn_detection=("server_vad",), transcription_models=("pen",), transcription_languages=("en",), transcription_logprobs=True
    )

@hookimpl
def realtime_detector(deployment):
    return ScriptedDetector()

@hookimpl
def realtime_turn_scorer(deployment):
    return ScriptedTurnScorer()

@hookimpl
def realtime_transcriber(deployment):
    return ScriptedTranscriber()
"""
SEMANTIC_LENDER = LENDER.replace('("server_vad",)', '("semantic_vad", "server_vad")')
BORROWER = """
from omni_realtime.protocol import Capabilities

@hookimpl
def realtime_capabilities(deployment):
    return Capabilities(audio_input=True)
"""


@pytest.fixture(autouse=True)
def plugins(install_good):
    install_good("lender", LENDER)
    install_good("semantic", SEMANTIC_LENDER)
    install_good("borrower", BORROWER)


def served(**lent):
    deployment = Deployment(name="m", plugin="borrower", settings={"own": 1}, **lent)
    return resolve(deployment, load_plugin("borrower"))


def test_without_a_lender_there_is_neither():
    adapter = served()
    assert (adapter.detector, adapter.transcriber) == (None, None)
    assert adapter.capabilities.turn_detection == ()


def test_a_lent_detector_serves_server_vad():
    adapter = served(detector="lender")
    assert type(adapter.detector).__name__ == "ScriptedDetector"
    assert adapter.capabilities.turn_detection == ("server_vad",)
    assert adapter.capabilities.audio_input
    assert (adapter.turn_scorer, adapter.transcriber) == (None, None)


def test_a_lent_detector_brings_the_turn_scorer_that_its_plugin_claims():
    adapter = served(detector="semantic")
    assert type(adapter.turn_scorer).__name__ == "ScriptedTurnScorer"
    assert adapter.capabilities.turn_detection == ("server_vad", "semantic_vad")


def test_a_lender_without_the_turn_scorer_that_it_claims_is_named(install_good):
    install_good(
        "boastful", SEMANTIC_LENDER.replace("def realtime_turn_scorer", "def unmarked").replace("@hookimpl\ndef unmarked", "def unmarked")
    )
    with pytest.raises(PluginError, match=r"Plugin 'boastful'.*realtime_turn_scorer returned nothing.*the capabilities list semantic_vad"):
        served(detector="boastful")


def test_a_lent_transcriber_serves_its_models_and_languages():
    adapter = served(transcriber="lender")
    assert type(adapter.transcriber).__name__ == "ScriptedTranscriber"
    assert adapter.capabilities.transcription_models == ("pen",)
    assert adapter.capabilities.transcription_languages == ("en",)
    assert adapter.capabilities.transcription_logprobs
    assert adapter.capabilities.transcribes
    assert adapter.detector is None


def test_a_missing_lender_is_named():
    with pytest.raises(PluginError, match="'nobody' is not installed"):
        served(detector="nobody")


def test_a_lender_without_a_detector_is_named():
    with pytest.raises(PluginError, match=r"Plugin 'borrower'.*realtime_detector returned nothing"):
        served(detector="borrower")
