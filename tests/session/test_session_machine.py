"""Random orders of everything that can happen to a session; what must hold, holds after each step.

``SESSION_EXAMPLES`` raises the number of examples for a longer hunt.
"""

from __future__ import annotations

import base64
import os
import re
from collections import deque
from typing import Any

import numpy as np
import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from omni_realtime.chat import ChatDelta, ToolCallDelta, Usage
from omni_realtime.protocol import Capabilities, ErrorEvent, PromptTemplate, ProtocolError, ResponseError, Transcript, decode, encode
from omni_realtime.session import (
    CancelGeneration,
    Close,
    Effect,
    Generate,
    RateLimiter,
    Score,
    ScoreTurn,
    Send,
    Session,
    SessionLimits,
    SessionSettings,
    Transcribe,
)
from omni_realtime.session.conversation import Entry
from omni_realtime.testing import check_server_event, tone
from omni_realtime.testing.order import OrderChecker
from pictures import hollow_png, seen

CAPABILITIES = Capabilities(
    output_modalities=("audio", "text"),
    audio_input=True,
    image_input=True,
    turn_detection=("server_vad", "semantic_vad"),
    transcription_models=("ears",),
    voices=("anna", "bert"),
    tools=True,
    prompts=(PromptTemplate(id="desk", instructions="Work for {{company}}."),),
)
LIMITS = SessionLimits(
    input_buffer_bytes=150_000,
    conversation_audio_bytes=60_000,
    conversation_text_bytes=2_000,
    conversation_items=12,
    out_of_band_responses=2,
    duration_s=120,
)
NOISE = tone(3.0, hertz=311.0)
CALL_PIECES = ('{"a":', " 1}", "{}", "", "nonsense")
ITEM_KINDS = ("user", "assistant", "audio", "image", "call", "output", "broken")
IDS = ("ghost", "root", "item_0123456789ab1f", "item_0123456789ab2a", "twice", "other")

PROMPTS = ({"id": "desk", "variables": {"company": "ACME"}}, {"id": "desk"}, {"id": "shop"})

words = st.text(st.characters(categories=("L", "N", "P", "Zs"), max_codepoint=0x9FFF), max_size=12)
milliseconds = st.integers(0, 900)
event_ids = st.one_of(st.none(), st.sampled_from(["mine", "yours"]))


def maybe(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), value)


