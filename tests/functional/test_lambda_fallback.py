"""Chains through the deployed path: who serves when the first does not, and at what price.

Keeps C27, C50, C52.
"""

from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI

from tests.deployment import Deployment, Workspace
from tests.upstream import Script
from tests.upstream.speakers import BEDROCK, OPENAI

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKED: dict[str, Any] = {"model": "chain", "messages": [{"role": "user", "content": "Say it"}]}
WORDS = ["It", " works"]
OVERLOADED = Script.json(529, {"error": {"message": "busy", "type": "overloaded_error"}})
THROTTLED = Script.json(
    429, {"message": "Too many requests"}, x_amzn_errortype="ThrottlingException"
)
BETA_COST = 9 * 500 + 3 * 1_500
BEDROCK_COST = 9 * 3_000 + 3 * 15_000


@pytest.mark.parametrize("stream", [False, True])
async def test_c27_c50_c52_the_third_provider_serves_at_its_own_price(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, stream: bool
) -> None:
    upstreams = deployment.upstreams
    upstreams.alpha.enqueue(OVERLOADED)
    upstreams.bedrock.enqueue(THROTTLED)
    upstreams.beta.enqueue(OPENAI.script(OPENAI.text(WORDS)))
    completions = client.chat.completions.with_streaming_response
    async with completions.create(**ASKED, stream=stream) as reply:
        body = await reply.read()
        headers = reply.headers
    assert headers["x-model-used"] == "beta/one"
    assert headers["x-provider-used"] == "beta"
    assert headers["x-fallback-from"] == "alpha/one"
    assert headers["x-fallback-depth"] == "2"
    assert ("x-credits-used" in headers) is not stream
    assert b'"fallback_from":"alpha/one"' in body
    record = await deployment.record(workspace, headers["x-generation-id"])
    assert [(attempt.provider, attempt.error, attempt.status) for attempt in record.attempts] == [
        ("alpha", "provider_overloaded", 529),
        ("bedrock", "provider_rate_limit", 429),
        ("beta", None, None),
    ]
    assert (record.outcome, record.trace.route) == ("ok", "chain")
    await deployment.assert_books_closed(workspace, BETA_COST)


async def test_c50_a_provider_that_says_hello_and_then_breaks_fails_over(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    deployment.upstreams.alpha.enqueue(OPENAI.script([*OPENAI.begun([]), OPENAI.error]))
    deployment.upstreams.bedrock.enqueue(BEDROCK.script(BEDROCK.text(WORDS)))
    stream = await client.chat.completions.create(**ASKED, stream=True)
    chunks = [chunk async for chunk in stream]
    assert {chunk.model for chunk in chunks} == {"bedrock/one"}
    said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert said == "It works"
    await deployment.assert_books_closed(workspace, BEDROCK_COST)


async def test_c52_disabled_fallback_keeps_the_first_model(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    deployment.upstreams.alpha.enqueue(OVERLOADED, OVERLOADED)
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(**ASKED, extra_headers={"x-disable-fallback": "true"})
    assert raised.value.status_code == 529
    assert "x-fallback-from" not in raised.value.response.headers
    await deployment.assert_books_closed(workspace, 0)


async def test_c50_the_callers_own_mistake_is_nobody_elses(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    mistake = {"error": {"message": "temperature is odd", "type": "invalid_request_error"}}
    deployment.upstreams.alpha.enqueue(Script.json(400, mistake))
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(**ASKED)
    assert raised.value.status_code == 400
    assert raised.value.code == "invalid_request"
    await deployment.assert_books_closed(workspace, 0)


async def test_c52_a_chain_that_fails_whole_costs_nothing_and_names_every_attempt(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    upstreams = deployment.upstreams
    upstreams.alpha.enqueue(OVERLOADED)
    upstreams.bedrock.enqueue(THROTTLED)
    upstreams.beta.enqueue(Script.json(500, {}), Script.json(500, {}))
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(**ASKED)
    assert raised.value.status_code == 502
    assert raised.value.code == "provider_unavailable"
    generation_id = raised.value.response.headers["x-generation-id"]
    record = await deployment.record(workspace, generation_id)
    assert record.outcome == "error"
    assert [attempt.provider for attempt in record.attempts] == ["alpha", "bedrock", "beta", "beta"]
    await deployment.assert_books_closed(workspace, 0)


async def test_c50_a_provider_that_cannot_be_reached_is_passed_over(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    closes = Script(before_headers="close")
    deployment.upstreams.alpha.enqueue(closes, closes)
    deployment.upstreams.bedrock.enqueue(BEDROCK.script(BEDROCK.text(WORDS)))
    answer = await client.chat.completions.create(**ASKED)
    assert answer.model == "bedrock/one"
    await deployment.assert_books_closed(workspace, BEDROCK_COST)
