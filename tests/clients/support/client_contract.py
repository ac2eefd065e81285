"""What every client of the matrix has to do: subclass :class:`ClientContract` once for each."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from client_drivers import run_driver
from client_matrix import Client, assert_conversation, assert_heard_story, record
from client_servers import KEY, LOCAL, SCRIPTED
from provocations import provocations

Report = dict[str, Any]


class ClientContract:
    """Runs the driver of ``client`` once, and judges what it saw."""

    client: ClassVar[Client]
    secure: ClassVar[bool] = False
    """Whether the client takes ``wss`` alone."""
    refusals: ClassVar[Mapping[str, str]] = {"invalid_api_key": "401", "model_not_found": "404", "model_not_ready": "503"}
    """What the client tells its user of a refused upgrade."""
    not_provoked: ClassVar[Collection[str]] = ()
    """Errors that this client has no words to provoke."""

    told_of: ClassVar[Collection[str]] = ("error",)
    """The events whose codes the client tells its user."""

    kept_to_itself: ClassVar[Collection[str]] = ()
    """Errors that the client does not tell its user of."""

    _reports: ClassVar[dict[Client, dict[str, Report]]] = {}

    @pytest.fixture
    def report(self, request: pytest.FixtureRequest, tmp_path: Path) -> Report:
        """The report of the check that the test is named after."""
        if self.client not in self._reports:
            self._reports[self.client] = self._run(request, tmp_path / "provocations.json")
        found = self._reports[self.client][request.node.originalname.removeprefix("test_")]
        assert "failure" not in found, found["failure"]
        return found

    def _run(self, request: pytest.FixtureRequest, file: Path) -> dict[str, Report]:
        file.write_text(json.dumps(provocations()))
        env = {
            "PROVOCATIONS": str(file),
            "KEY": KEY,
            "LOCAL_MODEL": LOCAL,
            "SCRIPTED_MODEL": SCRIPTED,
            "DEAF_MODEL": self.client.deaf_model,
        }
        lines = run_driver(self.client.command, {**env, **self._servers(request)})
        return {line.pop("check"): line for line in lines}

    def _servers(self, request: pytest.FixtureRequest) -> dict[str, str]:
        names = ("local", "scripted", "expiring")
        if not self.secure:
            return {f"{name.upper()}_URL": request.getfixturevalue(f"{name}_url") for name in names}
        servers = {name: request.getfixturevalue(f"{name}_wss") for name in names}
        urls = {f"{name.upper()}_URL": server.url for name, server in servers.items()}
        return {**urls, "NODE_EXTRA_CA_CERTS": str(servers["scripted"].ca_file)}

    def test_version(self, report: Report) -> None:
        assert report["version"] == self.client.version

    def test_conversation(self, report: Report) -> None:
        assert_conversation(report["turns"])
        record(self.client, "conversation")

    def test_tool_call(self, report: Report) -> None:
        assert report == {"name": "get_weather", "arguments": '{"city": "Paris"}', "said": "The tool says sunny"}
        record(self.client, "tool_call")

    def test_barge_in(self, report: Report) -> None:
        assert (report["status"], report["reason"]) == ("cancelled", "turn_detected")
        assert_heard_story(report["said"], report["audio_end_ms"])
        record(self.client, "barge_in")

    def test_errors(self, report: Report) -> None:
        assert set(report["provoked"]) == {each["name"] for each in provocations()} - set(self.not_provoked)
        for provocation in (each for each in provocations() if each["name"] not in self.not_provoked):
            seen = report["provoked"][provocation["name"]]
            assert seen["code"] == provocation["code"], provocation["name"]
            assert seen["errors"] == (provocation["in"] == "error"), provocation["name"]
            told = provocation["in"] in self.told_of and provocation["name"] not in self.kept_to_itself
            assert seen["surfaced"] == [provocation["code"]] * told, provocation["name"]
            assert seen["names_event"] == _is_named(provocation), provocation["name"]
            assert seen["turn"] == "Hello to you.", provocation["name"]
        record(self.client, "errors")

    def test_session_ends(self, report: Report) -> None:
        assert report == {"ended": {"session_expired": "session_expired", "server_error": "server_error"}, "turn": "Hello to you."}
        record(self.client, "session_ends")

    def test_refused_upgrades(self, report: Report) -> None:
        for code, told in self.refusals.items():
            assert told in report["refused"][code], code
        assert report["turn"] == "Hello to you."
        record(self.client, "refused_upgrades")


def _is_named(provocation: dict[str, Any]) -> bool:
    """Whether the ``error`` has the client's event id: where there is an event to read."""
    return (
        provocation["in"] == "error" and all("type" in event for event in provocation["send"]) and provocation["code"] != "event_too_large"
    )