turn_detections = st.one_of(
    st.none(),
    st.just({"type": "server_vad"}),
    st.fixed_dictionaries(
        {},
        optional={
            "threshold": st.floats(0, 1),
            "prefix_padding_ms": st.sampled_from([0, 33, 300]),
            "silence_duration_ms": st.sampled_from([0, 40, 200]),
            "idle_timeout_ms": st.sampled_from([None, 100, 5000]),
            "create_response": st.booleans(),
            "interrupt_response": st.booleans(),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("semantic_vad")},
        optional={
            "eagerness": st.sampled_from(["low", "high", "auto"]),
            "create_response": st.booleans(),
            "interrupt_response": st.booleans(),
        },
    ),
    st.just({"silence_duration_ms": "long"}),
)
formats = st.sampled_from([{"type": "audio/pcm", "rate": 24000}, {"type": "audio/pcmu"}, {"type": "audio/pcma"}, {"type": "opus"}])
tools = st.sampled_from([[], [{"type": "function", "name": "look"}], [{"type": "function", "name": "no name"}]])
tool_choices = st.sampled_from(["auto", "none", "required", {"type": "function", "name": "look"}, {"type": "function", "name": "fly"}])
modalities = st.sampled_from([["audio"], ["text"], ["text", "audio"], []])
voices = st.sampled_from(["anna", "bert", "marin", "zoe"])
audio_inputs = st.fixed_dictionaries(
    {},
    optional={
        "format": formats,
        "turn_detection": turn_detections,
        "transcription": maybe(st.sampled_from([{"model": "ears"}, {"model": "whisper-1"}, {"model": "nose"}])),
    },
)
session_patches = st.fixed_dictionaries(
    {"type": st.sampled_from(["realtime"] * 7 + ["transcription"])},
    optional={
        "instructions": words,
        "output_modalities": modalities,
        "tools": tools,
        "tool_choice": tool_choices,
        "max_output_tokens": st.sampled_from([1, 4096, "inf", 0, 5000]),
        "parallel_tool_calls": maybe(st.booleans()),
        "prompt": maybe(st.sampled_from(PROMPTS)),
        "audio": st.fixed_dictionaries(
            {},
            optional={
                "input": audio_inputs,
                "output": st.fixed_dictionaries({}, optional={"format": formats, "voice": voices}),
            },
        ),
    },
)
response_params = st.fixed_dictionaries(
    {},
    optional={
        "conversation": st.sampled_from(["auto", "none", "none", "other"]),
        "instructions": words,
        "output_modalities": modalities,
        "tools": tools,
        "tool_choice": tool_choices,
        "metadata": st.dictionaries(words, words, max_size=2),
        "parallel_tool_calls": st.booleans(),
        "prompt": st.sampled_from(PROMPTS),
        "audio": st.fixed_dictionaries({"output": st.fixed_dictionaries({}, optional={"format": formats, "voice": voices})}),
    },
)
tool_pieces = st.builds(
    ToolCallDelta,
    index=st.integers(0, 2),
    call_id=st.sampled_from([None, None, "call_0", "c" * 40]),
    name=st.sampled_from([None, "look", "fly"]),
    arguments=st.sampled_from(CALL_PIECES),
)
audio_chunks = st.builds(lambda start, size: NOISE[start : start + size], st.integers(0, 50_000), st.sampled_from([0, 1, 700, 2400, 15000]))
broken_audio = st.sampled_from([np.zeros(10, np.float64), np.zeros((2, 5), np.float32)])
finishes = st.sampled_from(["stop", "stop", "length", "tool_calls", "content_filter", "abort", "error", "nonsense"])
sound_deltas = st.builds(ChatDelta, text=words, spoken=words, audio=st.one_of(st.none(), audio_chunks), rate=st.just(24000))
any_deltas = st.builds(
    ChatDelta,
    text=st.one_of(st.just(""), words),
    spoken=st.one_of(st.just(""), words),
    audio=st.one_of(st.none(), st.none(), audio_chunks, broken_audio),
    rate=st.sampled_from([24000, 24000, 24000, 0, 22050]),
    tool_call=st.one_of(st.none(), tool_pieces),
    finish_reason=st.one_of(st.none(), finishes),
    usage=maybe(st.builds(Usage, input_text_tokens=st.integers(0, 9))),
)
frames_of_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), words),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "item", "session", "id"]), inner, max_size=3),
    max_leaves=6,
)

ITEM = r"conversation\.item\.added conversation\.item\.done"
REPLIES = {
    "session.update": r"session\.updated",
    "input_audio_buffer.append": "",
    "input_audio_buffer.commit": rf"(input_audio_buffer\.speech_stopped )?input_audio_buffer\.committed {ITEM}",
    "input_audio_buffer.clear": r"input_audio_buffer\.cleared",
    "conversation.item.create": ITEM,
    "conversation.item.delete": r"conversation\.item\.deleted",
    "conversation.item.retrieve": r"conversation\.item\.retrieved",
    "conversation.item.truncate": r"conversation\.item\.truncated",
    "response.create": r"response\.created( rate_limits\.updated( response\.done)?)?",
    "response.cancel": r"(response\.\S+ |conversation\.item\.done )*response\.done",
}
"""What the session says at once to each event that it takes."""


def fingerprint(session: Session) -> tuple[object, ...]:
    """Everything that a refused event must leave as it is."""
    buffer = session._intake._buffer
    return (
        session.config.model_dump_json(),
        [entry_fingerprint(entry) for entry in session._conversation],
        (buffer.received, buffer.start, buffer._head, [chunk.tobytes() for chunk in buffer._chunks], buffer._frames.tobytes()),
        buffer._decoder._carried,
        (session._intake._epoch, session._intake._scored, session._intake._speech, tuple(session._intake._heard)),
        session._intake._pause and (session._intake._pause.number, session._intake._pause.probability),
        (session.active_responses, session._responses.active_id, session._responses.spoken),
        session._played,
        session._closed,
    )


