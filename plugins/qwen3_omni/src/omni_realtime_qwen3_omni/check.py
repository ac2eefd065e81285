"""What keeps a deployment from serving, found without loading anything."""

from __future__ import annotations

from importlib.util import find_spec

from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.adapters import engine_problems
from omni_realtime.engine.deploy_config import WHERE, DeployConfigError, duplex_problems, installation_problems, read_deploy_config
from omni_realtime.engine.deployment_checks import checkpoint_problems, setting_problems, template_problems
from omni_realtime_qwen3_omni.settings import DEPLOY_CONFIG, Qwen3OmniSettings, complete, read_settings

ARCHITECTURES = ("Qwen3OmniMoeForConditionalGeneration",)
STAGES = 3
"""Thinker, talker and vocoder."""


def check(deployment: Deployment) -> list[Problem]:
    """Wrong settings; else all that is wrong with the model and the deploy config."""
    deployment = complete(deployment)
    problems = [*setting_problems(Qwen3OmniSettings, deployment), *engine_problems(deployment)]
    if problems:
        return problems
    settings = read_settings(deployment)
    if settings.engine_type == "chat_completions":
        return []
    engine = settings.engine
    return [
        *checkpoint_problems(engine["model"], ARCHITECTURES),
        *template_problems(engine["model"], engine.get("chat_template")),
        *(_omni(settings) if settings.engine_type == "vllm_omni" else _vllm()),
    ]


def _vllm() -> list[Problem]:
    if find_spec("vllm"):
        return []
    message = "vLLM is not installed: pip install vllm==0.30.0, or let settings.engine name another engine."
    return [Problem(where="settings.engine.type", message=message)]


def _omni(settings: Qwen3OmniSettings) -> list[Problem]:
    return installation_problems() or _deploy_config(settings)


def _deploy_config(settings: Qwen3OmniSettings) -> list[Problem]:
    try:
        config = read_deploy_config(settings.engine)
    except DeployConfigError as error:
        return [Problem(where=WHERE, message=str(error))]
    problems = duplex_problems(config, f"name {DEPLOY_CONFIG}, or put session_mode: turn into yours.")
    if len(config.stage_ids) < STAGES:
        message = f"This deploy config has no talker, so nothing would be spoken: name {DEPLOY_CONFIG}, or let the engine's type be vllm."
        problems.append(Problem(where=WHERE, message=message))
    return problems
