"""Endpoints that speak AWS, and stores over each of them."""

from collections.abc import AsyncIterator, Iterator

import pytest
from moto.server import ThreadedMotoServer

from tests.dynamodb_local import dynamodb_local_url
from tests.ministack import ministack_url
from tests.stores import (
    DynamoStores,
    GrammarChecked,
    HandClock,
    MemoryStores,
    aws_client,
    dynamo_stores,
    fresh_tables,
    memory_stores,
)

__all__ = ["dynamodb_local_url", "ministack_url"]


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """moto's server: any AWS service, but no honest races."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["ministack", "dynamodb_local"])
def honest_url(request: pytest.FixtureRequest) -> str:
    """Each engine on which a race shows: requests of both are atomic, as moto's are not."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def dynamo(ministack_url: str) -> AsyncIterator[DynamoStores]:
    """Stores on ministack, with tables of their own; every expression is parsed on its way."""
    clock = HandClock()
    client = aws_client(ministack_url, clock=clock)
    checked = GrammarChecked(client)
    yield dynamo_stores(checked, await fresh_tables(checked), clock)
    await client.close()


@pytest.fixture(params=["memory", "ministack", "moto"])
async def stores(
    request: pytest.FixtureRequest,
) -> AsyncIterator[MemoryStores | DynamoStores]:
    """The same stores on everything they run on."""
    if request.param == "memory":
        yield memory_stores()
        return
    clock = HandClock()
    client = aws_client(request.getfixturevalue(f"{request.param}_url"), clock=clock)
    checked = GrammarChecked(client)
    yield dynamo_stores(checked, await fresh_tables(checked), clock)
    await client.close()
