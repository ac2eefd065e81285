"""The JavaScript clients of the matrix, by what their drivers saw; one of them runs in a real Chromium."""

from __future__ import annotations

import json

from client_contract import ClientContract, Report
from client_matrix import Client
from serving import ROOT

NODE = ROOT / "tests" / "clients" / "node"
PINNED = json.loads((NODE / "package.json").read_text())["dependencies"]


def node_client(name: str, script: str, package: str, *, deaf: int) -> Client:
    return Client(name, package, PINNED[package], ("node", str(NODE / script)), f"deaf-{deaf}")


class TestOpenAI(ClientContract):
    client = node_client("openai-node", "openai_client.mjs", "openai", deaf=10)
    secure = True


class TestAgents(ClientContract):
    client = node_client("openai-agents-node", "agents_client.mjs", "@openai/agents-realtime", deaf=11)

    def test_conversation(self, report: Report) -> None:
        """With the SDK's own default of how turns are told apart."""
        assert report["turn_detection"] == "semantic_vad"
        super().test_conversation(report)

    def test_barge_in(self, report: Report) -> None:
        """The SDK truncates by itself, and takes from the server what is left of the item."""
        assert report["said"] == f"I said: {report['kept']}"
        super().test_barge_in(report)


class TestAgentsInTheBrowser(TestAgents):
    client = node_client("openai-agents-browser", "agents_browser_client.mjs", "@openai/agents-realtime", deaf=12)
    refusals = dict.fromkeys(ClientContract.refusals, "error")  # a web page is not told why


class TestBeta(ClientContract):
    client = node_client("openai-realtime-api", "beta_client.mjs", "openai-realtime-api", deaf=9)
    refusals = dict.fromkeys(ClientContract.refusals, "Could not connect")
    not_provoked = ("a prompt beyond the model's context",)  # the dialect has no `truncation`

    def test_barge_in(self, report: Report) -> None:
        """The client cancels what the detector has cancelled already, and truncates."""
        assert report["errors"] == ["response_cancel_not_active"]
        super().test_barge_in(report)
