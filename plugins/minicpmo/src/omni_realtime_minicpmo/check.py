"""What keeps a deployment from serving, found without loading anything."""

from __future__ import annotations

from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import engine_problems
from omni_realtime.engine.deploy_config import WHERE, DeployConfigError, duplex_problems, installation_problems, read_deploy_config
from omni_realtime.engine.deployment_checks import checkpoint_problems, setting_problems, template_problems
from omni_realtime_minicpmo.settings import DEPLOY_CONFIG, MinicpmoSettings, complete, read_settings

ENGINES = ("vllm_omni", "chat_completions")


def check(deployment: Deployment) -> list[Problem]:
    """Wrong settings; else all that is wrong with the model, its voices and the deploy config."""
    deployment = complete(deployment)
    problems = [*setting_problems(MinicpmoSettings, deployment), *engine_problems(deployment)]
    if problems:
        return problems
    settings = read_settings(deployment)
    if settings.engine["type"] not in ENGINES:
        message = f"MiniCPM-o speaks by stages that only {' or '.join(ENGINES)} runs: name one of these."
        return [Problem(where="settings.engine.type", message=message)]
    problems = settings.voice_files.problems("reference_audio")
    return problems if settings.is_remote else [*problems, *_engine(settings)]


def _engine(settings: MinicpmoSettings) -> list[Problem]:
    engine = settings.engine
    not_installed = installation_problems()
    return [
        *not_installed,
        *checkpoint_problems(engine["model"], ["MiniCPMO"], version="4.5"),
        *template_problems(engine["model"], engine.get("chat_template")),
        *_remote_code(settings),
        *(() if not_installed else _deploy_config(settings)),
    ]


def _remote_code(settings: MinicpmoSettings) -> list[Problem]:
    if (settings.engine.get("engine_args") or {}).get("trust_remote_code"):
        return []
    message = (
        "MiniCPM-o's configuration and tokenizer are Python code in its checkpoint: add trust_remote_code: true, if you trust its source."
    )
    return [Problem(where="settings.engine.engine_args", message=message)]


def _deploy_config(settings: MinicpmoSettings) -> list[Problem]:
    try:
        config = read_deploy_config(settings.engine)
    except DeployConfigError as error:
        return [Problem(where=WHERE, message=str(error))]
    return duplex_problems(config, f"name {DEPLOY_CONFIG}, or put session_mode: turn into yours.")
