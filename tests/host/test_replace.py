"""A deployment that replaces a running response, through a real socket."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from omni_realtime.chat import ChatDelta
from omni_realtime.engine.port import EngineError
from omni_realtime.testing import ScriptedEngine, text_reply

Run = Callable[[Coroutine[Any, Any, None]], None]


class Counting(ScriptedEngine):
    """Counts a prompt as it is told to."""

    tokens: int | EngineError = 10

    async def count_tokens(self, prompt: Any) -> int:
        if isinstance(self.tokens, EngineError):
            raise self.tokens
        return self.tokens


def replacing(running: Any) -> None:
    (model,) = running.host.models
    model.settings = replace(model.settings, on_active_response="replace")


def test_a_new_response_takes_the_place_of_the_running_one(serve: Any, run: Run) -> None:
    async def scenario() -> None:
        engine = Counting([ChatDelta(text="one"), 60.0, ChatDelta(finish_reason="stop")], text_reply("two"))
        async with serve(engine=engine) as running:
            replacing(running)
            async with running.connect() as client:
                await client.say("first")
                await client.until("response.output_text.delta")
                await client.say("second")
                cancelled = await client.until("response.done")
                completed = await client.until("response.done")
            assert cancelled["response"]["status"] == "cancelled"
            assert completed["response"]["output"][0]["content"][0]["text"] == "two"
            assert [message.role for message in engine.requests[-1].prompt.messages] == ["user", "assistant", "user"]
            assert not engine.running

    run(scenario())


@pytest.mark.parametrize(
    "tokens", [EngineError("This audio cannot be read.", code="invalid_prompt"), 1_000_000], ids=["broken", "too long"]
)
def test_a_response_that_cannot_be_served_leaves_the_running_one_alone(serve: Any, run: Run, tokens: int | EngineError) -> None:
    async def scenario() -> None:
        engine = Counting([ChatDelta(text="one"), 0.5, *text_reply(" and all")])
        engine.tokens = tokens
        async with serve(engine=engine, session={"truncation": "disabled"}) as running:
            replacing(running)
            async with running.connect() as client:
                await client.say("first")
                await client.until("response.output_text.delta")
                await client.send("response.create", event_id="mine")
                refused = await client.until("error")
                done = await client.until("response.done")
            assert refused["error"]["event_id"] == "mine"
            assert refused["error"]["code"] == ("invalid_prompt" if isinstance(tokens, EngineError) else "context_length_exceeded")
            assert done["response"]["status"] == "completed"
            assert done["response"]["output"][0]["content"][0]["text"] == "one and all"

    run(scenario())
