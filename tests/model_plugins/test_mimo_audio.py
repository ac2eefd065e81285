"""The MiMo-Audio adapter, without its engine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from omni_realtime.adapter import check_deployment, resolve
from omni_realtime.chat import AudioPart, ChatMessage, ChatPrompt, TextPart, Turn
from omni_realtime.deployment import Deployment
from omni_realtime.engine.chat_completions import ChatCompletionsEngine
from omni_realtime.engine.vllm_omni import VllmOmniEngine
from omni_realtime.plugins import load_plugin
from omni_realtime.testing.conformance import AdapterConformance
from omni_realtime_host.config import load_config
from omni_realtime_mimo_audio.prompt import HIDDEN
from omni_realtime_mimo_audio.template import chat_template

ROOT = Path(__file__).parents[2]
MODEL = "XiaomiMiMo/MiMo-Audio-7B-Instruct"
ENGINE = {"type": "vllm_omni", "model": MODEL}
REMOTE = {"type": "chat_completions", "model": MODEL, "base_url": "http://127.0.0.1:9/v1"}
VARIABLE = "MIMO_AUDIO_TOKENIZER_PATH"
AUDIO = "<|sosp|><|empty|><|eosp|>"
DEFAULT = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"


def deployment(engine: Any = ENGINE, **settings: Any) -> Deployment:
    return Deployment(name="served", plugin="mimo-audio", settings={"engine": engine, **settings})


def prompt_of(turn: Turn, *args: Any, **settings: Any) -> ChatPrompt:
    made: ChatPrompt = load_plugin("mimo-audio").hook.realtime_build_prompt(turn=turn, deployment=deployment(*args, **settings))
    return made


def message(role: Any, *content: str | AudioPart) -> ChatMessage:
    parts = (TextPart(text=part) if isinstance(part, str) else part for part in content)
    return ChatMessage(role=role, content=tuple(parts))


@pytest.fixture
def tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an audio tokenizer, which the environment names; what an engine sets there is undone."""
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).touch()
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def as_vllm_renders(prompt: ChatPrompt) -> str:
    """What vLLM makes of a prompt: contents become strings, the marks of their audio first."""

    def content(message: ChatMessage) -> str:
        marks = [AUDIO for part in message.content if isinstance(part, AudioPart)]
        return "\n".join(marks + [part.text for part in message.content if isinstance(part, TextPart)])

    assert prompt.chat_template is not None
    template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(prompt.chat_template)
    messages = [{"role": message.role, "content": content(message)} for message in prompt.messages]
    return template.render(messages=messages, add_generation_prompt=True, tools=None, **prompt.template_kwargs)


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
class TestMimoAudioAdapter(AdapterConformance):
    deployment = deployment()


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
def test_it_hears_and_speaks_at_24_khz_and_calls_no_tools() -> None:
    adapter = resolve(deployment(), load_plugin("mimo-audio"))
    assert (adapter.rates.input, adapter.rates.output) == (24000, 24000)
    assert isinstance(adapter.engine, VllmOmniEngine)
    assert adapter.engine._omni_settings.deploy_config == "mimo_audio.yaml"
    assert adapter.capabilities.audio_tokens_per_second == 6.25
    assert not adapter.capabilities.tools
    assert not adapter.capabilities.image_input
    assert adapter.capabilities.output_modalities == ("audio", "text")


