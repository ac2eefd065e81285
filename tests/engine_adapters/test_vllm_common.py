"""What the engines in process share and what needs no engine to be shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, ImagePart, NamedTool, TextPart, Tool, ToolCall, Usage
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import UnknownEngineError, create_engine, engine_problems
from omni_realtime.engine.chat_shape import tool_choice
from omni_realtime.engine.hidden_text import HiddenText
from omni_realtime.engine.port import EngineError, StageInfo
from omni_realtime.engine.safe_messages import safe_message
from omni_realtime.engine.vllm_common import faults
from omni_realtime.engine.vllm_common.audio import rate_of, samples_of
from omni_realtime.engine.vllm_common.completion import Completion, GenerationFailedError
from omni_realtime.engine.vllm_common.images import processor_images
from omni_realtime.engine.vllm_common.messages import audio_parts, chat_messages, forces_a_tool, image_parts, tool_definitions
from omni_realtime.engine.vllm_common.rendering import Rendered
from omni_realtime.engine.vllm_omni.stages import stages_of
from pictures import png

LOOK = Tool(name="look", description="Looks.", parameters={"type": "object"})
AUDIO = AudioPart(samples=np.zeros(160, np.float32), rate=16000, key="turn-1")
IMAGE = ImagePart(data=png(), media_type="image/png", key="turn-2")


def prompt(*messages: ChatMessage, **more: Any) -> ChatPrompt:
    return ChatPrompt(messages=messages, **more)


def test_messages_are_in_vllms_shape_with_audio_and_images_by_their_keys() -> None:
    made = prompt(
        ChatMessage(role="system", content=(TextPart(text="Be brief."),)),
        ChatMessage(role="user", content=(AUDIO, TextPart(text="this?"), IMAGE)),
        ChatMessage(role="assistant", tool_calls=(ToolCall(call_id="c", name="look", arguments='{"a": 1}'),)),
        ChatMessage(role="tool", content=(TextPart(text="sea"),), tool_call_id="c"),
    )
    assert chat_messages(made) == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_audio", "input_audio": None, "uuid": "turn-1"},
                {"type": "text", "text": "this?"},
                {"type": "image_pil", "image_pil": None, "uuid": "turn-2"},
            ],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "sea", "tool_call_id": "c"},
    ]
    assert (audio_parts(made), image_parts(made)) == ([AUDIO], [IMAGE])


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


RENDERED = Rendered(engine_input={}, tokens=100, audio_spans=((10, 20), (60, 13)), image_spans=((80, 16),))


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
    assert last.usage == Usage(input_text_tokens=51, input_audio_tokens=33, input_image_tokens=16, output_text_tokens=4)


@pytest.mark.parametrize(
    ("cached", "text", "audio", "image"),
    [(0, 0, 0, 0), (10, 10, 0, 0), (16, 10, 6, 0), (64, 40, 24, 0), (84, 47, 33, 4), (100, 51, 33, 16), (None, 0, 0, 0)],
)
def test_cached_tokens_are_split_by_where_audio_and_images_lie(cached: int | None, text: int, audio: int, image: int) -> None:
    reader = completion()
    read(reader, "a", cached=cached)
    read(reader, "b", 1, "stop", cached=None)
    usage = reader.end().usage
    assert usage is not None
    assert (usage.cached_text_tokens, usage.cached_audio_tokens, usage.cached_image_tokens) == (text, audio, image)


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
    ("parameter", "too_long"),
    [("input_tokens", True), ("input_text", True), ("audio", True), ("image", True), ("messages", False), (None, False)],
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


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stands in for Pillow and for vLLM's wrapper; the images that were opened, in order."""
    opened: list[Any] = []

    class Picture:
        def __init__(self, file: Any, formats: tuple[str, ...]) -> None:
            assert formats == ("PNG", "JPEG")
            self.file, self.loads = file.read(), 0
            self.width, self.height = self.size = (2, 600) if self.file == b"tiny" else (800, 600)
            opened.append(self)

        def load(self) -> None:
            self.loads += 1
            if self.file == b"broken":
                raise OSError("image file is truncated")

        def thumbnail(self, size: tuple[int, int]) -> None:
            self.load()
            self.width, self.height = self.size = size

        def resize(self, size: tuple[int, int]) -> Any:
            self.thumbnail(size)
            return self

    pil = ModuleType("PIL")
    pil.Image = SimpleNamespace(open=Picture)  # type: ignore[attr-defined]
    media = ModuleType("vllm.multimodal.media")
    media.MediaWithBytes = lambda image, data: SimpleNamespace(media=image, original_bytes=data)  # type: ignore[attr-defined]
    for name, module in {
        "PIL": pil,
        "vllm": ModuleType("vllm"),
        "vllm.multimodal": ModuleType("vllm.multimodal"),
        media.__name__: media,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    return opened


def picture(data: bytes = b"file", detail: Any = "auto") -> ImagePart:
    return ImagePart(data=data, media_type="image/png", key="k", detail=detail)


def test_an_image_is_decoded_when_it_is_first_seen_and_only_opened_from_then_on(library: list[Any]) -> None:
    part = picture()
    (first,), (again,) = processor_images([part]), processor_images([part])
    assert [image.loads for image in library] == [1, 0]
    assert (first.media, again.media) == tuple(library)
    assert first.original_bytes is part.data
    processor_images([picture()])
    assert [image.loads for image in library] == [1, 0, 1], "another part is another image"


def test_low_detail_makes_do_with_a_small_image_which_is_made_once(library: list[Any]) -> None:
    part = picture(detail="low")
    (first,), (again,) = processor_images([part]), processor_images([part])
    assert first.media is again.media
    assert [image.size for image in library] == [(512, 512)]
    processor_images([picture(detail="high")])
    assert library[-1].size == (800, 600)


def test_a_tiny_image_is_enlarged_once(library: list[Any]) -> None:
    part = picture(b"tiny")
    (first,), (again,) = processor_images([part]), processor_images([part])
    assert first.media is again.media
    assert [image.size for image in library] == [(8, 2400)]


@pytest.mark.parametrize("detail", ["auto", "low", "high"])
def test_an_image_that_cannot_be_decoded_is_told_each_time(library: list[Any], detail: Any) -> None:
    part = picture(b"broken", detail)
    for _ in range(2):
        with pytest.raises(EngineError, match="cannot be decoded: delete its item") as caught:
            processor_images([part])
        assert caught.value.code == "invalid_image"
    assert len(library) == 2


def test_images_pass_between_safe_messages_as_they_are() -> None:
    image = picture()
    made = safe_message(ChatMessage(role="user", content=(TextPart(text="<|x"), image)), ("<|",))
    assert made.content == (TextPart(text="< |x"), image)
