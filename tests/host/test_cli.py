"""The command line, as a person meets it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import websockets

from omni_realtime.testing.wire_log import WireLog
from omni_realtime_host.cli import main

PLUGIN = """\
import asyncio
import os
from omni_realtime.chat import ChatDelta
from omni_realtime.deployment import Problem
from omni_realtime.hookspecs import hookimpl
from omni_realtime.testing import ScriptedEngine, text_reply

OMNI_REALTIME_API = 1


class Engine(ScriptedEngine):
    async def start(self):
        await asyncio.sleep(float(os.environ.get("LOADING_S", "0")))
        if os.environ.get("BROKEN_START"):
            raise RuntimeError("the weights are missing")


@hookimpl
def realtime_check_deployment(deployment):
    unknown = sorted(set(deployment.settings) - {"wait"})
    return [Problem(where=f"settings.{key}", message="this setting is unknown; take it out") for key in unknown]


@hookimpl
def realtime_engine(deployment):
    return Engine([ChatDelta(text="Well,"), float(deployment.settings.get("wait", 0)), *text_reply(" done.")])
"""

CONFIG = """\
server:
  port: 0
  limits: {shutdown_s: 0.5}
deployments:
  - name: one
    plugin: scripted-for-tests
    settings: {wait: 0}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin that is installed, for this process and for those that it starts."""
    info = tmp_path / "site" / "scripted_for_tests-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-for-tests\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[omni_realtime]\nscripted-for-tests = scripted_for_tests\n")
    (tmp_path / "site" / "scripted_for_tests.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return tmp_path / "site"


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str) -> str:
        file = tmp_path / "host.yaml"
        file.write_text(dedent(text))
        return str(file)

    return write


@contextlib.contextmanager
def process(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "omni_realtime_host", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}) as started:
        try:
            yield started
        finally:
            started.kill()


def ready_url(started: subprocess.Popen[str]) -> str:
    assert started.stderr
    told = []
    for line in started.stderr:
        told.append(line)
        if found := re.search(r"Ready: one at (ws\S+)", line):
            assert started.stderr.readline().startswith("Next: ")
            return found[1]
    raise AssertionError(f"it never became ready: {''.join(told)}")


def test_check_finds_no_problem(site, write, capsys):
    assert main(["check", write(CONFIG)]) == 0
    assert "one: Plugin 'scripted-for-tests' of scripted-for-tests 1.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            CONFIG.replace("wait: 0", "wiat: 1, other: 2"),
            ["host.yaml:7: deployments[0].settings.wiat: this setting is unknown", "2 problems"],
        ),
        (
            CONFIG.replace("scripted-for-tests", "no-such"),
            ["host.yaml:6: deployments[0].plugin: Plugin 'no-such' is not installed", "1 problem "],
        ),
        (
            CONFIG + "    session: {audio: {output: {speed: 9}}}\n",
            ["host.yaml:8: deployments[0].session.audio.output.speed: ", "1 problem "],
        ),
        (CONFIG + "    session: {prompt: {id: p}}\n", ["host.yaml:8: deployments[0].session.prompt: ", "no prompts"]),
        (
            CONFIG + "    prompts: [{id: p, instructions: 'Hi {{name}}.'}]\n    session: {prompt: {id: p}}\n",
            ["host.yaml:9: deployments[0].session.prompt", "Missing required parameter: 'session.prompt.variables.name'"],
        ),
        (CONFIG + "    session: {output_modalities: [audio]}\n", ["host.yaml:8: deployments[0].session.output_modalities", "text"]),
        (CONFIG + "    sesion: {}\n", ["did you mean 'session'?"]),
    ],
)
def test_check_tells_every_problem_and_fails(site, write, capsys, text, told):
    assert main(["check", write(text)]) == 1
    output = capsys.readouterr().err
    for each in told:
        assert each in output
    assert "Traceback" not in output


def test_check_tells_problems_of_the_file_and_of_its_plugins_at_once(site, write, capsys):
    text = """\
server: {host: 0.0.0.0, limits: {sesions: 1}}
deployments:
  - {name: one, plugin: scripted-for-tests, settings: {weight: 1}}
  - {name: one, plugin: scripted-for-test}
  - {name: three, plugin: scripted-for-tests, session: {speed: 2}}
  - {name: "four!", plugin: scripted-for-tests, settings: {weight: 1}}
