"""A provider that reads a request and dies is sent nothing that the generation's record lacks.

Keeps C50.
"""

import random

import pytest
from msgspec.structs import replace

from tests.functional.providers.one_provider import CHAT, OneProvider, script
from tests.gateways import RecordedReply, house
from tests.upstream import FakeUpstream
from tollgate.core.principal import Principal
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import Provider
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.stores.ports.administration import NewKey

CALLS = 60
DEATHS = 0.1


class Everyone:
    """The same provider for every row."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def provider(self, slug: str, principal: Principal) -> Provider:
        return self._provider


async def read_and_recorded(retries_max: int, calls: int = CALLS) -> tuple[int, int]:
    """The requests that a provider read, and the attempts that were recorded, of some calls.

    The provider dies after the requests that a seed draws, on connections that were kept or not.
    """
    draw, pool = random.Random(7), HttpPool()
    retry = {"retries_max": retries_max, "backoff_min_s": 0.001, "backoff_max_s": 0.002}
    key = NewKey(workspace_id="acme", label="busy", requests_per_minute=60_000, burst=10_000)
    home = await house(defaults={"retry": retry}, key=key)
    async with FakeUpstream() as upstream:
        provider = OneProvider(upstream.url, pool).provider(CHAT)
        gateway = replace(home.gateway, providers=Everyone(provider))
        upstream.enqueue(
            *(
                script(CHAT, before_headers="close" if draw.random() < DEATHS else "answer")
                for _ in range(8 * calls)
            )
        )
        for _ in range(calls):
            call = home.call("acme/small")
            await generate(gateway, call, home.sink(call, RecordedReply()))
        records = home.stores.books.records.values()
        read = len(upstream.received)
    await pool.close()
    return read, sum(len(record.attempts) for record in records)


@pytest.mark.parametrize("retries_max", [0, 2])
async def test_c50_every_request_that_a_provider_read_is_an_attempt_of_a_record(
    retries_max: int,
) -> None:
    read, recorded = await read_and_recorded(retries_max)
    assert read == recorded
    assert read >= CALLS
