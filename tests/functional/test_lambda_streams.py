"""Streams through the deployed path, read by the official SDK."""

import asyncio

import pytest
from openai import AsyncOpenAI, OpenAI

from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.upstream import Script, converse_events, openai_chunks

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_smoke(deployment: Deployment, workspace: Workspace, client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="test/echo", messages=[{"role": "user", "content": "Hello you"}], stream=True
    )
    async for chunk in stream:
        print(chunk)
    deployment.upstreams.alpha.enqueue(Script(chunks=openai_chunks.text_stream()))
    print(await client.chat.completions.create(
        model="alpha/one", messages=[{"role": "user", "content": "Hello you"}]
    ))
    deployment.upstreams.bedrock.enqueue(Script(headers=converse_events.HEADERS, chunks=converse_events.text_stream()))
    print(await client.chat.completions.create(
        model="bedrock/one", messages=[{"role": "user", "content": "Hello you"}]
    ))
    print((await deployment.ask("GET", "/v1/credits", workspace.management)).json)
