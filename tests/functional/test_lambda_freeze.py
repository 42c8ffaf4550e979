"""Connections that died while the function was frozen, on the deployed path.

Keeps C62.
"""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.deployment import Deployment, deployed
from tests.stale import StaleRelay
from tests.upstream.speakers import OPENAI, SPEAKERS, Speaker
from tollgate.core.ids import without_prefix

pytestmark = pytest.mark.asyncio(loop_scope="session")
each_speaker = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)

COST = {"alpha": 9 * 1_000 + 3 * 2_000, "bedrock": 9 * 3_000 + 3 * 15_000}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def relay(ministack_url: str) -> AsyncIterator[StaleRelay]:
    async with StaleRelay(ministack_url.removeprefix("http://")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def frozen(
    relay: StaleRelay, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """A deployment whose way to DynamoDB is the relay."""
    async with deployed(relay.url, tmp_path_factory.mktemp("frozen")) as running:
        yield running


async def test_c62_a_hold_on_a_dead_socket_is_tried_again_under_a_new_id_only(
    frozen: Deployment, relay: StaleRelay
) -> None:
    workspace = await frozen.workspace()
    frozen.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hello"])))
    frozen.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hello"])))
    async with frozen.client(workspace.inference) as client:
        asked = {"model": OPENAI.model, "messages": [{"role": "user", "content": "Say it"}]}
        await client.chat.completions.create(**asked)  # type: ignore[call-overload]
        relay.lost.clear()
        relay.freeze()
        answer = await client.chat.completions.create(**asked)  # type: ignore[call-overload]
    assert answer.choices[0].message.content == "Hello"
    lost = {name for octets in relay.lost for name in re.findall(rb'"#h":"([^"]+)"', octets)}
    assert lost, "no hold was lost, so nothing was tested"
    assert without_prefix(answer.id).encode() not in lost
    await frozen.assert_books_closed(workspace, 2 * COST["alpha"])
    assert frozen.emulator.take_violations() == []


@each_speaker
async def test_a_dead_connection_to_a_provider_is_replaced_by_a_retry_of_the_record(
    frozen: Deployment, speaker: Speaker
) -> None:
    workspace = await frozen.workspace()
    upstream = frozen.upstreams.of(speaker)
    upstream.reset()
    words = speaker.text(["Hello"])
    upstream.enqueue(speaker.script(words))
    upstream.enqueue(speaker.script(words, before_headers="close"))
    upstream.enqueue(speaker.script(words))
    async with frozen.client(workspace.inference) as client:
        asked = {"model": speaker.model, "messages": [{"role": "user", "content": "Say it"}]}
        for _ in range(2):
            answer = await client.chat.completions.create(**asked)  # type: ignore[call-overload]
            assert answer.choices[0].message.content == "Hello"
    connections = [it.connection for it in upstream.received]
    assert connections[0] == connections[1] != connections[2]
    record = await frozen.record(workspace, answer.id)
    assert [attempt.error for attempt in record.attempts] == ["provider_unavailable", None]
    await frozen.assert_books_closed(workspace, 2 * COST[speaker.name])
