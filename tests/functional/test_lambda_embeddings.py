"""Embeddings through the deployed path, read by the official SDK.

Keeps C5, C26, C81.
"""

from __future__ import annotations

import asyncio

import openai
import pytest
from openai import AsyncOpenAI

from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.upstream import Script

pytestmark = pytest.mark.asyncio(loop_scope="session")

INPUTS = 2_048
VECTOR = [0.0123456789012345] * 256


async def test_c81_more_than_a_buffered_reply_can_have(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    data = [{"index": index, "embedding": VECTOR} for index in range(INPUTS)]
    usage = {"prompt_tokens": INPUTS, "total_tokens": INPUTS}
    deployment.upstreams.alpha.enqueue(Script.json(200, {"data": data, "usage": usage}))
    async with asyncio.timeout(PATIENCE_S):
        raw = await client.embeddings.with_raw_response.create(
            model="alpha/vec", input=["a"] * INPUTS, encoding_format="float"
        )
    reply = raw.parse()
    assert len(raw.content) > 10_000_000
    assert [each.index for each in reply.data] == list(range(INPUTS))
    assert reply.data[-1].embedding == VECTOR
    assert raw.headers["x-generation-id"].startswith("gen-")
    await deployment.assert_books_closed(workspace, INPUTS * 1_000)


async def test_c81_bedrock_is_allowed_and_billed_by_its_count(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    for _ in range(2):
        deployment.upstreams.bedrock.enqueue(
            Script.json(
                200, {"embedding": [0.25, 0.5, 0.75, 1]}, X_Amzn_Bedrock_Input_Token_Count="3"
            )
        )
    # The SDK requests base64 by itself, which Titan does not have.
    reply = await client.embeddings.create(model="bedrock/vec", input=["one two", "three"])
    assert [each.embedding for each in reply.data] == [[0.25, 0.5, 0.75, 1.0]] * 2
    assert reply.usage.total_tokens == 6
    await deployment.assert_books_closed(workspace, 6 * 3_000)


async def test_c41_c81_a_refusal_costs_nothing(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await client.embeddings.create(model="alpha/vec", input="a", dimensions=255)
    assert raised.value.param == "dimensions"
    await deployment.assert_books_closed(workspace, 0)