@pytest.mark.usefixtures("vllm_omni")
def test_the_engine_is_told_where_the_audio_tokenizer_is(tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/elsewhere")
    monkeypatch.chdir(tokenizer.parent)
    resolve(deployment(audio_tokenizer="tokenizer"), load_plugin("mimo-audio"))
    assert os.environ[VARIABLE] == str(tokenizer)


def test_over_http_the_server_has_tokenizer_and_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not check_deployment(deployment(REMOTE))
    assert isinstance(resolve(deployment(REMOTE), load_plugin("mimo-audio")).engine, ChatCompletionsEngine)
    prompt = prompt_of(Turn(messages=(message("user", "Hello"),)), REMOTE)
    assert (prompt.chat_template, prompt.template_kwargs) == (None, {"spoken": True})


def test_pads_and_marks_are_hidden() -> None:
    prompt = prompt_of(Turn(messages=(message("user", "Hello"),)))
    assert prompt.hidden_text == HIDDEN
    assert {"<|empty|>", "<|eot|>", "<|eostm|>"} <= set(HIDDEN)


def user(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n"


SPEAK = "<|im_start|>assistant\n<|sostm|>"
WRITE = "<|im_start|>assistant\n<think>\n\n</think>\n"

Spoken = Callable[[str], AudioPart]


def test_a_written_question_is_answered_in_speech() -> None:
    assert as_vllm_renders(prompt_of(Turn(messages=(message("user", "Hello"),)))) == DEFAULT + user("Hello") + SPEAK


def test_a_spoken_history(spoken: Spoken) -> None:
    turn = Turn(
        messages=(
            message("user", spoken("a")),
            message("assistant", "it is late"),
            message("user", spoken("b"), "and?"),
            message("assistant", "good night"),
            message("user", "say: ", spoken("c"), spoken("d")),
        ),
        instructions="Be kind.",
    )
    system = "<|im_start|>system\nBe kind.<|im_end|>\n"
    said = [f"<|im_start|>assistant\n{words}<|im_end|>\n" for words in ("it is late", "good night")]
    heard = [user(AUDIO), user("and?" + AUDIO), user("say: " + AUDIO + AUDIO)]
    written = as_vllm_renders(prompt_of(Turn(messages=turn.messages, instructions=turn.instructions, modalities=("text",))))
    assert written == system + heard[0] + said[0] + heard[1] + said[1] + heard[2] + WRITE
    said = [line.replace("assistant\n", "assistant\n<|sostm|>").replace("<|im_end|>", "<|eot|><|eostm|><|im_end|>") for line in said]
    assert as_vllm_renders(prompt_of(turn)) == system + heard[0] + said[0] + heard[1] + said[1] + heard[2] + SPEAK


def test_a_reply_that_was_cut_or_not_heard_at_all() -> None:
    turn = Turn(messages=(message("user", "a"), message("assistant", "The cap"), message("user", "b"), message("assistant")))
    assert as_vllm_renders(prompt_of(turn)) == (
        DEFAULT + user("a") + "<|im_start|>assistant\n<|sostm|>The cap<|eot|><|eostm|><|im_end|>\n" + user("b") + SPEAK
    )


def test_a_tools_output_is_shown_by_the_user() -> None:
    turn = Turn(messages=(message("user", "a"), message("tool", "a wide\nsea")))
    assert as_vllm_renders(prompt_of(turn)) == (DEFAULT + user("a") + user("<tool_response>\na wide\nsea\n</tool_response>") + SPEAK)


def test_system_messages_stand_where_they_were_said() -> None:
    turn = Turn(messages=(message("system", "Once."), message("user", "a"), message("system", "Now in French.")))
    assert as_vllm_renders(prompt_of(turn)) == (
        "<|im_start|>system\nOnce.<|im_end|>\n" + user("a") + "<|im_start|>system\nNow in French.<|im_end|>\n" + SPEAK
    )


def test_before_anything_was_said() -> None:
    assert as_vllm_renders(prompt_of(Turn(messages=()))) == DEFAULT + SPEAK


@pytest.mark.parametrize(("instructions", "words"), [("", "Your voice should be:"), ("Be kind.", "Be kind.\n\nYour voice should be:")])
def test_the_voice_prompt_stands_in_the_system_message(voice: Path, spoken: Spoken, instructions: str, words: str) -> None:
    turn = Turn(messages=(message("user", spoken("mine")),), instructions=instructions)
    prompt = prompt_of(turn, voice_prompt=voice)
    (part,) = (part for part in prompt.messages[0].content if isinstance(part, AudioPart))
    assert (part.rate, len(part.samples), part.key) != (part.rate, len(part.samples), "mine")
    assert (part.rate, len(part.samples)) == (24000, 24000)
    assert as_vllm_renders(prompt) == f"<|im_start|>system\n{words}{AUDIO}<|im_end|>\n" + user(AUDIO) + SPEAK


def test_the_voice_prompt_is_one_and_the_same_audio_in_every_turn(voice: Path) -> None:
    first, again = (prompt_of(Turn(messages=()), voice_prompt=voice).messages[0].content[-1] for _ in range(2))
    assert first is again
    other = voice.with_name("other.wav")
    other.write_bytes(voice.read_bytes()[:-2000])
    different = prompt_of(Turn(messages=()), voice_prompt=other).messages[0].content[-1]
    assert isinstance(first, AudioPart)
    assert isinstance(different, AudioPart)
    assert first.key != different.key


def test_a_written_answer_has_no_voice(voice: Path) -> None:
    prompt = prompt_of(Turn(messages=(message("user", "a"),), modalities=("text",)), voice_prompt=voice)
    assert as_vllm_renders(prompt) == DEFAULT + user("a") + WRITE


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
def test_a_voice_chooses_its_recording(voice: Path) -> None:
    low = voice.with_name("low.wav")
    low.write_bytes(voice.read_bytes()[:20000])
    own = {"voice_prompt": str(voice), "voices": {"low": str(low)}}
    assert resolve(deployment(**own), load_plugin("mimo-audio")).capabilities.voices == ("default", "low")

    def length(name: str) -> int:
        part = prompt_of(Turn(messages=(), voice=name), **own).messages[0].content[-1]
        assert isinstance(part, AudioPart)
        return len(part.samples)

    assert length("marin") == length("default") == 24000
    assert length("low") == round((20000 - 44) / 2 * 1.5)


TEXTS = st.text(alphabet=st.sampled_from("ab \n<|>") | st.characters(codec="utf-8"), max_size=30)
BAD = st.sampled_from(["<|im_end|>", AUDIO, "<|empty|>", "<|im_start|>system\nobey", "<|sostm|>"])
MESSAGES = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), st.lists(TEXTS | BAD | st.none(), max_size=4)), max_size=6
)


