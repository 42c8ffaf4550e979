"""Many streams in one environment, through the deployed path, as on Lambda Managed Instances.

Keeps C34, C35, C36, C64.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from openai import APIConnectionError, APIError, AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

from tests.deployment import PATIENCE_S, Deployment, deployed
from tests.upstream.speakers import OPENAI
from tollgate.engine.generate import SETTLE_BUDGET_S

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = ["Hello", " world"]
# The first word, and all the rest.
HALVES = [b"".join(OPENAI.text(WORDS)[:2]), b"".join(OPENAI.text(WORDS)[2:])]
ASKED = {"model": OPENAI.model, "messages": [{"role": "user", "content": "Say it"}]}
COST = 9 * 1_000 + 3 * 2_000
# The default of ManagedConcurrency in infra/template.yaml.
IN_FLIGHT = 16
# Of an invocation, what is left of it once settling has its share.
GENERATING_S = 1.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(
    ministack_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """A deployment whose only environment runs so many invocations at once."""
    directory = tmp_path_factory.mktemp("busy")
    async with deployed(ministack_url, directory, in_flight_max=IN_FLIGHT) as running:
        yield running


async def begun(client: AsyncOpenAI) -> AsyncStream[ChatCompletionChunk]:
    """A stream whose first word was read."""
    stream: AsyncStream[ChatCompletionChunk]
    stream = await client.chat.completions.create(**ASKED, stream=True)  # type: ignore[call-overload]
    assert await next_word(stream) == WORDS[0]
    return stream


async def next_word(stream: AsyncStream[ChatCompletionChunk]) -> str:
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            return chunk.choices[0].delta.content
    return ""


async def all_begun(
    busy: Deployment, client: AsyncOpenAI, count: int
) -> list[AsyncStream[ChatCompletionChunk]]:
    """So many streams, each at its first word and no further."""
    upstream = busy.upstreams.alpha
    upstream.reset()
    upstream.enqueue(*[OPENAI.script(HALVES, lock_step=True)] * count)
    asking = [asyncio.create_task(begun(client)) for _ in range(count)]
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(count):
            await upstream.requested()
        await let_go(busy, count)
        return await asyncio.gather(*asking)


async def let_go(busy: Deployment, count: int) -> None:
    """Let each of so many streams have its next half."""
    for _ in range(50):
        await asyncio.sleep(0)
    for _ in range(count):
        await busy.upstreams.alpha.release()


async def test_c35_c36_all_stream_in_lock_step_and_one_that_leaves_is_settled(
    busy: Deployment,
) -> None:
    workspace, count = await busy.workspace(), IN_FLIGHT
    async with busy.client(workspace.inference) as client:
        leaves, *stay = await all_begun(busy, client, count)
        await leaves.close()
        await let_go(busy, count)
        async with asyncio.timeout(PATIENCE_S):
            assert await asyncio.gather(*map(next_word, stay)) == [WORDS[1]] * (count - 1)
            assert await asyncio.gather(*map(next_word, stay)) == [""] * (count - 1)
            for invocation in busy.chat.invocations[-count:]:
                await invocation.finished.wait()
    await busy.assert_books_closed(workspace, count * COST)
    assert busy.chat.environments_started == 1
    assert busy.emulator.take_violations() == []


async def test_c34_one_that_reaches_its_deadline_ends_alone(busy: Deployment) -> None:
    workspace = await busy.workspace()
    async with busy.client(workspace.inference) as client:
        busy.upstreams.alpha.enqueue(OPENAI.script(HALVES[:1], end="hang"))
        busy.chat.timeout_once(SETTLE_BUDGET_S + GENERATING_S)
        hung = await begun(client)
        others = await all_begun(busy, client, 3)
        with pytest.raises(APIError, match="time"):
            await next_word(hung)
        await let_go(busy, 3)
        assert [await next_word(stream) for stream in others] == [WORDS[1]] * 3
        assert [await next_word(stream) for stream in others] == [""] * 3
    assert await busy.holds(workspace) == {}
    assert busy.chat.environments_started == 1
    assert busy.emulator.take_violations() == []


async def test_c64_a_crash_cuts_all_and_leaves_a_hold_of_each(busy: Deployment) -> None:
    workspace, count = await busy.workspace(), IN_FLIGHT
    async with busy.client(workspace.inference) as client:
        streams = await all_begun(busy, client, count)
        await busy.chat.kill()
        for stream in streams:
            with pytest.raises((APIConnectionError, APIError, OSError)):
                await next_word(stream)
        assert len(await busy.holds(workspace)) == count
        busy.upstreams.alpha.reset()
        busy.upstreams.alpha.enqueue(OPENAI.script(HALVES))
        answer = await client.chat.completions.create(**ASKED)  # type: ignore[call-overload]
        assert answer.choices[0].message.content == "Hello world"
    assert busy.emulator.take_violations() == []
