"""Endpoints that speak AWS, and stores over each of them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.buckets import create_bucket
from tests.dynamodb_local import dynamodb_local_url
from tests.ministack import ministack_url
from tests.moto_server import running_moto
from tests.sdk_caller import sdk_caller
from tests.stores import (
    REGION,
    DynamoStores,
    GrammarChecked,
    HandClock,
    MemoryStores,
    aws_client,
    dynamo_stores,
    fresh_tables,
    memory_stores,
)
from tollgate.aws.objects import FolderObjects, ObjectStore, S3Objects
from tollgate.aws.sigv4 import Credentials, Signer

__all__ = ["dynamodb_local_url", "ministack_url"]


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """moto's server: any AWS service, one request at a time."""
    with running_moto() as url:
        yield url


# What a second engine or client says of the same calls is heard each night.
MOTO, AIOBOTO3 = (pytest.param(name, marks=pytest.mark.nightly) for name in ("moto", "aioboto3"))


@pytest.fixture(params=["ministack", "dynamodb_local"])
def honest_url(request: pytest.FixtureRequest) -> str:
    """Each engine on which a race shows: they answer side by side, which our moto does not."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@asynccontextmanager
async def stores_at(endpoint_url: str) -> AsyncIterator[DynamoStores]:
    """Stores with tables of their own; every expression is parsed on its way."""
    clock = HandClock()
    # A busy machine is no fault of a store.
    client = aws_client(endpoint_url, clock=clock, timeout_s=10.0)
    checked = GrammarChecked(client)
    yield dynamo_stores(checked, await fresh_tables(checked), clock)
    await client.close()


@pytest.fixture(params=["ministack", MOTO])
async def dynamo(request: pytest.FixtureRequest) -> AsyncIterator[DynamoStores]:
    """Stores on each engine, for one call at a time."""
    async with stores_at(request.getfixturevalue(f"{request.param}_url")) as stores:
        yield stores


@pytest.fixture
async def honest(honest_url: str) -> AsyncIterator[DynamoStores]:
    """Stores for races."""
    async with stores_at(honest_url) as stores:
        yield stores


@pytest.fixture(params=["memory", "ministack", MOTO, AIOBOTO3])
async def stores(
    request: pytest.FixtureRequest,
) -> AsyncIterator[MemoryStores | DynamoStores]:
    """The same stores on everything they run on, and through AWS's own SDK."""
    if request.param == "memory":
        yield memory_stores()
        return
    if request.param == "aioboto3":
        clock = HandClock()
        async with sdk_caller(request.getfixturevalue("ministack_url"), REGION) as client:
            yield dynamo_stores(client, await fresh_tables(client), clock)
        return
    async with stores_at(request.getfixturevalue(f"{request.param}_url")) as stores:
        yield stores


@pytest.fixture(params=["s3", "folder"])
async def objects(
    request: pytest.FixtureRequest, moto_url: str, tmp_path: Path
) -> AsyncIterator[ObjectStore]:
    """Whole objects, in S3 and in a folder."""
    if request.param == "folder":
        yield FolderObjects(tmp_path)
        return
    create_bucket(moto_url, "objects")
    signer = Signer("s3", REGION, lambda: Credentials("test", "test"), HandClock())
    store = S3Objects("objects", REGION, signer, endpoint_url=moto_url)
    yield store
    await store.close()
