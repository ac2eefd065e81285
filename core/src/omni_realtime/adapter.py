"""One deployment made ready: its plugin's answers, asked for once and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from omni_realtime.chat import ChatPrompt, Turn
from omni_realtime.deployment import Deployment, Problem
from omni_realtime.engine.port import Detector, Engine, Transcriber, TurnScorer
from omni_realtime.hookspecs import ResampleRates
from omni_realtime.plugins import Plugin, PluginError, load_plugin
from omni_realtime.protocol.capabilities import Capabilities, TurnDetectionType

T = TypeVar("T")


class PluginContractError(PluginError):
    """A hook answered something that its specification does not allow."""


class PluginHookError(PluginError):
    """A hook raised; the exception is the ``__cause__``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adapter:
    """The answers that do not change while a deployment serves, and the one that does: the prompt of each response."""

    deployment: Deployment
    plugin: Plugin
    capabilities: Capabilities
    rates: ResampleRates
    engine: Engine
    detector: Detector | None
    """Where the capabilities list a turn detection."""
    turn_scorer: TurnScorer | None = None
    """Where the capabilities list ``semantic_vad``."""
    transcriber: Transcriber | None
    """Where the capabilities list a transcription model."""

    def build_prompt(self, turn: Turn) -> ChatPrompt:
        """Ask the plugin for the prompt of one response.

        Raises:
            PluginHookError: if the hook raises; the message leaves out the exception's own, which may quote the conversation.
            PluginContractError: if it returns no prompt.
        """
        try:
            prompt = self.plugin.hook.realtime_build_prompt(turn=turn, deployment=self.deployment)
        except Exception as error:
            raise PluginHookError(_subject(self.plugin, "realtime_build_prompt"), f"raised {type(error).__name__}.") from error
        return _expect(self.plugin, "realtime_build_prompt", prompt, ChatPrompt)


def check_deployment(deployment: Deployment) -> list[Problem]:
    """Find what would keep a deployment from serving; a plugin that cannot be loaded or asked is a problem, not an exception."""
    try:
        return _problems(load_plugin(deployment.plugin), deployment)
    except PluginError as error:
        return [Problem(where="plugin", message=str(error))]


def resolve(deployment: Deployment, plugin: Plugin) -> Adapter:
    """Ask a plugin for everything that a deployment needs; nothing is loaded or started.

    Raises:
        PluginHookError: if a hook raises.
        PluginContractError: if a hook answers something else than its specification says.
        PluginError: if the plugin that is to lend a detector (with its turn scorer) or a transcriber cannot be loaded.
    """
    ears, writer = _lender(deployment, deployment.detector), _lender(deployment, deployment.transcriber)
    capabilities = replace(_capabilities(plugin, deployment), prompts=deployment.prompts)
    if ears:
        capabilities = replace(capabilities, turn_detection=_lent_turn_detection(*ears))
    if writer:
        lent = _capabilities(*writer)
        capabilities = replace(
            capabilities,
            transcription_models=lent.transcription_models,
            transcription_languages=lent.transcription_languages,
            transcription_logprobs=lent.transcription_logprobs,
        )
    return Adapter(
        deployment=deployment,
        plugin=plugin,
        capabilities=capabilities,
        rates=_rates(plugin, deployment),
        engine=_engine(plugin, deployment),
        detector=_detector(*(ears or (plugin, deployment))) if capabilities.turn_detection else None,
        turn_scorer=_turn_scorer(*(ears or (plugin, deployment))) if "semantic_vad" in capabilities.turn_detection else None,
        transcriber=_transcriber(*(writer or (plugin, deployment))) if capabilities.transcription_models else None,
    )


def _lender(deployment: Deployment, name: str | None) -> tuple[Plugin, Deployment] | None:
    """Load the plugin that lends its detector or transcriber, with its default settings."""
    return (load_plugin(name), Deployment(name=deployment.name, plugin=name)) if name else None


