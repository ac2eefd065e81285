"""The Python clients of the matrix, by what their drivers saw."""

from __future__ import annotations

from typing import Any

from client_contract import ClientContract, Report
from client_matrix import python_client, record
from provocations import provocations


class PlainContract(ClientContract):
    """A client that leaves it to its user when to read."""

    def test_unread(self, report: Report) -> None:
        assert report == {"code": "output_buffer_overflow"}


class TestOpenAIAsync(PlainContract):
    client = python_client("openai-async", "openai/async_client.py", "openai==3.57.0", deaf=1)


class TestOpenAISync(PlainContract):
    client = python_client("openai-sync", "openai/sync_client.py", "openai==3.57.0", deaf=2)


class TestTwilio(PlainContract):
    client = python_client("twilio", "twilio/mulaw_stream.py", "websockets==16.1.1", deaf=3)


class TestOpenAIAgents(ClientContract):
    client = python_client("openai-agents", "openai_agents/runner.py", "openai-agents==0.24.0", deaf=4)


class TestLiveKit(ClientContract):
    client = python_client("livekit-plugins-openai", "livekit/agent_session.py", "livekit-plugins-openai==1.8.9", deaf=5)
    # It sends no frame that is not an event, and follows one response at a time.
    not_provoked = ("invalid_json", "invalid_frame", "invalid_type of an event", "too_many_responses")
    told_of = ("error", "response.done")
    # It takes both for the echo of what the server's own turn detection did before it.
    kept_to_itself = ("response_cancel_not_active", "input_audio_buffer_commit_empty")


PIPECATS_RULE = (
    "Pipecat's own rule: an error ends its session, but for three (`response_cancel_not_active`, "
    "`conversation_already_has_active_response`, `item_retrieve_invalid_item_id`); a new session then talks."
)


class TestPipecat(ClientContract):
    """Its rule is to end its session at the first error but three; the pipeline lives, and its next session talks."""

    client = python_client("pipecat-ai", "pipecat/realtime_service.py", "pipecat-ai==1.14.0", deaf=6)
    tolerated = ("response_cancel_not_active", "conversation_already_has_active_response", "item_retrieve_invalid_item_id")

    def test_tool_call(self, report: Report) -> None:
        """It sends the tool's result as JSON."""
        super().test_tool_call({**report, "said": report["said"].replace('"sunny"', "sunny")})

    def test_errors(self, report: Report) -> None:
        for provocation in provocations():
            seen = report["provoked"][provocation["name"]]
            assert seen["code"] == provocation["code"], provocation["name"]
            assert seen == {**seen, **self._rule(provocation)}, provocation["name"]
        record(self.client, "errors", PIPECATS_RULE)

    def _rule(self, provocation: dict[str, Any]) -> Report:
        if provocation["in"] == "error" and provocation["code"] not in self.tolerated:
            return {"ended": True, "told": 1}
        return {"ended": False, "told": int(provocation["in"] == "response.done"), "turn": "Hello to you."}
