"""Tests that every adapter should pass; a plugin's own test suite gets them with one subclass.

.. code-block:: python

    class TestParrot(AdapterConformance):
        deployment = Deployment(name="parrot", plugin="parrot")

Needs pytest. Engines, detectors and transcribers are made, and neither loaded nor started.
"""

from __future__ import annotations

import base64

import numpy as np
import pytest

from omni_realtime.adapter import Adapter, check_deployment, resolve
from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, ImagePart, Role, TextPart, Tool, ToolCall, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.plugins import load_plugin

LOOK = Tool(name="look_around", description="Looks around.", parameters={"type": "object", "properties": {}})

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""


class AdapterConformance:
    """Subclass it as ``Test...`` and set ``deployment``, with settings for which the plugin finds no problem."""

    deployment: Deployment

    @pytest.fixture
    def adapter(self) -> Adapter:
        """Resolve the deployment as a host would."""
        problems = check_deployment(self.deployment)
        assert not problems, f"set a deployment without problems: {problems}"
        return resolve(self.deployment, load_plugin(self.deployment.plugin))

    def test_plugin_makes_its_engine(self) -> None:
        """The plugin loads, and answers the one hook that has no default and is always asked."""
        assert "realtime_engine" in load_plugin(self.deployment.plugin).hooks, "implement realtime_engine"

    def test_check_survives_unknown_settings(self) -> None:
        """Whatever the configuration file holds, the check answers with problems and does not raise."""
        strange = Deployment(name="strange", plugin=self.deployment.plugin, settings={"no_such_setting": [None, {"a": 1}]})
        for problem in check_deployment(strange):
            assert isinstance(problem, Problem)
            assert problem.where != "plugin", problem.message
            assert problem.message, f"{problem.where}: a problem needs words that mend it"

    def test_capabilities_list_nothing_twice(self, adapter: Adapter) -> None:
        """Each list of the capabilities is a set in order of preference, and there is something to answer with."""
        claims = adapter.capabilities
        assert claims.output_modalities, "output_modalities: name at least one"
        for name in ("output_modalities", "input_formats", "output_formats", "turn_detection", "transcription_models", "voices"):
            values = getattr(claims, name)
            assert len(set(values)) == len(values), f"{name} lists something twice: {values}"
        assert claims.max_output_tokens > 0, "max_output_tokens: name a positive number"

    def test_claims_about_audio_agree(self, adapter: Adapter) -> None:
        """What is claimed about audio stands on audio."""
        claims = adapter.capabilities
        if not claims.audio_input:
            assert not claims.turn_detection, "turn_detection is claimed without audio_input"
            assert not claims.transcription_models, "transcription_models are claimed without audio_input"
        else:
            assert claims.input_formats, "audio_input is claimed without an input format"
        if "audio" in claims.output_modalities:
            assert claims.output_formats, "audio output is claimed without an output format"
        else:
            assert not claims.voices, "voices are claimed without audio output"
        assert claims.transcription_models or not claims.transcription_languages, "languages are claimed without a transcription model"
        assert claims.transcription_models or not claims.transcription_logprobs, "logprobs are claimed without a transcription model"

    def test_claims_have_their_parts(self, adapter: Adapter) -> None:
        """Detector, turn scorer and transcriber are there exactly where they are claimed."""
        claims = adapter.capabilities
        assert bool(adapter.detector) == bool(claims.turn_detection), "turn_detection needs realtime_detector"
        assert bool(adapter.turn_scorer) == ("semantic_vad" in claims.turn_detection), "semantic_vad needs realtime_turn_scorer"
        assert bool(adapter.transcriber) == bool(claims.transcription_models), "transcription_models need realtime_transcriber"

    def test_prompt_keeps_the_order(self, adapter: Adapter) -> None:
        """The conversation reaches the model in its order, each text in its role; the instructions come before it."""
        spoken: list[tuple[Role, str]] = [("user", "alpha"), ("assistant", "beta"), ("user", "gamma"), ("user", "delta")]
        turn = Turn(messages=tuple(text_message(role, text) for role, text in spoken), instructions="omega")
        prompt = adapter.build_prompt(turn)
        found = [(message.role, word) for message, word in _found(prompt, [text for _, text in spoken])]
        assert found == spoken, f"the conversation {spoken} became {found}"
        assert [word for _, word in _found(prompt, ["omega", "alpha"])] == ["omega", "alpha"], "instructions come first"

    def test_prompt_ends_with_what_was_asked(self, adapter: Adapter) -> None:
        """The last user message is the last of the prompt."""
        prompt = adapter.build_prompt(
            Turn(messages=(text_message("user", "alpha"), text_message("assistant", "beta"), text_message("user", "gamma")))
        )
        last = prompt.messages[-1]
        assert (last.role, "gamma" in _text(last)) == ("user", True), f"the last user message is not the end, {last.role} is"

    def test_prompt_of_an_empty_conversation(self, adapter: Adapter) -> None:
        """A response may come before anything was said."""
        prompt = adapter.build_prompt(Turn(messages=(), instructions="omega"))
        assert _found(prompt, ["omega"]), "the instructions are lost"

    def test_prompt_of_every_modality(self, adapter: Adapter) -> None:
        """Every output modality that is claimed has a prompt."""
        for modality in adapter.capabilities.output_modalities:
            prompt = adapter.build_prompt(Turn(messages=(text_message("user", "alpha"),), modalities=(modality,)))
            assert _found(prompt, ["alpha"]), f"the prompt of {modality} lost the conversation"

    def test_prompt_after_a_truncation(self, adapter: Adapter) -> None:
        """An assistant message that was cut holds what was heard, which may be nothing at all."""
        cut = text_message("assistant", "the capital of")
        unheard = ChatMessage(role="assistant")
        for heard in (cut, unheard):
            prompt = adapter.build_prompt(Turn(messages=(text_message("user", "alpha"), heard, text_message("user", "gamma"))))
            words = ["alpha", *(["the capital of"] if heard is cut else []), "gamma"]
            found = [word for _, word in _found(prompt, words)]
            assert found == words, f"the texts {words} became {found}"

    def test_prompt_keeps_the_users_audio(self, adapter: Adapter) -> None:
        """A spoken turn is not lost, transcribed or not, nor are its neighbours."""
        if not adapter.capabilities.audio_input:
            pytest.skip("takes no audio")
        for transcript in (None, "beta"):
            audio = audio_message(adapter.rates.input, transcript)
            prompt = adapter.build_prompt(Turn(messages=(text_message("user", "alpha"), text_message("assistant", "yes"), audio)))
            last = prompt.messages[-1]
            assert last.role == "user", f"the last user message is not the end, {last.role} is"
            assert last.content, "the audio of the last user message is lost"
            assert _found(prompt, ["alpha"]), "the message before the audio is lost"

    def test_claims_about_images_agree(self, adapter: Adapter) -> None:
        """What is claimed about images stands on images, and at least one fits into a prompt."""
        claims = adapter.capabilities
        if claims.image_input:
            assert claims.image_parts != 0, "image_input is claimed with no image in a prompt"
        else:
            assert not claims.image_tokens, "image_tokens are claimed without image_input"
            assert not claims.image_parts, "image_parts are claimed without image_input"

    def test_prompt_keeps_the_users_images(self, adapter: Adapter) -> None:
        """Every image reaches the model as it is, in its message and its place among the texts."""
        if not adapter.capabilities.image_input:
            pytest.skip("sees no images")
        first, second = image_part("first"), image_part("second")
        shown = ChatMessage(role="user", content=(first, TextPart(text="alpha"), second, TextPart(text="beta")))
        prompt = adapter.build_prompt(Turn(messages=(shown, text_message("assistant", "yes"), text_message("user", "gamma"))))
        found = [[part for part in message.content if part in {first, second} or isinstance(part, TextPart)] for message in prompt.messages]
        assert [first, second] == [part for parts in found for part in parts if isinstance(part, ImagePart)], "an image is lost, or changed"
        (message,) = (parts for parts in found if first in parts)
        words = ["<image>" if isinstance(part, ImagePart) else part.text for part in message]
        assert words == ["<image>", "alpha", "<image>", "beta"], f"the parts of the message became {words}"

    def test_prompt_keeps_calls_and_their_outputs(self, adapter: Adapter) -> None:
        """A call is followed by its output, and the tools that the model may use are told to it."""
        if not adapter.capabilities.tools:
            pytest.skip("serves no tools")
        call = ChatMessage(role="assistant", tool_calls=(ToolCall(call_id="call_1", name=LOOK.name, arguments="{}"),))
        output = ChatMessage(role="tool", content=(TextPart(text="a wide sea"),), tool_call_id="call_1")
        prompt = adapter.build_prompt(Turn(messages=(text_message("user", "alpha"), call, output), tools=(LOOK,)))
        assert [word for _, word in _found(prompt, ["alpha", "a wide sea"])] == ["alpha", "a wide sea"], (
            "the output is lost, or out of order"
        )
        called = [index for index, message in enumerate(prompt.messages) if _calls(message, LOOK.name)]
        answered = [index for index, message in enumerate(prompt.messages) if "a wide sea" in _text(message)]
        assert any(index < answered[0] for index in called), "the call is lost, or stands behind its output"
        told = any(tool.name == LOOK.name for tool in prompt.tools) or LOOK.name in _text(prompt.messages[0])
        assert told, "the tools are lost"


def text_message(role: Role, text: str) -> ChatMessage:
    """Say it in writing."""
    return ChatMessage(role=role, content=(TextPart(text=text),))


def audio_message(rate: int, transcript: str | None = None) -> ChatMessage:
    """Say a fifth of a second of silence."""
    return ChatMessage(
        role="user", content=(AudioPart(samples=np.zeros(rate // 5, np.float32), rate=rate, key="quiet", transcript=transcript),)
    )


def image_part(key: str) -> ImagePart:
    """Show a single white pixel."""
    return ImagePart(data=base64.b64decode(PIXEL), media_type="image/png", key=key)


def _text(message: ChatMessage) -> str:
    return "".join(part.text for part in message.content if isinstance(part, TextPart))


def _calls(message: ChatMessage, name: str) -> bool:
    return any(call.name == name for call in message.tool_calls) or (message.role == "assistant" and name in _text(message))


def _found(prompt: ChatPrompt, words: list[str]) -> list[tuple[ChatMessage, str]]:
    """Where these words stand, in the prompt's order; a word that stands twice is found twice."""
    places = [(index, text.index(word), word) for index, text in enumerate(map(_text, prompt.messages)) for word in words if word in text]
    return [(prompt.messages[index], word) for index, _, word in sorted(places)]
