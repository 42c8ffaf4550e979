"""Speech through the deployed path, read by the official SDK.

Keeps C33, C35, C66, C82.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from decimal import Decimal

import openai
import pytest
from openai import AsyncOpenAI

from tests.chat_stream import exact
from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.upstream import Script
from tests.upstream.server import End

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "Each chunk comes by itself."
# Every byte there is: nothing on the way may take sound for text.
CHUNKS = [bytes(range(256)), b"\xff\xf3\x14\xc0" * 100, b"data: [DONE]\n\n", b"\x00" * 5_000]
COST = len(TEXT) * 10_000
BY_TOKENS = 9 * 1_000 + 30 * 12_000


def sound(*, lock_step: bool = False, end: End = "clean") -> Script:
    return Script(
        headers={"content-type": "audio/mpeg"}, chunks=CHUNKS, lock_step=lock_step, end=end
    )


def in_events(*, lock_step: bool = False) -> Script:
    events = [
        {"type": "speech.audio.delta", "audio": b64encode(chunk).decode()} for chunk in CHUNKS
    ]
    usage = {"input_tokens": 9, "output_tokens": 30, "total_tokens": 39}
    frames = [*events, {"type": "speech.audio.done", "usage": usage}]
    return Script(
        chunks=[b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames],
        lock_step=lock_step,
    )


@pytest.mark.parametrize("model", ["alpha/voice", "alpha/voice-by-tokens"])
async def test_c35_c82_the_next_chunk_leaves_only_when_the_client_has_read_this_one(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, model: str
) -> None:
    upstream = deployment.upstreams.alpha
    by_tokens = model.endswith("tokens")
    upstream.enqueue(in_events(lock_step=True) if by_tokens else sound(lock_step=True))
    asking = client.audio.speech.with_streaming_response.create(
        model=model, input=TEXT, voice="alloy"
    )
    await upstream.release()
    async with asyncio.timeout(PATIENCE_S), asking as reply:
        assert reply.headers["content-type"] == "audio/mpeg"
        pieces = reply.iter_bytes()
        for number, chunk in enumerate(CHUNKS, start=1):
            received = b""
            while len(received) < len(chunk):
                received += await anext(pieces)
            assert received == chunk
            if number < len(CHUNKS) or by_tokens:
                await upstream.release()
        assert [piece async for piece in pieces] == []
        generation_id = reply.headers["x-generation-id"]
    cost = BY_TOKENS if by_tokens else COST
    answer = await deployment.ask("GET", f"/v1/generation?id={generation_id}", workspace.inference)
    told = exact(answer.body)["data"]
    assert (told["status"], told["usage_source"]) == ("ok", "provider")
    assert told["total_cost"] == Decimal(cost).scaleb(-9)
    await deployment.assert_books_closed(workspace, cost)


async def test_c35_c82_events_leave_one_by_one_too(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    upstream = deployment.upstreams.alpha
    upstream.enqueue(sound(lock_step=True))
    asking = client.audio.speech.with_streaming_response.create(
        model="alpha/voice", input=TEXT, voice="alloy", stream_format="sse"
    )
    await upstream.release()
    async with asyncio.timeout(PATIENCE_S), asking as reply:
        lines = (line async for line in reply.iter_lines() if line)
        for number, chunk in enumerate(CHUNKS, start=1):
            event = json.loads((await anext(lines)).removeprefix("data: "))
            assert event == {"type": "speech.audio.delta", "audio": b64encode(chunk).decode()}
            if number < len(CHUNKS):
                await upstream.release()
        last = json.loads((await anext(lines)).removeprefix("data: "))
    assert last["type"] == "speech.audio.done"
    assert last["usage"]["characters"] == len(TEXT)
    await deployment.assert_books_closed(workspace, COST)


async def test_c33_c82_sound_that_breaks_ends_with_the_error_trailers_and_costs_nothing(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    deployment.upstreams.alpha.enqueue(sound(end="close"))
    reply = await client.audio.speech.with_raw_response.create(
        model="alpha/voice", input=TEXT, voice="alloy"
    )
    invocation = deployment.chat.invocations[-1]
    await invocation.finished.wait()
    assert invocation.error == "Function.IncompleteResponse"
    told = await deployment.ask(
        "GET", f"/v1/generation?id={reply.headers['x-generation-id']}", workspace.inference
    )
    assert exact(told.body)["data"]["status"] == "error"
    await deployment.assert_books_closed(workspace, 0)


async def test_c41_c82_a_refusal_costs_nothing(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await client.audio.speech.create(model="alpha/voice", input="a" * 4_097, voice="alloy")
    assert raised.value.param == "input"
    await deployment.assert_books_closed(workspace, 0)
