"""Pictures through the deployed path, read by the official SDK.

Keeps C26, C33, C35, C82.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.pictures import png, png_text
from tests.upstream import Script

pytestmark = pytest.mark.asyncio(loop_scope="session")

# In base64 above the 6 MB that a buffered reply can have.
LARGE = b64encode(png(1_400, 1_200, level=0)).decode()
USED = {
    "input_tokens": 10,
    "input_tokens_details": {"text_tokens": 10, "image_tokens": 0},
    "output_tokens": 200,
    "total_tokens": 210,
}
COST = 10 * 5_000 + 200 * 30_000


def event(name: str, picture: str, **fields: Any) -> bytes:
    content = {"type": f"image_generation.{name}", "b64_json": picture, **fields}
    return b"data: %b\n\n" % json.dumps(content).encode()


async def test_c82_more_than_a_buffered_reply_can_have(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    assert len(LARGE) > 6_000_000
    body = {"created": 1, "data": [{"b64_json": LARGE}], "usage": USED}
    deployment.upstreams.alpha.enqueue(Script.json(200, body))
    async with asyncio.timeout(PATIENCE_S):
        reply = await client.images.generate(model="alpha/paint", prompt="two cats, asleep")
    assert reply.data is not None
    assert [each.b64_json for each in reply.data] == [LARGE]
    assert (reply.size, reply.output_format) == ("1400x1200", "png")
    assert reply.usage is not None
    assert reply.usage.output_tokens == 200
    await deployment.assert_books_closed(workspace, COST)


async def test_c35_c82_a_preview_leaves_before_the_picture_is_made(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    upstream = deployment.upstreams.alpha
    done = event("completed", LARGE, quality="low", usage=USED)
    preview = event("partial_image", png_text(), partial_image_index=0)
    upstream.enqueue(Script(chunks=[preview, done], lock_step=True))
    await upstream.release()
    async with asyncio.timeout(PATIENCE_S):
        stream = await client.images.generate(
            model="alpha/paint", prompt="two cats, asleep", stream=True, partial_images=1
        )
        events = aiter(stream)
        first = await anext(events)
        assert (first.type, first.b64_json) == ("image_generation.partial_image", png_text())
        await upstream.release()
        last = await anext(events)
    assert last.type == "image_generation.completed"
    assert (last.b64_json == LARGE, last.quality, last.usage.output_tokens) == (True, "low", 200)
    await deployment.assert_books_closed(workspace, COST)


async def test_c33_c82_a_stream_that_breaks_raises_and_costs_nothing(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    deployment.upstreams.alpha.enqueue(Script(chunks=[event("partial_image", png_text())]))
    stream = await client.images.generate(
        model="alpha/paint", prompt="two cats", stream=True, partial_images=1
    )
    with pytest.raises(openai.APIError, match="closed before the end"):
        [each async for each in stream]
    await deployment.assert_books_closed(workspace, 0)


async def test_c82_bedrock_is_allowed_and_billed_by_the_picture(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    for _ in range(2):
        answer = {"seeds": [1], "finish_reasons": [None], "images": [png_text()]}
        deployment.upstreams.bedrock.enqueue(Script.json(200, answer))
    reply = await client.images.generate(model="bedrock/paint", prompt="two cats", n=2)
    assert [each.b64_json for each in reply.data or ()] == [png_text()] * 2
    await deployment.assert_books_closed(workspace, 2 * 40_000_000)


async def test_c82_pictures_to_edit_cross_the_gateway_as_they_are(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    upstream = deployment.upstreams.alpha
    upstream.reset()
    used = {**USED, "input_tokens": 1_010}
    details = {"text_tokens": 10, "image_tokens": 1_000}
    body = {"data": [{"b64_json": png_text()}], "usage": {**used, "input_tokens_details": details}}
    upstream.enqueue(Script.json(200, body))
    cats = [("a.png", png(64, 64)), ("b.png", png(32, 32))]
    async with asyncio.timeout(PATIENCE_S):
        reply = await client.images.edit(
            model="alpha/paint", prompt="two cats, asleep", image=cats, quality="low"
        )
    assert [each.b64_json for each in reply.data or ()] == [png_text()]
    (received,) = upstream.received
    assert received.path == "/v1/images/edits"
    assert received.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert png(64, 64) in received.body
    assert png(32, 32) in received.body
    await deployment.assert_books_closed(workspace, COST + 1_000 * 8_000)
