"""A deployment that answers by fixed rules, so that a client's test knows what it will hear.

It takes words, or tones that stand for them: a second of a sine at one of the frequencies of ``TONES`` says that sentence.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, GenerateRequest, Samples, TextPart
from omni_realtime.deployment import Deployment
from omni_realtime.engine.port import Detector, Engine, EngineError, Transcriber, TranscriptionRequest, TurnScorer
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.protocol import Capabilities
from omni_realtime.testing import (
    ScriptedDetector,
    ScriptedEngine,
    ScriptedTranscriber,
    ScriptedTurnScorer,
    Step,
    call_reply,
    loudness,
    spoken_reply,
    text_reply,
    tone,
)

OMNI_REALTIME_API = 1

HELLO = "Hello."
STORY = "Tell me a long story."
REPEAT = "What did you say?"
WEATHER = "What is the weather in Paris?"
MUMBLE = "Mumble."
FAIL = "Fail with "
TONES = {400: STORY, 700: REPEAT, 1000: WEATHER, 1300: HELLO, 1600: MUMBLE}
"""What a tone of so many Hz says."""

STORY_WORDS = 100
WORD_SECONDS = 0.2
"""Each word of the story takes so long, and half of it until the next comes: the story is told at twice the speed of speech."""


@hookimpl
def realtime_capabilities() -> Capabilities:
    return Capabilities(
        output_modalities=("audio", "text"),
        audio_input=True,
        turn_detection=("server_vad", "semantic_vad"),
        transcription_models=("scripted",),
        voices=("anna", "ben"),
        tools=True,
    )


@hookimpl
def realtime_resample_rates() -> ResampleRates:
    return ResampleRates(input=16000, output=24000)


@hookimpl
def realtime_engine() -> Engine:
    return ScriptedEngine(_answer)


@hookimpl
def realtime_detector(deployment: Deployment) -> Detector:
    return ScriptedDetector(_fail_on_speech if deployment.settings.get("deaf") else loudness)


@hookimpl
def realtime_turn_scorer() -> TurnScorer:
    return ScriptedTurnScorer()


@hookimpl
def realtime_transcriber() -> Transcriber:
    return ScriptedTranscriber(_transcribe)


def _fail_on_speech(frame: Samples) -> float:
    if loudness(frame) > 0.5:
        raise RuntimeError("The detector is deaf.")
    return 0.0


def _transcribe(request: TranscriptionRequest) -> str:
    sentence = _sentence_of(request.samples, request.rate)
    if sentence == MUMBLE:
        raise EngineError("This audio cannot be transcribed.", code="transcription_unavailable")
    return sentence


def _sentence_of(samples: Samples, rate: int) -> str:
    frequencies = np.fft.rfftfreq(len(samples), 1 / rate)
    peak = frequencies[np.argmax(np.abs(np.fft.rfft(samples * np.hanning(len(samples)))))]
    return TONES[min(TONES, key=lambda hertz: abs(hertz - peak))]


def _answer(request: GenerateRequest) -> Iterable[Step]:
    prompt = request.prompt
    last = prompt.messages[-1]
    if last.role == "tool":
        return _say(request, f"The tool says {_text_of(last)}")
    asked = _text_of(last)
    if asked == WEATHER and prompt.tools and prompt.tool_choice != "none":
        return call_reply(prompt.tools[0].name, '{"city": ', '"Paris"}')
    if asked.startswith(FAIL):
        return _fail(asked.removeprefix(FAIL))
    if asked == STORY:
        return _tell_story()
    return _say(request, f"I said: {_last_answer(prompt)}" if asked == REPEAT else "Hello to you.")


def _text_of(message: ChatMessage) -> str:
    """What a message says; of a turn in several parts, the last one."""
    match message.content[-1]:
        case TextPart(text=text):
            return text
        case AudioPart(samples=samples, rate=rate):
            return _sentence_of(samples, rate)
        case other:
            return type(other).__name__


def _last_answer(prompt: ChatPrompt) -> str:
    answers = [message for message in prompt.messages if message.role == "assistant" and message.content]
    return _text_of(answers[-1]) if answers else "nothing"


def _say(request: GenerateRequest, text: str) -> Iterable[Step]:
    if request.modalities == ("text",):
        return text_reply(text)
    return spoken_reply(text, tone(0.2 * len(text.split())), sizes=(4800,))


def _tell_story() -> Iterable[Step]:
    words = " ".join(f"word{n}" for n in range(1, STORY_WORDS + 1))
    steps = spoken_reply(words, tone(STORY_WORDS * WORD_SECONDS), sizes=(int(24000 * WORD_SECONDS),))
    return itertools.chain.from_iterable((step, WORD_SECONDS / 2) for step in steps)


def _fail(code: str) -> Iterable[Step]:
    return [RuntimeError("A fault of the plugin.") if code == "server_error" else EngineError("Failed as asked.", code=code)]
