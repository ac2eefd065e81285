"""Every hook: its default, a plugin's answer, the answers that are refused; and that each is tested, documented and used."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pluggy
import pytest

from omni_realtime import defaults, hookspecs
from omni_realtime.adapter import Adapter, PluginContractError, PluginHookError, check_deployment, resolve
from omni_realtime.chat import AudioPart, ChatMessage, NamedTool, TextPart, Tool, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.port import StageInfo
from omni_realtime.hookspecs import ResampleRates
from omni_realtime.plugins import HOOK_NAMES, PluginError, load_plugin
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.testing import ScriptedDetector, ScriptedEngine, ScriptedTranscriber, ScriptedTurnScorer

ROOT = Path(__file__).parents[2]
DEPLOYMENT = Deployment(name="served", plugin="good")
HELLO = ChatMessage(role="user", content=(TextPart(text="Hello"),))

Install = Callable[..., None]


def adapt(install_good: Install, source: str = "") -> Adapter:
    install_good("good", source)
    return resolve(DEPLOYMENT, load_plugin("good"))


def refused(install_good: Install, hook: str, source: str, *words: str) -> None:
    with pytest.raises(PluginContractError) as caught:
        adapt(install_good, source)
    for word in (f"Plugin 'good' of omni-realtime-good 1.2: {hook} returned", *words):
        assert word in str(caught.value)


def test_hook_realtime_check_deployment(install_good: Install) -> None:
    install_good("plain")
    install_good(
        "careful",
        """
        from omni_realtime.deployment import Problem

        @hookimpl
        def realtime_check_deployment(deployment):
            return [Problem(where="settings.path", message=f"{deployment.name} has no path")]
        """,
    )
    assert check_deployment(Deployment(name="served", plugin="plain")) == []
    problem = Problem(where="settings.path", message="served has no path")
    assert check_deployment(Deployment(name="served", plugin="careful")) == [problem]


@pytest.mark.parametrize(
    ("answer", "word"), [("'no'", "returned str; it must return list"), ("['no']", "returned str; it must return Problem")]
)
def test_a_check_that_answers_no_problems_is_itself_one(install_good: Install, answer: str, word: str) -> None:
    install_good("good", f"@hookimpl\ndef realtime_check_deployment():\n    return {answer}\n")
    (problem,) = check_deployment(DEPLOYMENT)
    assert problem.where == "plugin"
    assert word in problem.message


def test_hook_realtime_capabilities(install_good: Install) -> None:
    install_good("plain")
    assert resolve(DEPLOYMENT, load_plugin("plain")).capabilities == Capabilities()
    source = """
    from omni_realtime.protocol.capabilities import Capabilities

    @hookimpl
    def realtime_capabilities(deployment):
        return Capabilities(voices=(deployment.name,))
    """
    assert adapt(install_good, source).capabilities.voices == ("served",)


def test_capabilities_of_another_type_are_refused(install_good: Install) -> None:
    refused(
        install_good, "realtime_capabilities", "@hookimpl\ndef realtime_capabilities():\n    return {}\n", "dict", "return Capabilities"
    )


def test_hook_realtime_resample_rates(install_good: Install) -> None:
    install_good("plain")
    assert resolve(DEPLOYMENT, load_plugin("plain")).rates == ResampleRates(input=16000, output=24000)
    source = """
    from omni_realtime.hookspecs import ResampleRates

    @hookimpl
    def realtime_resample_rates():
        return ResampleRates(input=24000, output=44100)
    """
    assert adapt(install_good, source).rates == ResampleRates(input=24000, output=44100)


@pytest.mark.parametrize("rates", ["16000, 0", "-1, 24000", "16000.0, 24000"])
def test_rates_that_are_no_rates_are_refused(install_good: Install, rates: str) -> None:
    imports = "from omni_realtime.hookspecs import ResampleRates\n"
    source = f"{imports}\n@hookimpl\ndef realtime_resample_rates():\n    return ResampleRates({rates})\n"
    refused(install_good, "realtime_resample_rates", source, "a positive whole number")


def test_hook_realtime_engine(install_good: Install) -> None:
    adapter = adapt(install_good)
    assert isinstance(adapter.engine, ScriptedEngine)
    assert not adapter.engine.started
    assert (adapter.detector, adapter.transcriber) == (None, None)


def test_a_plugin_without_an_engine_is_refused(install: Install) -> None:
    source = (
        "from omni_realtime.hookspecs import hookimpl\nOMNI_REALTIME_API = 1\n\n@hookimpl\ndef realtime_capabilities():\n    return None\n"
    )
    install("odd-dist", {"odd": "odd_module"}, {"odd_module": source})
    with pytest.raises(PluginContractError, match=r"'odd' of odd-dist 1\.2: realtime_engine returned nothing; .* methods of Engine"):
        resolve(DEPLOYMENT, load_plugin("odd"))


def test_the_default_engine_is_what_the_settings_name(install: Install) -> None:
    source = (
        "from omni_realtime.hookspecs import hookimpl\nOMNI_REALTIME_API = 1\n\n@hookimpl\ndef realtime_capabilities():\n    return None\n"
    )
    install("odd-dist", {"odd": "odd_module"}, {"odd_module": source})
    settings = {"engine": {"type": "vllm_omni", "model": "some/model"}}
    adapter = resolve(Deployment(name="served", plugin="odd", settings=settings), load_plugin("odd"))
    assert type(adapter.engine).__name__ == "VllmOmniEngine"


def test_an_engine_is_given_the_hooks_of_its_plugin(install: Install) -> None:
    source = """
    from omni_realtime.hookspecs import hookimpl
    from omni_realtime.testing import ScriptedEngine

    OMNI_REALTIME_API = 1

    @hookimpl
    def realtime_engine(hook):
        engine = ScriptedEngine()
        engine.hook = hook
        return engine
    """
    install("odd-dist", {"odd": "odd_module"}, {"odd_module": source})
    plugin = load_plugin("odd")
    assert resolve(Deployment(name="served", plugin="odd"), plugin).engine.hook is plugin.hook


STAGES = (StageInfo(stage_id=0, model_stage="llm", model_arch="A", final_output_type="text"),)


def test_hook_realtime_fix_sampling_params(install_good: Install) -> None:
    install_good("plain")
    params = [{"max_tokens": 1}]
    assert load_plugin("plain").hook.realtime_fix_sampling_params(stages=STAGES, params=params, modalities=("audio",)) is params
    source = """
    @hookimpl
    def realtime_fix_sampling_params(stages, params):
        return [{**given, "stage": stage.model_stage} for stage, given in zip(stages, params)]
    """
    install_good("good", source)
    fixed = load_plugin("good").hook.realtime_fix_sampling_params(stages=STAGES, params=params, modalities=("audio",))
    assert fixed == [{"max_tokens": 1, "stage": "llm"}]


def test_sampling_params_may_be_fixed_in_place(install_good: Install) -> None:
    install_good("good", "@hookimpl\ndef realtime_fix_sampling_params(params):\n    params[0]['max_tokens'] = 2\n")
    fixed = load_plugin("good").hook.realtime_fix_sampling_params(stages=STAGES, params=[{"max_tokens": 1}], modalities=("text",))
    assert fixed == [{"max_tokens": 2}]


def test_an_engine_that_lacks_methods_is_refused(install: Install) -> None:
    source = """
    from omni_realtime.hookspecs import hookimpl

    OMNI_REALTIME_API = 1

    class Half:
        def start(self): ...
        def close(self): ...
        def check_health(self): ...
        def count_tokens(self): ...

    @hookimpl
    def realtime_engine():
        return Half()
    """
    install("odd-dist", {"odd": "odd_module"}, {"odd_module": source})
    with pytest.raises(PluginContractError, match=r"returned Half without generate, abort; it must return all methods of Engine"):
        resolve(DEPLOYMENT, load_plugin("odd"))


WITH_VAD = """
from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.testing import ScriptedDetector, ScriptedTranscriber, ScriptedTurnScorer

