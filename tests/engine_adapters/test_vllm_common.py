"""What the engines in process share and what needs no engine to be shown."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, NamedTool, TextPart, Tool, ToolCall, Usage
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import UnknownEngineError, create_engine, engine_problems
from omni_realtime.engine.chat_shape import tool_choice
from omni_realtime.engine.hidden_text import HiddenText
from omni_realtime.engine.port import EngineError, StageInfo
from omni_realtime.engine.vllm_common import faults
from omni_realtime.engine.vllm_common.audio import rate_of, samples_of
from omni_realtime.engine.vllm_common.completion import Completion, GenerationFailedError
from omni_realtime.engine.vllm_common.messages import audio_parts, chat_messages, forces_a_tool, tool_definitions
from omni_realtime.engine.vllm_common.rendering import Rendered
from omni_realtime.engine.vllm_omni.stages import stages_of

LOOK = Tool(name="look", description="Looks.", parameters={"type": "object"})
AUDIO = AudioPart(samples=np.zeros(160, np.float32), rate=16000, key="turn-1")


def prompt(*messages: ChatMessage, **more: Any) -> ChatPrompt:
    return ChatPrompt(messages=messages, **more)


def test_messages_are_in_vllms_shape_with_audio_by_its_key() -> None:
    made = prompt(
        ChatMessage(role="system", content=(TextPart(text="Be brief."),)),
        ChatMessage(role="user", content=(AUDIO, TextPart(text="this?"))),
        ChatMessage(role="assistant", tool_calls=(ToolCall(call_id="c", name="look", arguments='{"a": 1}'),)),
        ChatMessage(role="tool", content=(TextPart(text="sea"),), tool_call_id="c"),
    )
    assert chat_messages(made) == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": None, "uuid": "turn-1"}, {"type": "text", "text": "this?"}],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "sea", "tool_call_id": "c"},
    ]
    assert audio_parts(made) == [AUDIO]


def test_messages_are_made_anew_each_time_since_rendering_changes_them() -> None:
    made = prompt(ChatMessage(role="assistant", tool_calls=(ToolCall(call_id="c", name="look", arguments="{}"),)))
    first = chat_messages(made)
    first[0]["tool_calls"][0]["function"]["arguments"] = {}
    assert chat_messages(made)[0]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("choice", "told", "choice_of_vllm", "forced"),
    [
        ("auto", 1, "auto", False),
        ("none", 0, "none", False),
        ("required", 1, "required", True),
        (NamedTool(name="look"), 1, {"type": "function", "function": {"name": "look"}}, True),
    ],
)
def test_tools_and_their_choice(choice: Any, told: int, choice_of_vllm: Any, *, forced: bool) -> None:
    made = prompt(tools=(LOOK,), tool_choice=choice)
    definition = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}
    assert tool_definitions(made) == [definition] * told
    assert tool_choice(made.tool_choice) == choice_of_vllm
    assert forces_a_tool(made) is forced
    assert not forces_a_tool(prompt(tool_choice=choice))


class Tensor:
    """As much of a bfloat16 tensor as numpy needs: it becomes an array only once it is float32."""

    def __init__(self, values: Any, *, is_float: bool = False) -> None:
        self._values, self._is_float = np.asarray(values, np.float64), is_float

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def float(self) -> Tensor:
        return Tensor(self._values, is_float=True)

    def numpy(self) -> Any:
        assert self._is_float, "numpy has no bfloat16"
        return self._values.astype(np.float32)

    def __int__(self) -> int:
        return int(self._values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([0.5, -0.5], np.float32), [0.5, -0.5]),
        (np.array([[0.5, -0.5]], np.float64), [0.5, -0.5]),
        (np.array([[[0.25]], [[0.75]]], np.float16), [0.25, 0.75]),
        (Tensor([[0.5, 0.25]]), [0.5, 0.25]),
        ([Tensor([[0.5]]), Tensor([0.25, 0.125])], [0.5, 0.25, 0.125]),
        ((np.array([1.0]), np.empty((1, 0)), np.array([-1.0])), [1.0, -1.0]),
        ([np.array([1.0]), None], [1.0]),
        (np.empty((1, 0), np.float32), []),
        ([], []),
        (None, []),
    ],
)
def test_audio_of_any_shape_and_kind_is_taken_sample_for_sample(value: Any, expected: list[float]) -> None:
    made = samples_of(value)
    assert (made.dtype, made.ndim) == (np.float32, 1)
    assert made.tolist() == expected


@given(st.lists(st.lists(st.floats(-1, 1, width=32), max_size=9), max_size=5))
def test_chunks_lost_when_the_engine_merges_several(pieces: list[list[float]]) -> None:
    assert samples_of([np.array([piece], np.float32) for piece in pieces]).tolist() == [value for piece in pieces for value in piece]


@pytest.mark.parametrize(
    ("payload", "rate"),
    [
        ({"sr": np.array(22050, np.int32)}, 22050),
        ({"sr": Tensor(24000)}, 24000),
        ({"sr": [Tensor(16000), Tensor(16000)]}, 16000),
        ({"sr": 24000, "sample_rate": 48000}, 48000),
        ({"audio": None, "sr": None}, 24000),
        ({}, 24000),
    ],
)
def test_the_rate_is_what_the_output_tells(payload: dict[str, Any], rate: int) -> None:
    assert rate_of(payload) == rate


HIDDEN = ("<|empty|>", "<|eot|>")


@given(st.lists(st.sampled_from(["a", "b ", "<", "<|", "|>", *HIDDEN]), max_size=12), st.data())
def test_hidden_text_is_taken_out_however_it_is_cut(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    hiding, whole = HiddenText(HIDDEN), HiddenText(HIDDEN)
    streamed = "".join(hiding.read(piece) for piece in pieces) + hiding.end()
    assert not any(hidden in streamed for hidden in HIDDEN)
    assert streamed == whole.read(text) + whole.end()


def test_text_without_anything_hidden_is_not_held() -> None:
    assert [HiddenText(HIDDEN).read("a <b"), HiddenText(()).read("<|empty|>"), HiddenText(HIDDEN).read("a<|em")] == [
        "a <b",
        "<|empty|>",
        "a",
    ]


RENDERED = Rendered(engine_input={}, tokens=100, audio_spans=((10, 20), (60, 13)))


def completion(hidden: tuple[str, ...] = (), rendered: Rendered = RENDERED) -> Completion:
    return Completion(rendered, hidden, None)


def read(reader: Completion, text: str, tokens: int = 1, finish: str | None = None, cached: int | None = None) -> list[str]:
    return [delta.text for delta in reader.read(text, range(tokens), finish, cached)]


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_completion_ends_for_its_reason_and_with_its_usage(reason: str) -> None:
    reader = completion()
    assert read(reader, "Hel") == ["Hel"]
    assert read(reader, "", 2) == []
    assert read(reader, "lo", 1, reason) == ["lo"]
    last = reader.end()
    assert last.finish_reason == reason
    assert last.usage == Usage(input_text_tokens=67, input_audio_tokens=33, output_text_tokens=4)


@pytest.mark.parametrize(("cached", "text", "audio"), [(0, 0, 0), (10, 10, 0), (16, 10, 6), (64, 40, 24), (100, 67, 33), (None, 0, 0)])
def test_cached_tokens_are_split_by_where_the_audio_lies(cached: int | None, text: int, audio: int) -> None:
    reader = completion()
    read(reader, "a", cached=cached)
    read(reader, "b", 1, "stop", cached=None)
    usage = reader.end().usage
    assert usage is not None
    assert (usage.cached_text_tokens, usage.cached_audio_tokens) == (text, audio)


def test_what_an_abort_ends_with_is_dropped() -> None:
    reader = completion()
    read(reader, "Hello", 5)
    assert read(reader, "Hello", 5, "abort") == []
    last = reader.end()
    assert last.finish_reason == "abort"
    assert last.usage is not None
    assert last.usage.output_text_tokens == 5


def test_a_completion_that_fails_or_never_ends_is_an_error() -> None:
    with pytest.raises(GenerationFailedError):
        read(completion(), "", 0, "error")
    reader = completion()
    read(reader, "Hello")
    with pytest.raises(EngineError, match="without a reason"):
        reader.end()


def test_what_was_held_as_hidden_comes_out_at_the_end() -> None:
    reader = completion(hidden=HIDDEN)
    assert read(reader, "a<|empty|><|em") == ["a"]
    assert read(reader, "b<", 1, "stop") == ["<|emb<"]


@pytest.mark.parametrize(
    ("parameter", "too_long"), [("input_tokens", True), ("input_text", True), ("audio", True), ("messages", False), (None, False)]
)
def test_a_refusal_for_its_size_is_known(parameter: str | None, *, too_long: bool) -> None:
    error = ValueError("quotes the prompt")
    error.parameter = parameter  # type: ignore[attr-defined]
    assert faults.is_too_long(error) is too_long
    assert faults.context_length_exceeded(9).code == "context_length_exceeded"


def omni(*configs: Any, types: tuple[str | None, ...]) -> Any:
    metadata = [SimpleNamespace(final_output_type=kind) for kind in types]
    return SimpleNamespace(stage_configs=configs, engine=SimpleNamespace(get_stage_metadata=metadata.__getitem__))


def test_stages_are_found_wherever_their_configuration_keeps_them() -> None:
    made = stages_of(
        omni(
            SimpleNamespace(engine_args=SimpleNamespace(model_stage="llm", model_arch="A")),
            {"model_stage": "tts", "engine_args": {"model_arch": "B"}},
            SimpleNamespace(model_stage="code2wav"),
            types=("text", None, "audio"),
        )
    )
    assert made == (
        StageInfo(stage_id=0, model_stage="llm", model_arch="A", final_output_type="text"),
        StageInfo(stage_id=1, model_stage="tts", model_arch="B", final_output_type=None),
        StageInfo(stage_id=2, model_stage="code2wav", model_arch=None, final_output_type="audio"),
    )


def deployment(**engine: Any) -> Deployment:
    return Deployment(name="served", plugin="any", settings={"engine": engine})


@pytest.mark.parametrize(
    ("engine", "where", "words"),
    [
        ({}, "type", "There is no engine None: name one of vllm_omni, vllm, chat_completions."),
        ({"type": "vlm"}, "type", "There is no engine 'vlm'"),
        ({"type": "vllm_omni"}, "model", "This setting is missing: add it."),
        ({"type": "vllm"}, "model", "This setting is missing: add it."),
        ({"type": "vllm", "model": "m", "deploy_config": "x"}, "deploy_config", "There is no such setting"),
        ({"type": "vllm_omni", "model": "m", "stage_overrides": {"0": 5}}, "stage_overrides.0", "dictionary"),
        ({"type": "vllm_omni", "model": "m", "engine_args": []}, "engine_args", "dictionary"),
    ],
)
def test_what_is_wrong_with_the_settings_is_said_before_anything_loads(engine: dict[str, Any], where: str, words: str) -> None:
    (problem,) = engine_problems(deployment(**engine))
    assert problem.where == f"settings.engine.{where}"
    assert words in problem.message


def test_all_faults_are_told_at_once() -> None:
    assert len(engine_problems(deployment(type="vllm_omni", tool_parser=1, no_such=2))) == 3


def test_settings_without_an_engine_make_none_and_are_a_problem() -> None:
    bare = Deployment(name="served", plugin="any")
    hook: Any = None
    assert create_engine(bare, hook) is None
    assert engine_problems(bare) == [
        Problem(where="settings.engine", message="Describe the engine: at least its type, one of vllm_omni, vllm, chat_completions.")
    ]
    with pytest.raises(UnknownEngineError):
        create_engine(deployment(type="tvm"), hook)


@pytest.mark.parametrize("kind", ["vllm", "vllm_omni"])
def test_an_engine_is_made_without_loading_vllm(kind: str) -> None:
    hook: Any = None
    engine = create_engine(deployment(type=kind, model="m", engine_args={"seed": 1}, tool_parser="hermes"), hook)
    assert engine is not None
    assert engine.context_window == 0


def test_an_engine_that_never_started_can_be_closed(run: Callable[..., None]) -> None:
    hook: Any = None
    engine = create_engine(deployment(type="vllm", model="m"), hook)
    assert engine is not None
    run(engine.close)