def _lent_turn_detection(plugin: Plugin, deployment: Deployment) -> tuple[TurnDetectionType, ...]:
    """What a lent detector serves: always ``server_vad``, and ``semantic_vad`` where the lender does."""
    is_semantic = "semantic_vad" in _capabilities(plugin, deployment).turn_detection
    return ("server_vad", "semantic_vad") if is_semantic else ("server_vad",)


def _capabilities(plugin: Plugin, deployment: Deployment) -> Capabilities:
    return _expect(plugin, "realtime_capabilities", _ask(plugin, "realtime_capabilities", deployment), Capabilities)


def _problems(plugin: Plugin, deployment: Deployment) -> list[Problem]:
    hook = "realtime_check_deployment"
    found = _expect(plugin, hook, _ask(plugin, hook, deployment), list)
    for problem in found:
        _expect(plugin, hook, problem, Problem)
    return found


def _rates(plugin: Plugin, deployment: Deployment) -> ResampleRates:
    hook = "realtime_resample_rates"
    rates = _expect(plugin, hook, _ask(plugin, hook, deployment), ResampleRates)
    _expect_positive(plugin, hook, input=rates.input, output=rates.output)
    return rates


def _engine(plugin: Plugin, deployment: Deployment) -> Engine:
    why = "every deployment needs one, by this hook or by settings.engine"
    engine: Engine = _port(plugin, "realtime_engine", deployment, Engine, why, hook=plugin.hook)
    return engine


def _detector(plugin: Plugin, deployment: Deployment) -> Detector:
    hook = "realtime_detector"
    detector: Detector = _port(plugin, hook, deployment, Detector, "the capabilities list server_vad or semantic_vad")
    _expect_positive(plugin, hook, rate=detector.rate, frame_samples=detector.frame_samples)
    return detector


def _turn_scorer(plugin: Plugin, deployment: Deployment) -> TurnScorer:
    hook = "realtime_turn_scorer"
    scorer: TurnScorer = _port(plugin, hook, deployment, TurnScorer, "the capabilities list semantic_vad")
    _expect_positive(plugin, hook, rate=scorer.rate, window_samples=scorer.window_samples)
    return scorer


def _transcriber(plugin: Plugin, deployment: Deployment) -> Transcriber:
    transcriber: Transcriber = _port(plugin, "realtime_transcriber", deployment, Transcriber, "the capabilities list a transcription model")
    return transcriber


def _ask(plugin: Plugin, hook: str, deployment: Deployment, /, **arguments: Any) -> Any:
    ask: Callable[..., Any] = getattr(plugin.hook, hook)
    try:
        return ask(deployment=deployment, **arguments)
    except Exception as error:
        raise PluginHookError(_subject(plugin, hook), f"raised {type(error).__name__}: {error}") from error


def _port(plugin: Plugin, hook: str, deployment: Deployment, port: type[Any], why: str, /, **arguments: Any) -> Any:
    answer = _ask(plugin, hook, deployment, **arguments)
    if answer is None:
        _contradict(plugin, hook, "nothing", f"an object with the methods of {port.__name__}: {why}")
    methods = [name for name, member in vars(port).items() if name[0] != "_" and callable(member)]
    missing = [name for name in methods if not callable(getattr(answer, name, None))]
    if missing:
        _contradict(plugin, hook, f"{type(answer).__name__} without {', '.join(missing)}", f"all methods of {port.__name__}")
    return answer


def _expect(plugin: Plugin, hook: str, answer: object, kind: type[T]) -> T:
    if not isinstance(answer, kind):
        _contradict(plugin, hook, type(answer).__name__, kind.__name__)
    return answer


def _expect_positive(plugin: Plugin, hook: str, **values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or value <= 0:
            _contradict(plugin, hook, f"{name} {value!r}", "a positive whole number")


def _contradict(plugin: Plugin, hook: str, got: str, want: str) -> NoReturn:
    raise PluginContractError(_subject(plugin, hook), f"returned {got}; it must return {want}.")


def _subject(plugin: Plugin, hook: str) -> str:
    return f"{plugin}: {hook}"