@hookimpl
def realtime_capabilities():
    return Capabilities(audio_input=True, turn_detection=("server_vad",))
"""


def test_hook_realtime_detector(install_good: Install) -> None:
    adapter = adapt(
        install_good, WITH_VAD + "\n@hookimpl\ndef realtime_detector():\n    return ScriptedDetector(rate=8000, frame_samples=256)\n"
    )
    assert isinstance(adapter.detector, ScriptedDetector)
    assert (adapter.detector.rate, adapter.detector.frame_samples) == (8000, 256)


def test_a_detector_that_is_claimed_must_come(install_good: Install) -> None:
    refused(install_good, "realtime_detector", WITH_VAD, "nothing", "methods of Detector: the capabilities list server_vad or semantic_vad")


def test_a_detector_without_a_rate_is_refused(install_good: Install) -> None:
    source = WITH_VAD + "\n@hookimpl\ndef realtime_detector():\n    return ScriptedDetector(rate=0)\n"
    refused(install_good, "realtime_detector", source, "rate 0", "a positive whole number")


def test_a_detector_that_is_not_claimed_is_not_made(install_good: Install) -> None:
    assert adapt(install_good, "@hookimpl\ndef realtime_detector():\n    raise AssertionError\n").detector is None


WITH_SEMANTIC_VAD = (
    WITH_VAD.replace('"server_vad"', '"server_vad", "semantic_vad"')
    + "\n@hookimpl\ndef realtime_detector():\n    return ScriptedDetector()\n"
)


def scorer(made: str) -> str:
    return f"{WITH_SEMANTIC_VAD}\n@hookimpl\ndef realtime_turn_scorer():\n    return {made}\n"


def test_hook_realtime_turn_scorer(install_good: Install) -> None:
    adapter = adapt(install_good, scorer("ScriptedTurnScorer(rate=8000, window_samples=32000)"))
    assert isinstance(adapter.turn_scorer, ScriptedTurnScorer)
    assert (adapter.turn_scorer.rate, adapter.turn_scorer.window_samples) == (8000, 32000)
    assert not adapter.turn_scorer.started


def test_a_turn_scorer_that_is_claimed_must_come(install_good: Install) -> None:
    refused(install_good, "realtime_turn_scorer", WITH_SEMANTIC_VAD, "nothing", "methods of TurnScorer: the capabilities list semantic_vad")


def test_a_turn_scorer_without_a_window_is_refused(install_good: Install) -> None:
    source = scorer("ScriptedTurnScorer(window_samples=0)")
    refused(install_good, "realtime_turn_scorer", source, "window_samples 0", "a positive whole number")


def test_a_turn_scorer_that_is_not_claimed_is_not_made(install_good: Install) -> None:
    source = WITH_VAD + "\n@hookimpl\ndef realtime_detector():\n    return ScriptedDetector()\n"
    assert adapt(install_good, f"{source}\n@hookimpl\ndef realtime_turn_scorer():\n    raise AssertionError\n").turn_scorer is None


def test_semantic_vad_alone_needs_a_detector_too(install_good: Install) -> None:
    source = WITH_VAD.replace("server_vad", "semantic_vad")
    refused(install_good, "realtime_detector", source, "nothing", "methods of Detector")


WITH_TRANSCRIPTION = WITH_VAD.replace('turn_detection=("server_vad",)', 'transcription_models=("ears",)')


def test_hook_realtime_transcriber(install_good: Install) -> None:
    adapter = adapt(install_good, WITH_TRANSCRIPTION + "\n@hookimpl\ndef realtime_transcriber():\n    return ScriptedTranscriber()\n")
    assert isinstance(adapter.transcriber, ScriptedTranscriber)


def test_a_transcriber_that_is_claimed_must_come(install_good: Install) -> None:
    refused(install_good, "realtime_transcriber", WITH_TRANSCRIPTION, "nothing", "the capabilities list a transcription model")


def test_hook_realtime_build_prompt(install_good: Install) -> None:
    adapter = adapt(
        install_good,
        """
        @hookimpl
        def realtime_build_prompt(turn, deployment):
            return ChatPrompt(messages=turn.messages[-1:], engine_info={"name": deployment.name})
        """,
    )
    prompt = adapter.build_prompt(Turn(messages=(ChatMessage(role="assistant"), HELLO)))
    assert (prompt.messages, prompt.engine_info) == ((HELLO,), {"name": "served"})


def test_the_default_prompt_is_plain_chat(install_good: Install) -> None:
    audio = AudioPart(samples=np.zeros(160, np.float32), rate=16000, key="a")
    messages = (HELLO, ChatMessage(role="assistant", content=(TextPart(text="Hi"),)), ChatMessage(role="user", content=(audio,)))
    tools = (Tool(name="look"),)
    adapter = adapt(install_good)
    prompt = adapter.build_prompt(Turn(messages=messages, instructions="Be brief.", tools=tools, tool_choice=NamedTool(name="look")))
    assert prompt.messages == (ChatMessage(role="system", content=(TextPart(text="Be brief."),)), *messages)
    assert (prompt.tools, prompt.tool_choice) == (tools, NamedTool(name="look"))
    assert adapter.build_prompt(Turn(messages=messages)).messages == messages


def test_a_prompt_of_another_type_is_refused(install_good: Install) -> None:
    adapter = adapt(install_good, "@hookimpl\ndef realtime_build_prompt():\n    return 'prompt'\n")
    with pytest.raises(PluginContractError, match=r"realtime_build_prompt returned str; it must return ChatPrompt\."):
        adapter.build_prompt(Turn(messages=(HELLO,)))


def test_an_exception_of_the_prompt_builder_is_named_without_the_conversation(install_good: Install) -> None:
    adapter = adapt(install_good, "@hookimpl\ndef realtime_build_prompt(turn):\n    raise KeyError(turn.messages[0].content[0].text)\n")
    with pytest.raises(PluginHookError, match=r"'good' of omni-realtime-good 1\.2: realtime_build_prompt raised KeyError\.$") as caught:
        adapter.build_prompt(Turn(messages=(HELLO,)))
    assert "Hello" not in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)


ASKED_LATER_OR_BEFORE = {"realtime_build_prompt", "realtime_check_deployment", "realtime_fix_sampling_params"}


@pytest.mark.parametrize("hook", [name for name in HOOK_NAMES if name not in ASKED_LATER_OR_BEFORE])
def test_an_exception_in_a_hook_is_named(install_good: Install, hook: str) -> None:
    claims = "Capabilities(audio_input=True, turn_detection=('server_vad', 'semantic_vad'), transcription_models=('ears',))"
    source = f"{WITH_VAD}    return {claims}\n\n@hookimpl\ndef realtime_detector():\n    return ScriptedDetector()\n"
    source += "\n@hookimpl\ndef realtime_turn_scorer():\n    return ScriptedTurnScorer()\n"
    source = source.replace('    return Capabilities(audio_input=True, turn_detection=("server_vad",))\n', "", 1)
    with pytest.raises(PluginHookError, match=rf"omni-realtime-good 1\.2: {hook} raised ValueError: no way") as caught:
        adapt(install_good, f"{source}\n@hookimpl\ndef {hook}():\n    raise ValueError('no way')\n")
    assert isinstance(caught.value.__cause__, ValueError)
    assert isinstance(caught.value, PluginError)


def test_an_exception_in_a_check_is_a_problem(install_good: Install) -> None:
    install_good("good", "@hookimpl\ndef realtime_check_deployment():\n    raise ValueError('no way')\n")
    (problem,) = check_deployment(DEPLOYMENT)
    assert "realtime_check_deployment raised ValueError: no way" in problem.message


def test_a_default_answers_where_the_plugin_returns_none(install_good: Install) -> None:
    assert adapt(install_good, "@hookimpl\ndef realtime_capabilities():\n    return None\n").capabilities == Capabilities()


def test_there_are_at_most_ten_hooks() -> None:
    assert len(HOOK_NAMES) <= 10


def _signature(hook: str) -> str:
    return f"{hook}({', '.join(inspect.signature(getattr(hookspecs, hook)).parameters)})"


@pytest.mark.parametrize("hook", HOOK_NAMES)
def test_every_hook_is_first_result_and_described(hook: str) -> None:
    spec = getattr(hookspecs, hook)
    assert spec.omni_realtime_spec["firstresult"]
    for section in ("Called ", "Args:", "Returns:"):
        assert section in (spec.__doc__ or "")


@pytest.mark.parametrize("hook", HOOK_NAMES)
def test_every_hook_has_a_test(hook: str) -> None:
    tests = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert f"test_hook_{hook}" in tests


@pytest.mark.parametrize("hook", HOOK_NAMES)
def test_every_hook_is_documented(hook: str) -> None:
    headings = re.findall(r"^## `(.+)`$", (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert _signature(hook) in headings
    assert len(headings) == len(HOOK_NAMES)


def _examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("source", _examples())
def test_every_documented_example_is_a_hook_implementation(source: str) -> None:
    module = ModuleType("documented_example")
    exec(compile(source, "docs/hooks.md", "exec"), module.__dict__)  # noqa: S102
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    manager.check_pending()
    assert manager.get_hookcallers(module)


def _shipped() -> list[str]:
    names = []
    for path in (ROOT / "plugins").glob("*/pyproject.toml"):
        names += tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"]["omni_realtime"]
    return names


@pytest.mark.parametrize("hook", HOOK_NAMES)
def test_every_hook_is_implemented_by_a_shipped_plugin(hook: str) -> None:
    assert hook in {used for name in _shipped() for used in load_plugin(name).hooks}


def test_defaults_implement_what_has_a_plain_answer() -> None:
    answered = {name for name in HOOK_NAMES if hasattr(defaults, name)}
    assert answered == set(HOOK_NAMES) - {"realtime_detector", "realtime_turn_scorer", "realtime_transcriber"}
