"""What keeps a deployment from serving, found without loading anything."""

from __future__ import annotations

from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import engine_problems
from omni_realtime.engine.deploy_config import (
    WHERE,
    DeployConfig,
    DeployConfigError,
    duplex_problems,
    installation_problems,
    read_deploy_config,
)
from omni_realtime.engine.deployment_checks import checkpoint_problems, setting_problems, template_problems
from omni_realtime_mimo_audio.settings import DEPLOY_CONFIG, TOKENIZER_VARIABLE, MimoAudioSettings, complete, read_settings

ENGINES = ("vllm_omni", "chat_completions")
TOKENIZER_FILES = ("config.json", "model.safetensors")
TOKENIZER_HELP = "hf download XiaomiMiMo/MiMo-Audio-Tokenizer --local-dir FOLDER gets it."


def check(deployment: Deployment) -> list[Problem]:
    """Wrong settings; else all that is wrong with the model, its audio tokenizer, its voices and the deploy config."""
    deployment = complete(deployment)
    problems = [*setting_problems(MimoAudioSettings, deployment), *engine_problems(deployment)]
    if problems:
        return problems
    settings = read_settings(deployment)
    if settings.engine["type"] not in ENGINES:
        message = f"MiMo-Audio speaks by stages that only {' or '.join(ENGINES)} runs: name one of these."
        return [Problem(where="settings.engine.type", message=message)]
    problems = settings.voice_files.problems("voice_prompt")
    return problems if settings.is_remote else [*problems, *_engine(settings)]


def _engine(settings: MimoAudioSettings) -> list[Problem]:
    engine = settings.engine
    not_installed = installation_problems()
    own_template = engine.get("chat_template")
    return [
        *not_installed,
        *checkpoint_problems(engine["model"], ["MiMoAudioModel"]),
        *(template_problems(engine["model"], own_template) if own_template else ()),
        *_tools(settings),
        *_tokenizer(settings),
        *(() if not_installed else _deploy_config(settings)),
    ]


def _tools(settings: MimoAudioSettings) -> list[Problem]:
    if settings.engine.get("tool_parser") is None:
        return []
    return [Problem(where="settings.engine.tool_parser", message="MiMo-Audio calls no tools: remove this setting.")]


def _tokenizer(settings: MimoAudioSettings) -> list[Problem]:
    where, folder = "settings.audio_tokenizer", settings.tokenizer_folder
    if folder is None:
        message = f"Name the folder of MiMo-Audio-Tokenizer here, or in the environment variable {TOKENIZER_VARIABLE}. {TOKENIZER_HELP}"
        return [Problem(where=where, message=message)]
    missing = [name for name in TOKENIZER_FILES if not (folder / name).is_file()]
    if not missing:
        return []
    source = "" if settings.audio_tokenizer else f", which {TOKENIZER_VARIABLE} names,"
    message = f"{folder}{source} has no {' and no '.join(missing)}: give a local folder with MiMo-Audio-Tokenizer. {TOKENIZER_HELP}"
    return [Problem(where=where, message=message)]


def _deploy_config(settings: MimoAudioSettings) -> list[Problem]:
    try:
        config = read_deploy_config(settings.engine)
    except DeployConfigError as error:
        return [Problem(where=WHERE, message=str(error))]
    return [*duplex_problems(config, f"name {DEPLOY_CONFIG}, or put session_mode: turn into yours."), *_concurrency(config)]


def _concurrency(config: DeployConfig) -> list[Problem]:
    """vLLM-Omni 0.30 mixes up concurrent requests: where one makes audio in a step, the others get a group of silence too."""
    if not config.get("async_chunk", True):
        return []
    crowded = [stage for stage in config.stage_ids if (config.get_of_stage(stage, "max_num_seqs") or 1) > 1]
    if not crowded:
        return []
    message = (
        f"Stage {' and '.join(map(str, crowded))} has max_num_seqs above 1, and with async_chunk vLLM-Omni 0.30 then makes replies that "
        "are too long and hold silence: set max_num_seqs to 1, so that responses wait for each other, or async_chunk to false."
    )
    return [Problem(where="settings.engine", message=message)]