"""
    assert main(["check", write(text)]) == 1
    told = capsys.readouterr().err
    for begins in (
        ":1: server.limits.sesions: ",
        ":3: deployments[0].settings.weight: ",
        ":4: deployments[1].name: ",
        ":4: deployments[1].plugin: ",
        ":5: deployments[2].session.speed: ",
        ":6: deployments[3].name: ",
    ):
        assert begins in told
    assert told.endswith("6 problems to mend.\n")


def test_plugins_lists_hooks_and_versions_and_a_broken_one_with_its_cause(site, capsys):
    assert main(["plugins"]) in {0, 1}
    listed = capsys.readouterr().out
    assert "scripted-for-tests: scripted-for-tests 1.0 (scripted_for_tests)\n  hooks: realtime_check_deployment, realtime_engine" in listed
    (site / "scripted_for_tests.py").write_text("import a_module_that_is_not_there")
    sys.modules.pop("scripted_for_tests", None)
    assert main(["plugins"]) == 1
    assert "broken: cannot be imported: ModuleNotFoundError" in capsys.readouterr().out


def test_a_port_in_use_is_told(site, write, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", write(CONFIG), "--port", str(port)]) == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another" in capsys.readouterr().err


def test_a_host_off_loopback_without_keys_is_refused(site, write, capsys):
    assert main(["serve", write(CONFIG), "--host", "0.0.0.0"]) == 1
    assert "--host: server.host: without an API key only this machine may be served" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.startswith("omni-realtime-host ")


@pytest.mark.slow
def test_a_model_that_cannot_start_stops_the_host_with_its_cause(site, write):
    with process("serve", write(CONFIG), BROKEN_START="1") as started:
        _, output = started.communicate(timeout=30)
    assert started.returncode == 1
    assert "deployment 'one' did not start: the weights are missing" in output
    assert "Traceback" not in output


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("wait", "status"), [("0.2", "completed"), ("60", "cancelled")])
def test_a_clean_stop_ends_running_responses_closes_with_1001_and_exits_with_0(site, write, number, wait, status):
    async def converse(url: str, started: subprocess.Popen[str]) -> WireLog:
        log = WireLog()
        async with websockets.connect(url) as client:
            log.add(await client.recv())
            await client.send('{"type":"response.create"}')
            while log.events[-1]["type"] != "response.output_text.delta":
                log.add(await client.recv())
            started.send_signal(number)
            async for frame in client:
                log.add(frame)
            assert client.close_code == 1001
        return log

    with process("serve", write(CONFIG.replace("wait: 0", f"wait: {wait}"))) as started:
        log = asyncio.run(converse(ready_url(started), started))
        assert started.wait(10) == 0
        assert started.stderr
        assert "Traceback" not in started.stderr.read()
    assert log.events[-1]["type"] == "response.done"
    assert log.events[-1]["response"]["status"] == status


@pytest.mark.slow
def test_a_second_signal_hurries_and_responses_still_end_in_order(site, write):
    async def converse(url: str, started: subprocess.Popen[str]) -> None:
        log = WireLog()
        async with websockets.connect(url) as client:
            await client.send('{"type":"response.create"}')
            async for frame in client:
                if log.add(frame)["type"] == "response.output_text.delta":
                    started.send_signal(signal.SIGINT)
                    await asyncio.sleep(0.2)
                    started.send_signal(signal.SIGINT)
            assert client.close_code == 1001
        assert log.events[-1]["type"] == "response.done"

    with process("serve", write(CONFIG.replace("wait: 0", "wait: 60").replace("0.5", "60"))) as started:
        asyncio.run(converse(ready_url(started), started))
        assert started.wait(10) == 0


@pytest.mark.slow
def test_a_host_that_is_told_to_stop_while_it_loads_exits_with_0(site, write):
    with process("serve", write(CONFIG), LOADING_S="60") as started:
        assert started.stderr
        assert started.stderr.readline() == "Loading one ...\n"
        started.send_signal(signal.SIGTERM)
        assert started.wait(10) == 0


@pytest.mark.slow
def test_a_stopping_host_admits_no_new_session(site, write):
    async def converse(url: str, started: subprocess.Popen[str]) -> None:
        async with websockets.connect(url) as client:
            await client.send('{"type":"response.create"}')
            while b'"response.output_text.delta"' not in (await client.recv()).encode():
                pass
            started.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.1)
            with pytest.raises(websockets.InvalidStatus) as refusal:
                await websockets.connect(url)
            assert refusal.value.response.status_code == 503

    with process("serve", write(CONFIG.replace("wait: 0", "wait: 60"))) as started:
        asyncio.run(converse(ready_url(started), started))
        assert started.wait(10) == 0
