"""What a deployment's configuration gives to all of its sessions: rate limits and prompts."""

from __future__ import annotations

from dataclasses import replace

from omni_realtime.chat import Usage
from omni_realtime.deployment import RateLimits
from omni_realtime.protocol import PromptTemplate
from omni_realtime.testing import ScriptedEngine, text_reply


def limited(adapter, *scripts, **limits):
    made = adapter(ScriptedEngine(*scripts), name="limited")
    return replace(made, deployment=replace(made.deployment, rate_limits=RateLimits(**limits)))


def test_two_connections_share_the_requests_of_a_minute(serve, run, adapter):
    async def test():
        model = limited(adapter, text_reply("Hello."), requests_per_minute=2)
        async with (
            serve(more=(model,)) as running,
            running.connect("?model=limited") as one,
            running.connect("?model=limited") as other,
            running.connect("?model=scripted") as free,
        ):
            for client, remaining in ((one, 1), (other, 0)):
                await client.say("Hi")
                (told,) = (await client.until("rate_limits.updated"))["rate_limits"]
                assert (told["name"], told["limit"], told["remaining"]) == ("requests", 2, remaining)
                assert (await client.until("response.done"))["response"]["status"] == "completed"
            await one.say("Hi")
            error = (await one.until("response.done"))["response"]["status_details"]["error"]
            assert error["code"] == "rate_limit_exceeded"
            assert "Please try again in" in error["message"]
            await free.say("Hi")
            assert (await free.until("response.done"))["response"]["status"] == "completed"
            assert "rate_limits.updated" not in free.log.types()

    run(test())


def test_tokens_are_spent_by_what_the_engine_says(serve, run, adapter):
    async def test():
        model = limited(adapter, text_reply("Hello.", usage=Usage(input_text_tokens=50, output_text_tokens=50)), tokens_per_minute=100)
        async with serve(more=(model,)) as running, running.connect("?model=limited") as client:
            statuses = []
            for _ in range(2):
                await client.say("Hi")
                statuses.append((await client.until("response.done"))["response"]["status"])
            assert statuses == ["completed", "failed"]

    run(test())


def test_a_prompt_of_the_deployment_reaches_the_model(serve, run, adapter):
    async def test():
        made = adapter(ScriptedEngine(text_reply("Hello.")), name="desk")
        prompts = (PromptTemplate(id="pmpt_desk", instructions="You work for {{company}}."),)
        made = replace(made, capabilities=replace(made.capabilities, prompts=prompts))
        async with serve(more=(made,)) as running, running.connect("?model=desk") as client:
            prompt = {"id": "pmpt_desk", "variables": {"company": "ACME"}}
            await client.send("session.update", session={"type": "realtime", "prompt": prompt})
            session = (await client.until("session.updated"))["session"]
            assert (session["prompt"], session["instructions"]) == (prompt, "You work for ACME.")
            await client.say("Hi")
            await client.until("response.done")
            assert made.engine.requests[0].prompt.messages[0].content[0].text == "You work for ACME."

    run(test())
