"""Only the plugin that a deployment names is imported, and what is wrong with it is said in full."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from omni_realtime import __version__
from omni_realtime.adapter import check_deployment
from omni_realtime.deployment import Deployment
from omni_realtime.plugins import API_VERSION, HOOK_NAMES, PluginError, installed_plugins, load_plugin

Install = Callable[..., None]

NO_API = "from omni_realtime.hookspecs import hookimpl\n\n@hookimpl\ndef realtime_engine():\n    return None\n"
HOOKLESS = "OMNI_REALTIME_API = 1\n"
BROKEN = {
    "broken import": (
        "import a_module_that_nobody_has",
        ["cannot be imported", "ModuleNotFoundError", "a_module_that_nobody_has", "reinstall odd-dist 3.4"],
    ),
    "exits on import": ("raise SystemExit('no licence')", ["cannot be imported", "SystemExit: no licence"]),
    "no API version": (NO_API, ["declares no API version", f"set OMNI_REALTIME_API = {API_VERSION} in odd_module"]),
    "an API version that is no number": (NO_API + "OMNI_REALTIME_API = '1'\n", ["declares no API version"]),
    "newer API": (
        NO_API + f"OMNI_REALTIME_API = {API_VERSION + 1}\n",
        [f"version {API_VERSION + 1}", f"offers version {API_VERSION}", "upgrade omni-realtime."],
    ),
    "older API": (NO_API + f"OMNI_REALTIME_API = {API_VERSION - 1}\n", [f"version {API_VERSION - 1}", __version__, "upgrade odd-dist."]),
    "no hook": (HOOKLESS, ["is no plugin: odd_module implements no hook", *HOOK_NAMES]),
    "unmarked hook": (HOOKLESS + "def realtime_engine():\n    return None\n", ["realtime_engine", "hookimpl: add it"]),
    "unknown hook": (
        NO_API + "OMNI_REALTIME_API = 1\n\n@hookimpl\ndef realtime_engnie():\n    return None\n",
        ["unknown hook realtime_engnie", *HOOK_NAMES],
    ),
    "unknown argument": (
        "from omni_realtime.hookspecs import hookimpl\nOMNI_REALTIME_API = 1\n\n@hookimpl\ndef realtime_engine(config):\n    return None\n",
        ["does not fit a hook's signature", "realtime_engine", "config", "omni_realtime.hookspecs"],
    ),
}


@pytest.mark.parametrize(("source", "words"), BROKEN.values(), ids=BROKEN)
def test_a_plugin_that_does_not_fit_is_refused_by_name(install: Install, install_good: Install, source: str, words: list[str]) -> None:
    install("odd-dist", {"odd": "odd_module"}, {"odd_module": source}, version="3.4")
    install_good()
    with pytest.raises(PluginError) as caught:
        load_plugin("odd")
    message = str(caught.value)
    for word in ["Plugin 'odd' of odd-dist 3.4 (entry point odd_module)", "good (omni-realtime-good 1.2)", *words]:
        assert word in message
    assert caught.value.cause in message


def test_a_class_is_refused(install: Install) -> None:
    source = "class Adapter:\n    OMNI_REALTIME_API = 1\n"
    install("odd-dist", {"odd": "odd_module:Adapter"}, {"odd_module": source})
    with pytest.raises(PluginError, match=r"entry point odd_module:Adapter.* is a class: .* an instance"):
        load_plugin("odd")


def test_an_instance_is_a_plugin(install: Install) -> None:
    source = """
    from omni_realtime.hookspecs import hookimpl

    class Adapter:
        OMNI_REALTIME_API = 1

        @hookimpl
        def realtime_engine(self, deployment):
            return deployment.name

    adapter = Adapter()
    """
    install("object-dist", {"object": "object_module:adapter"}, {"object_module": source})
    plugin = load_plugin("object")
    assert plugin.hooks == ("realtime_engine",)
    assert plugin.hook.realtime_engine(deployment=Deployment(name="n", plugin="object"), hook=plugin.hook) == "n"


def test_a_missing_plugin_names_what_is_installed(install_good: Install) -> None:
    install_good("parrot")
    with pytest.raises(PluginError) as caught:
        load_plugin("parot")
    message = str(caught.value)
    assert message.startswith("Plugin 'parot' is not installed")
    assert "the group 'omni_realtime'" in message
    assert "parrot (omni-realtime-parrot 1.2)" in message


def test_a_missing_plugin_where_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(PluginError, match=r"No other plugin is installed\.$"):
        load_plugin("good")


def test_one_name_in_two_distributions_is_refused(install: Install) -> None:
    source = NO_API + "OMNI_REALTIME_API = 1\n"
    install("first-dist", {"twin": "first_twin"}, {"first_twin": source})
    install("second-dist", {"twin": "second_twin"}, {"second_twin": source}, version="2.0")
    with pytest.raises(PluginError, match=r"first-dist 1\.2 \(first_twin\) and second-dist 2\.0 \(second_twin\)\. Uninstall all but one"):
        load_plugin("twin")
    assert {"first_twin", "second_twin"}.isdisjoint(sys.modules)
    assert sum(info.name == "twin" and "Uninstall all but one" in (info.error or "") for info in installed_plugins()) == 2


def test_only_the_named_entry_point_is_imported(install: Install, install_good: Install) -> None:
    install("odd-dist", {"odd": "odd_module"}, {"odd_module": "raise RuntimeError('imported')"})
    install_good()
    load_plugin("good")
    assert "good_adapter" in sys.modules
    assert "odd_module" not in sys.modules


def test_a_loaded_plugin_tells_what_it_is(install_good: Install) -> None:
    install_good("good", "@hookimpl\ndef realtime_build_prompt(turn):\n    return None\n", version="7")
    plugin = load_plugin("good")
    assert (plugin.name, plugin.distribution, plugin.version) == ("good", "omni-realtime-good", "7")
    assert plugin.hooks == ("realtime_build_prompt", "realtime_engine")
    assert str(plugin) == "Plugin 'good' of omni-realtime-good 7"


def test_plugins_do_not_answer_for_each_other(install_good: Install) -> None:
    install_good("one", "@hookimpl\ndef realtime_capabilities():\n    return 'one'\n")
    install_good("two", "@hookimpl\ndef realtime_capabilities():\n    return 'two'\n")
    deployment = Deployment(name="n", plugin="one")
    one, two, one_again = load_plugin("one"), load_plugin("two"), load_plugin("one")
    assert [plugin.hook.realtime_capabilities(deployment=deployment) for plugin in (one, two, one_again)] == ["one", "two", "one"]


def test_a_hook_of_a_later_version_may_be_optional(install_good: Install) -> None:
    install_good("good", "@hookimpl(optionalhook=True)\ndef realtime_of_tomorrow():\n    return None\n")
    assert load_plugin("good").hooks == ("realtime_engine",)


def test_installed_plugins_survives_a_broken_one(install: Install, install_good: Install) -> None:
    install("odd-dist", {"odd": "odd_module"}, {"odd_module": "1 / 0"}, version="3.4")
    install_good()
    infos = {info.name: info for info in installed_plugins()}
    assert infos["good"].hooks == ("realtime_engine",)
    assert infos["good"].error is None
    assert (infos["good"].distribution, infos["good"].version, infos["good"].entry_point) == ("omni-realtime-good", "1.2", "good_adapter")
    assert infos["odd"].hooks == ()
    assert "ZeroDivisionError" in (infos["odd"].error or "")
    assert "Other installed plugins" not in (infos["odd"].error or "")


def test_check_deployment_makes_a_problem_of_a_missing_plugin() -> None:
    (problem,) = check_deployment(Deployment(name="n", plugin="nobody"))
    assert problem.where == "plugin"
    assert "Plugin 'nobody' is not installed" in problem.message