def entry_fingerprint(entry: Entry) -> tuple[object, ...]:
    audio = [(index, part.key, part.samples.tobytes()) for index, part in entry.audio.items()]
    return entry.item, entry.snapshot(), entry.body and entry.body.content(audio=True), audio


class SessionMachine(RuleBasedStateMachine):
    @initialize(
        input_rate=st.sampled_from([16000, 24000]),
        detector_rate=st.sampled_from([16000, 8000]),
        scorer=st.sampled_from([(16000, 128_000), (8000, 999)]),
        turn_detection=st.sampled_from([
            None,
            {"silence_duration_ms": 40},
            {"idle_timeout_ms": 300, "silence_duration_ms": 100},
            {"type": "semantic_vad", "eagerness": "high"},
            {"type": "semantic_vad", "create_response": False},
        ]),
        kind=st.sampled_from(["realtime"] * 4 + ["transcription"]),
        limiter=st.one_of(st.none(), st.builds(RateLimiter, requests_per_minute=st.sampled_from([2, 60]), tokens_per_minute=st.just(20))),
    )
    def open(
        self,
        input_rate: int,
        detector_rate: int,
        scorer: tuple[int, int],
        turn_detection: object,
        kind: str,
        limiter: RateLimiter | None,
    ) -> None:
        self.session = Session(
            SessionSettings(
                model="scripted",
                capabilities=CAPABILITIES,
                defaults={"audio": {"input": {"turn_detection": turn_detection, "transcription": {"model": "ears"}}}},
                input_rate=input_rate,
                detector_rate=detector_rate,
                detector_frame=512,
                scorer_rate=scorer[0],
                scorer_window=scorer[1],
                rate_limiter=limiter,
                limits=LIMITS,
            ),
            token="0123456789ab",
            now=0.0,
            epoch_now=0,
            opening={"type": kind},
        )
        self.now = 0.0
        self.scorer_window = scorer[1]
        self.order = OrderChecker()
        self.generated: list[str] = []
        self.refused: set[str] = set()
        self.to_score: deque[list[int]] = deque()
        self.pauses: list[int] = []
        self.to_transcribe: list[str] = []
        self.item_ids: list[str] = list(IDS)
        self.call_ids: list[str] = ["call_x"]
        self.closed = False
        self.take(self.session.open(self.now))

    def take(self, effects: list[Effect]) -> list[str]:
        """Check effects, do what a host notes of them, and return the types of the events."""
        types = []
        for effect in effects:
            assert not self.closed, f"{effect} after the close"
            match effect:
                case Send():
                    event = check_server_event(encode(effect.event))
                    self.order.check(event)
                    types.append(event["type"])
                    self.note(event)
                case Generate():
                    assert self.session.config.type == "realtime"
                    assert effect.response_id not in self.generated
                    assert effect.response_id in self.order.running
                    self.generated.append(effect.response_id)
                case CancelGeneration():
                    assert effect.response_id in self.generated
                case Score():
                    assert len(effect.frames) % 512 == 0
                    self.to_score.append([effect.epoch, len(effect.frames) // 512])
                case ScoreTurn():
                    assert effect.pause not in self.pauses
                    assert 1 <= len(effect.samples) <= self.scorer_window
                    self.pauses.append(effect.pause)
                case Transcribe():
                    assert len(effect.samples)
                    self.to_transcribe.append(effect.item_id)
                case Close():
                    self.closed = True
        return types

    def note(self, event: dict[str, Any]) -> None:
        item = event.get("item", {})
        if item.get("id") and item["id"] not in self.item_ids:
            self.item_ids.append(item["id"])
        if item.get("call_id") and item["call_id"] not in self.call_ids:
            self.call_ids.append(item["call_id"])
        if event["type"] == "response.done" and event["response"]["id"] not in self.generated:
            assert event["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded"
            self.refused.add(event["response"]["id"])

    def send(self, event: object) -> None:
        before = fingerprint(self.session)
        try:
            decoded = decode(orjson.dumps(event).decode())
        except ProtocolError as error:
            effects = self.session.refuse(error, self.now)
        else:
            effects = self.session.receive(decoded, self.now)
        if before[-1]:
            assert effects == []
        elif refusals := [effect.event for effect in effects if isinstance(effect, Send) and isinstance(effect.event, ErrorEvent)]:
            assert len(effects) == 1
            assert fingerprint(self.session) == before
            assert refusals[0].client_event_id == (event.get("event_id") if isinstance(event, dict) else None)
            assert refusals[0].message
            self.take(effects)
        else:
            assert isinstance(event, dict)
            types = self.take(effects)
            assert re.fullmatch(REPLIES[event["type"]], " ".join(types)), types
            begins = event["type"] == "response.create" and "response.done" not in types
            assert begins == any(isinstance(effect, Generate) for effect in effects)

    def event(self, kind: str, event_id: str | None, **fields: object) -> None:
        self.send({"type": kind, **({"event_id": event_id} if event_id else {}), **fields})

    def an_item(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.order.items * 3, *self.item_ids]))

    def a_response(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.session.active_responses * 4, *self.generated[-2:], "resp_ghost"]))

    @rule(frame=frames_of_json)
    def any_json(self, frame: object) -> None:
        self.send(frame)

    @rule(patch=session_patches, event_id=event_ids)
    def session_update(self, patch: object, event_id: str | None) -> None:
        self.event("session.update", event_id, session=patch)

    @rule(audio_input=audio_inputs, event_id=event_ids)
    def input_update(self, audio_input: object, event_id: str | None) -> None:
        self.event("session.update", event_id, session={"type": self.session.config.type, "audio": {"input": audio_input}})

    @rule(size=st.integers(1, 24_000))
    def append(self, size: int) -> None:
        audio = (NOISE * 32767).astype("<i2").tobytes()[:size]
        self.event("input_audio_buffer.append", None, audio=base64.b64encode(audio).decode())

    @rule(event_id=event_ids)
    def commit(self, event_id: str | None) -> None:
        self.event("input_audio_buffer.commit", event_id)

    @rule(event_id=event_ids)
    def clear(self, event_id: str | None) -> None:
        self.event("input_audio_buffer.clear", event_id)

    @rule(data=st.data(), text=words, kind=st.sampled_from(ITEM_KINDS), chosen=st.booleans())
    def create_item(self, data: st.DataObject, text: str, kind: str, *, chosen: bool) -> None:
        pcm = base64.b64encode(bytes(len(text) * 400 or 1)).decode()
        call_id = data.draw(st.sampled_from(self.call_ids))
        items: dict[str, dict[str, Any]] = {
            "user": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
            "assistant": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
            "audio": {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": pcm}]},
            "image": seen(text, hollow_png() + bytes(len(text) * 4000)),
            "call": {"type": "function_call", "call_id": call_id, "name": "look", "arguments": text},
            "output": {"type": "function_call_output", "call_id": call_id, "output": text},
            "broken": {"type": "message", "role": "user"},
        }
        item = items[kind]
        if chosen:
            item["id"] = self.an_item(data)
        previous = data.draw(st.one_of(st.none(), st.none(), st.sampled_from(self.item_ids)))
        self.event("conversation.item.create", None, item=item, previous_item_id=previous)

    @rule(data=st.data(), kind=st.sampled_from(["delete", "retrieve"]), event_id=event_ids)
    def of_item(self, data: st.DataObject, kind: str, event_id: str | None) -> None:
        self.event(f"conversation.item.{kind}", event_id, item_id=self.an_item(data))

    @rule(data=st.data(), end=st.one_of(st.integers(-1, 1200), st.just(10**15)), index=st.integers(-1, 1))
    def truncate(self, data: st.DataObject, end: int, index: int) -> None:
        self.event("conversation.item.truncate", None, item_id=self.an_item(data), content_index=index, audio_end_ms=end)

    @precondition(lambda self: self.speeches() and not self.closed)
    @rule(data=st.data())
    def truncate_a_speech(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.speeches()))
        speech = entry.speech
        assert speech
        said, length = speech.transcript, speech.duration_ms
        end = data.draw(st.integers(0, length + 2))
        truncate = {"item_id": entry.item.id, "content_index": 0}
        self.event("conversation.item.truncate", None, **truncate, audio_end_ms=end)
        if end > length:
            assert (speech.transcript, speech.duration_ms) == (said, length)
            return
        assert said.startswith(speech.transcript)
        assert speech.duration_ms == end
        assert end or not speech.transcript
        cut = fingerprint(self.session)
        self.event("conversation.item.truncate", None, **truncate, audio_end_ms=end)
        assert fingerprint(self.session) == cut

    def speeches(self) -> list[Entry]:
        return [entry for entry in self.session._conversation if entry.speech]

    @rule(params=st.one_of(st.just({}), st.just({"output_modalities": ["audio"]}), response_params), event_id=event_ids)
    def create_response(self, params: object, event_id: str | None) -> None:
        self.event("response.create", event_id, response=params)

    @rule(data=st.data(), params=response_params, broken=st.booleans())
    def create_response_of_input(self, data: st.DataObject, params: dict[str, Any], *, broken: bool) -> None:
        references = data.draw(st.lists(st.sampled_from(self.item_ids), max_size=2))
        given: list[dict[str, Any]] = [{"type": "item_reference", "id": item_id} for item_id in references]
        if broken:
            given.append({"type": "function_call_output", "call_id": "call_ghost", "output": "?"})
        self.event("response.create", None, response={**params, "input": given})

    @rule(data=st.data(), named=st.booleans(), event_id=event_ids)
    def cancel(self, data: st.DataObject, event_id: str | None, *, named: bool) -> None:
        self.event("response.cancel", event_id, **({"response_id": self.a_response(data)} if named else {}))

    @precondition(lambda self: self.session.active_responses)
    @rule(data=st.data(), delta=st.one_of(sound_deltas, sound_deltas, sound_deltas, st.builds(ChatDelta, text=words)))
    def engine_speaks(self, data: st.DataObject, delta: ChatDelta) -> None:
        self.take(self.session.delta(data.draw(st.sampled_from(self.session.active_responses)), delta, self.now))

    @rule(data=st.data(), delta=st.one_of(any_deltas, st.builds(ChatDelta, finish_reason=finishes)))
    def engine_says_anything(self, data: st.DataObject, delta: ChatDelta) -> None:
        response_id = self.a_response(data)
        alive = response_id in self.session.active_responses
        effects = self.session.delta(response_id, delta, self.now)
        assert alive or not effects
        self.take(effects)

    @rule(data=st.data(), failed=st.booleans())
    def engine_ends(self, data: st.DataObject, *, failed: bool) -> None:
        response_id = self.a_response(data)
        alive = response_id in self.session.active_responses
        error = ResponseError(type="server_error", code="server_error", message="Broken.")
        effects = (
            self.session.generation_failed(response_id, error, self.now) if failed else self.session.generation_ended(response_id, self.now)
        )
        assert bool(effects) == alive
        self.take(effects)
        assert response_id not in self.session.active_responses

    @precondition(lambda self: self.to_score)
    @rule(data=st.data())
    def detector_answers(self, data: st.DataObject) -> None:
        epoch, frames = self.to_score[0]
        count = data.draw(st.integers(1, frames))
        self.to_score[0][1] -= count
        if not self.to_score[0][1]:
            self.to_score.popleft()
        probability = st.sampled_from([0.0, 0.0, 0.4, 0.9, 0.9, float("nan")])
        stale = epoch != self.session._intake._epoch
        effects = self.session.speech_scored(epoch, data.draw(st.lists(probability, min_size=count, max_size=count)), self.now)
        assert not (stale and effects)
        self.take(effects)

    @rule(size=st.integers(4_000, 48_000), spoken=st.integers(0, 12), score=st.sampled_from([None, 0.1, 0.9]))
    def user_speaks_and_pauses(self, size: int, spoken: int, score: float | None) -> None:
        self.append(size)
        while self.to_score:
            epoch, frames = self.to_score.popleft()
            heard = [0.9] * min(spoken, frames) + [0.0] * max(frames - spoken, 0)
            self.take(self.session.speech_scored(epoch, heard, self.now))
        if self.pauses and score is not None:
            self.take(self.session.turn_scored(self.pauses[-1], score, self.now))

    @rule(epoch=st.integers(-1, 500))
    def detector_answers_of_old(self, epoch: int) -> None:
        if epoch != self.session._intake._epoch:
            assert self.session.speech_scored(epoch, [1.0, 0.0, 1.0], self.now) == []

    @precondition(lambda self: self.pauses)
    @rule(data=st.data(), probability=st.sampled_from([0.0, 0.4, 0.9, 0.9, float("nan")]))
    def scorer_answers(self, data: st.DataObject, probability: float) -> None:
        pause = data.draw(st.sampled_from(self.pauses[-3:]))
        known = self.session._intake._pause
        effects = self.session.turn_scored(pause, probability, self.now)
        assert not effects or (known is not None and known.number == pause)
        self.take(effects)

    @precondition(lambda self: self.to_transcribe)
    @rule(data=st.data(), transcript=words, failed=st.booleans())
    def transcriber_answers(self, data: st.DataObject, transcript: str, *, failed: bool) -> None:
        item_id = data.draw(st.sampled_from(self.to_transcribe))
        self.to_transcribe.remove(item_id)
        here = item_id in self.session._conversation and not self.closed
        if failed:
            effects = self.session.transcription_failed(item_id, "server_error", "Broken.", self.now)
        else:
            effects = self.session.transcribed(item_id, Transcript(text=transcript), self.now)
        assert bool(effects) == here
        self.take(effects)

    @rule(seconds=st.one_of(st.floats(0, 2), st.just(100.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        deadline = self.session.deadline
        effects = self.session.tick(self.now)
        assert deadline is not None or not effects
        if deadline is not None:
            assert bool(effects) == (self.now >= deadline)
        self.take(effects)

    @precondition(lambda self: self.now > 20)
    @rule()
    def shut_down(self) -> None:
        self.take(self.session.shutdown(self.now))
        assert self.closed

    @invariant()
    def conversation_and_events_agree(self) -> None:
        assert self.order.items == [entry.item.id for entry in self.session._conversation]
        assert self.order.running == self.session.active_responses
        assert set(self.order.running) <= set(self.generated)
        assert self.closed == (self.session.deadline is None)

    @invariant()
    def what_is_kept_is_bounded(self) -> None:
        conversation = self.session._conversation
        kept = {entry.item.id: entry.kept_bytes for entry in conversation if entry.item.status != "in_progress" and entry.kept_bytes}
        assert conversation._audio.items() >= kept.items()
        assert conversation._kept_bytes == sum(conversation._audio.values())
        assert conversation._kept_bytes <= LIMITS.conversation_audio_bytes or len(conversation._audio) == 1
        assert conversation.text_bytes == sum(conversation._text.values())
        assert conversation._text.keys() == set(self.order.items)
        buffer = self.session._intake._buffer
        assert 0 <= buffer.retained_bytes <= 3 * LIMITS.input_buffer_bytes  # appended as one byte a sample, counted as two
        assert buffer.start <= buffer.received
        samples = sum(map(len, buffer._chunks))
        assert samples == buffer._samples
        assert abs(buffer._head + samples - buffer._index(buffer.received)) <= buffer._model_rate // 8  # held back by the resampler

    def teardown(self) -> None:
        if not hasattr(self, "session"):
            return
        self.take(self.session.shutdown(self.now))
        assert not self.session.active_responses
        assert not self.order.running
        assert self.order._ended == set(self.generated) | self.refused
        for response_id in self.generated:
            assert self.session.delta(response_id, ChatDelta(text="late", audio=NOISE, rate=24000), self.now) == []
        assert self.session.receive(decode('{"type": "response.create"}'), self.now) == []


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(
    max_examples=int(os.environ.get("SESSION_EXAMPLES", "100")),
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
