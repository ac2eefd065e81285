"""The configuration file: every problem with its line, its key path and the mend."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from omni_realtime.deployment import RateLimits
from omni_realtime_host.config import load_config
from omni_realtime_host.problems import ConfigError
from omni_realtime_host.yaml_locations import parse_dotted

GOOD = """\
deployments:
  - name: one
    plugin: local
"""


@pytest.fixture
def problems(tmp_path):
    def find(text: str, **options) -> list[str]:
        file = tmp_path / "host.yaml"
        file.write_text(dedent(text))
        with pytest.raises(ConfigError) as raised:
            load_config(file, **options)
        return [str(problem).replace(f"{tmp_path}/", "") for problem in raised.value.problems]

    return find


@pytest.mark.parametrize(
    ("text", "begins", "mends"),
    [
        ("", "host.yaml: ", "deployments:"),
        ("- a\n", "host.yaml: ", "deployments:"),
        ("a: [\n", "host.yaml:2:1: ", "not YAML"),
        ("a: !!python/object:os.system {}\n", "host.yaml:1:4: ", "not YAML"),
        ("a: &x [*x]\n", "host.yaml:1:", "not YAML"),
        ('a: "\\ud83d"\n', "host.yaml:1:4: ", "half a surrogate pair"),
        ("server: {}\n", "host.yaml:1: deployments: ", "required"),
        ("deployments: []\n", "host.yaml:1: deployments: ", "at least one"),
        ("deployments: {}\n", "host.yaml:1: deployments: ", "must be a list"),
        (GOOD + "servre: {}\n", "host.yaml:4: servre: ", "did you mean 'server'?"),
        (GOOD + "server:\n  prot: 1\n", "host.yaml:5: server.prot: ", "did you mean 'port'?"),
        (GOOD + "server:\n  limits:\n    sesions: 1\n", "host.yaml:6: server.limits.sesions: ", "did you mean 'sessions'?"),
        (GOOD + "server:\n  xyz: 1\n", "host.yaml:5: server.xyz: ", "known here: api_keys, host, limits, port, tls"),
        ("deployments:\n  - name: one\n    pugin: local\n", "host.yaml:3: deployments[0].pugin: ", "did you mean 'plugin'?"),
        (GOOD + "server: 5\n", "host.yaml:4: server: ", "must hold keys"),
        (GOOD + "server:\n", "host.yaml:4: server: ", "must hold keys"),
        ("deployments:\n  - local\n", "host.yaml:2: deployments[0]: ", "must hold keys"),
        ("deployments:\n  - {name: one, plugin: local, settings: 5}\n", "host.yaml:2: deployments[0].settings: ", "must hold keys"),
        (GOOD + "server:\n  port: 70000\n", "host.yaml:5: server.port: ", "65535"),
        (GOOD + "server:\n  port: '80'\n", "host.yaml:5: server.port: ", "integer"),
        (GOOD + "server:\n  port: -1\n", "host.yaml:5: server.port: ", "greater"),
        (GOOD + "server:\n  host: 0.0.0.0\n", "host.yaml:5: server.host: ", "server.api_keys"),
        (GOOD + "server:\n  host: '::'\n", "host.yaml:5: server.host: ", "server.api_keys"),
        (GOOD + "server:\n  api_keys: ['a b']\n", "host.yaml:5: server.api_keys[0]: ", "openssl rand"),
        (GOOD + "server:\n  api_keys: ['']\n", "host.yaml:5: server.api_keys[0]: ", "openssl rand"),
        (GOOD + "server:\n  api_keys: ['${NOT_SET_ANYWHERE}']\n", "host.yaml:5: server.api_keys[0]: ", "NOT_SET_ANYWHERE is not set"),
        (GOOD + "server:\n  api_keys: ['sk-${HOME}']\n", "host.yaml:5: server.api_keys[0]: ", "must be the whole key"),
        (GOOD + "server:\n  limits: {shutdown_s: .inf}\n", "host.yaml:5: server.limits.shutdown_s: ", "less than or equal"),
        (
            GOOD + "server:\n  limits: {session_duration_s: 99999999999999}\n",
            "host.yaml:5: server.limits.session_duration_s: ",
            "less than",
        ),
        ("a: " + "[" * 3000 + "]" * 3000, "host.yaml: ", "nested too deep"),
        (GOOD + "server:\n  api_keys: secret-key\n", "host.yaml:5: server.api_keys: ", "must be a list"),
        (GOOD + "server:\n  tls: {cert: c.pem, key: k.pem}\n", "host.yaml:5: server.tls.cert: ", "there is no file c.pem"),
        (GOOD + "server:\n  tls: {cert: c.pem}\n", "host.yaml:5: server.tls.cert: ", "there is no file"),
        (GOOD + "server:\n  limits: {frame_bytes: 1000}\n", "host.yaml:5: server.limits.frame_bytes: ", "22020096"),
        (GOOD + "  - name: one\n    plugin: b\n", "host.yaml:4: deployments[1].name: ", "another deployment is named 'one'"),
        (GOOD + "    plugin: again\n", "host.yaml:4: deployments[0].plugin: ", "line 3"),
        ("deployments:\n  - name: ''\n    plugin: a\n", "host.yaml:2: deployments[0].name: ", "letters, digits"),
        ("deployments:\n  - name: one\n", "host.yaml:2: deployments[0].plugin: ", "required"),
        (GOOD + "    prompts: {p: hi}\n", "host.yaml:4: deployments[0].prompts: ", "must be a list"),
        (GOOD + "    prompts: [{id: p}]\n", "host.yaml:4: deployments[0].prompts[0].instructions: ", "required"),
        (GOOD + "    prompts: [{id: p, instructions: '', voice: x}]\n", "host.yaml:4: deployments[0].prompts[0].voice: ", "known here: id"),
        (GOOD + "    prompts: [{id: '', instructions: ''}]\n", "host.yaml:4: deployments[0].prompts[0].id: ", "letters, digits"),
        (GOOD + "    prompts: [{id: p, version: 1.5, instructions: ''}]\n", "host.yaml:4: deployments[0].prompts[0].version: ", "string"),
        (
            GOOD + "    prompts: [{id: p, version: '', instructions: ''}]\n",
            "host.yaml:4: deployments[0].prompts[0].version: ",
            "1 character",
        ),
        (
            GOOD + "    prompts: [{id: p, instructions: 'Say {{first name}}.'}]\n",
            "host.yaml:4: deployments[0].prompts[0].instructions: ",
            "'{{first name}}.' begins no variable; a variable is a name of letters, digits and _ in double braces, such as {{city}}",
        ),
        (
            GOOD + "    prompts:\n      - {id: p, instructions: a}\n      - {id: p, version: 1, instructions: b}\n",
            "host.yaml:4: deployments[0].prompts: ",
            "'p' stands here twice with the version '1'",
        ),
        (GOOD + "    rate_limits: {}\n", "host.yaml:4: deployments[0].rate_limits: ", "requests_per_minute, tokens_per_minute or both"),
        (
            GOOD + "    rate_limits: {requests_per_minute: 0}\n",
            "host.yaml:4: deployments[0].rate_limits.requests_per_minute: ",
            "greater than or equal to 1",
        ),
        (
            GOOD + "    rate_limits: {requests_per_minute: 10000000000000000000}\n",
            "host.yaml:4: deployments[0].rate_limits.requests_per_minute: ",
            "less than",
        ),
        (
            GOOD + "    rate_limits: {tokens_a_minute: 5}\n",
            "host.yaml:4: deployments[0].rate_limits.tokens_a_minute: ",
            "did you mean 'tokens_per_minute'?",
        ),
    ],
)
def test_a_problem_has_its_place_and_its_mend(problems, text, begins, mends):
    found = [problem for problem in problems(text) if problem.startswith(begins)]
    assert found
    assert mends in found[0]


def test_all_problems_come_at_once(problems):
    found = problems(
        """\
        server:
          port: none
          hots: localhost
          tls: {cert: nowhere.pem, key: nowhere.pem}
        deployments:
          - name: one
            plugin: a
          - name: one
            plugin: 5
        """
    )
    places = [problem.split(": ")[1] for problem in found]
    assert sorted(places) == [
        "deployments[1].name",
        "deployments[1].plugin",
        "server.hots",
        "server.port",
        "server.tls.cert",
        "server.tls.key",
    ]


@pytest.mark.parametrize("entry", ["{plugin: local}", "{name: 5, plugin: local}", "local"])
def test_a_wrong_deployment_is_the_one_problem(problems, entry):
    assert len(problems(f"deployments:\n  - {entry}\n")) == 1


def test_the_command_line_replaces_the_file_and_is_named_where_it_is_at_fault(problems, tmp_path):
    file = tmp_path / "host.yaml"
    file.write_text(GOOD)
    server = load_config(file, host="::1", port=9000).config.server
    assert (server.host, server.port) == ("::1", 9000)
    assert problems(GOOD, host="0.0.0.0")[0].startswith("--host: server.host: ")
    assert problems(GOOD, port=70000)[0].startswith("--port: server.port: ")


def test_keys_come_from_the_environment_and_are_never_shown(tmp_path, monkeypatch, problems):
    monkeypatch.setenv("A_KEY", "s3cret-value")
    file = tmp_path / "host.yaml"
    file.write_text(GOOD + "server:\n  host: 0.0.0.0\n  api_keys: ['${A_KEY}', other-s3cret]\n")
    config = load_config(file).config
    assert [key.get_secret_value() for key in config.server.api_keys] == ["s3cret-value", "other-s3cret"]
    assert "s3cret" not in repr(config)
    assert "s3cret" not in str(problems(GOOD + "server:\n  api_keys: ['my s3cret', 5]\n"))


def test_tls_files_are_found_beside_the_configuration(tmp_path, certificate):
    file = tmp_path / "host.yaml"
    file.write_text(GOOD + "server:\n  tls: {cert: cert.pem, key: key.pem}\n")
    tls = load_config(file).config.server.tls
    assert tls is not None
    assert (tls.cert, tls.key) == tuple(map(str, certificate))


def test_tls_files_that_are_no_pair_are_told(problems, certificate):
    assert "the files of one pair" in problems(GOOD + "server:\n  tls: {cert: cert.pem, key: cert.pem}\n")[0]


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "none.yaml")


def test_an_anchor_used_twice_is_fine(tmp_path):
    file = tmp_path / "host.yaml"
    file.write_text("deployments:\n  - {name: a, plugin: p, settings: &s {x: 1}}\n  - {name: b, plugin: p, settings: *s}\n")
    assert load_config(file).config.deployments[1].settings == {"x": 1}


def test_characters_may_be_escaped_as_json_does_it(tmp_path):
    file = tmp_path / "host.yaml"
    file.write_text(json.dumps({"deployments": [{"name": "one", "plugin": "local", "session": {"instructions": "Smile \U0001f600"}}]}))
    assert load_config(file).config.deployments[0].session == {"instructions": "Smile \U0001f600"}


def test_prompts_and_rate_limits_reach_the_deployment(tmp_path):
    file = tmp_path / "host.yaml"
    file.write_text(
        GOOD
        + """\
    prompts:
      - {id: pmpt_1, instructions: "Hello {{ name }}."}
      - {id: pmpt_1, version: 2, instructions: "Bye {{name}}."}
    rate_limits: {tokens_per_minute: 1000}
"""
    )
    deployment = load_config(file).config.deployments[0].deployment()
    assert deployment.rate_limits == RateLimits(tokens_per_minute=1000)
    assert [(prompt.id, prompt.version, prompt.variables) for prompt in deployment.prompts] == [
        ("pmpt_1", "1", ("name",)),
        ("pmpt_1", "2", ("name",)),
    ]


def test_the_shipped_configuration_is_good():
    config = load_config(Path(__file__).parents[2] / "deployments" / "local.yaml").config
    assert [deployment.name for deployment in config.deployments] == ["local-smollm2-135m"]


@pytest.mark.parametrize(
    ("text", "path"), [("settings.a.b", ("settings", "a", "b")), ("settings.a[0].b", ("settings", "a", 0, "b")), ("", ())]
)
def test_dotted_paths_are_read_as_they_are_written(text, path):
    assert parse_dotted(text) == path