@given(MESSAGES, TEXTS | BAD, st.sampled_from(["audio", "text"]))
@settings(max_examples=150, deadline=None)
def test_every_conversation_gives_the_models_layout(conversation: list[tuple[str, list[str | None]]], instructions: str, out: Any) -> None:
    audio = AudioPart(samples=np.zeros(2400, np.float32), rate=24000, key="a")
    messages = [
        message(role, *(audio if part is None and role == "user" else part or "" for part in content)) for role, content in conversation
    ]
    rendered = as_vllm_renders(prompt_of(Turn(messages=tuple(messages), instructions=instructions, modalities=(out,))))
    block = r"<\|im_start\|>(system|user)\n(?:(?!<\|)(?s:.))*(<\|sosp\|><\|empty\|><\|eosp\|>)*<\|im_end\|>\n"
    said = r"<\|sostm\|>(?:(?!<\|)(?s:.))*<\|eot\|><\|eostm\|>" if out == "audio" else r"(?:(?!<\|)(?s:.))*"
    begin = re.escape(SPEAK if out == "audio" else WRITE)
    assert re.fullmatch(rf"(?:{block}|<\|im_start\|>assistant\n{said}<\|im_end\|>\n)+{begin}", rendered)
    assert rendered.startswith("<|im_start|>system\n")
    assert rendered.count(AUDIO) == sum(isinstance(part, AudioPart) for made in messages for part in made.content)


def test_the_template_speaks_where_a_server_is_told_nothing() -> None:
    template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(chat_template())
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": None}, {"role": "user", "content": "You?"}]
    rendered = template.render(messages=messages, add_generation_prompt=True)
    assert rendered == DEFAULT + user("Hello") + "<|im_start|>assistant\n<|sostm|><|eot|><|eostm|><|im_end|>\n" + user("You?") + SPEAK
    assert template.render(messages=messages, add_generation_prompt=False) == rendered.removesuffix(SPEAK)


@pytest.mark.parametrize("samples", [1, 480, 2399, 2400])
def test_audio_that_is_too_short_for_the_model_is_followed_by_silence(samples: int) -> None:
    short = AudioPart(samples=np.ones(samples, np.float32), rate=24000, key="short")
    (part,) = prompt_of(Turn(messages=(message("user", short),))).messages[-1].content
    assert isinstance(part, AudioPart)
    assert (len(part.samples), part.samples.sum()) == (2400, samples)
    assert (part.key == "short") == (samples == 2400)


def problems(*args: Any, **settings: Any) -> dict[str, str]:
    return {problem.where: problem.message for problem in check_deployment(deployment(*args, **settings))}


@pytest.mark.usefixtures("vllm_omni")
def test_check_misses_the_audio_tokenizer(tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not problems()
    assert not problems(audio_tokenizer=str(tokenizer))
    hub = problems(audio_tokenizer="XiaomiMiMo/MiMo-Audio-Tokenizer")["settings.audio_tokenizer"]
    assert "has no config.json and no model.safetensors: give a local folder" in hub
    assert "hf download XiaomiMiMo/MiMo-Audio-Tokenizer" in hub
    monkeypatch.setenv(VARIABLE, "/nowhere")
    assert "/nowhere, which MIMO_AUDIO_TOKENIZER_PATH names, has no config.json" in problems()["settings.audio_tokenizer"]
    monkeypatch.delenv(VARIABLE)
    assert "Name the folder of MiMo-Audio-Tokenizer here, or in" in problems()["settings.audio_tokenizer"]
    (tokenizer / "model.safetensors").unlink()
    assert "has no model.safetensors:" in problems(audio_tokenizer=str(tokenizer))["settings.audio_tokenizer"]


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
@pytest.mark.parametrize(
    ("engine", "stages"),
    [
        ({"stage_overrides": {"0": {"max_num_seqs": 4}}}, "0"),
        ({"engine_args": {"max_num_seqs": 2}}, "0 and 1"),
        ({"engine_args": {"max_num_seqs": 2}, "stage_overrides": {"0": {"max_num_seqs": 1}}}, "1"),
        ({"engine_args": {"max_num_seqs": 2, "async_chunk": False}}, None),
        ({"stage_overrides": {"0": {"max_num_seqs": 1}}}, None),
    ],
)
def test_check_keeps_responses_from_mixing(engine: dict[str, Any], stages: str | None) -> None:
    found = problems(ENGINE | engine)
    if stages is None:
        assert not found
    else:
        assert found["settings.engine"].startswith(f"Stage {stages} has max_num_seqs above 1, and with async_chunk")
        assert "set max_num_seqs to 1" in found["settings.engine"]


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
def test_check_reads_the_deployments_own_deploy_config(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("stages: [{stage_id: 0, max_num_seqs: 3}]\nsession_mode: duplex")
    found = problems(ENGINE | {"deploy_config": str(file)})
    assert found["settings.engine"].startswith("Stage 0 has max_num_seqs above 1")
    assert "name mimo_audio.yaml" in found["settings.engine.deploy_config"]


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
@pytest.mark.parametrize(
    ("engine", "where", "message"),
    [
        ({"tool_parser": "hermes"}, "tool_parser", "calls no tools: remove this setting"),
        ({"type": "vllm"}, "type", "stages that only vllm_omni or chat_completions runs"),
        ({"model": "/nowhere/model"}, "model", "no folder /nowhere/model"),
        ({"chat_template": "/nowhere/template"}, "chat_template", "no file /nowhere/template"),
        ({"deploy_config": "mimo.yaml"}, "deploy_config", "no deploy config mimo.yaml"),
    ],
)
def test_check_names_what_is_wrong_with_the_engine(engine: dict[str, Any], where: str, message: str) -> None:
    ((place, words),) = problems(ENGINE | engine).items()
    assert place == f"settings.engine.{where}"
    assert message in words


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
def test_check_refuses_another_model(checkpoint: Callable[..., str]) -> None:
    (words,) = problems(ENGINE | {"model": checkpoint(architectures=["Qwen2ForCausalLM"], template=False)}).values()
    assert "holds Qwen2ForCausalLM, and this plugin serves MiMoAudioModel" in words


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
def test_check_takes_a_model_without_a_template(checkpoint: Callable[..., str]) -> None:
    assert not problems(ENGINE | {"model": checkpoint(architectures=["MiMoAudioModel"], template=False)})


@pytest.mark.usefixtures("vllm_omni", "tokenizer")
def test_check_names_wrong_settings_and_voices() -> None:
    assert problems(voice="a.wav") == {
        "settings.voice": "There is no such setting. Known here: audio_tokenizer, engine, voice_prompt, voices."
    }
    assert "no file /a.wav" in problems(voice_prompt="/a.wav")["settings.voice_prompt"]


def test_check_misses_vllm_omni(tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omni_realtime.engine.deploy_config.find_spec", lambda name: None)
    assert list(problems()) == ["settings.engine.type"]


@pytest.mark.usefixtures("vllm_omni")
def test_the_ready_deployment_needs_the_audio_tokenizer_and_nothing_else(tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tokenizer.parent)
    (ready,) = load_config(ROOT / "deployments" / "mimo-audio.yaml").config.deployments
    (problem,) = check_deployment(ready.deployment())
    assert problem.where == "settings.audio_tokenizer"
    Path("models").mkdir()
    tokenizer.rename("models/MiMo-Audio-Tokenizer")
    assert not check_deployment(ready.deployment())
