"""A scripted upstream, and a provider that points at it."""

from collections.abc import AsyncIterator

import pytest

from tests.functional.providers.one_provider import OneProvider
from tests.upstream import FakeUpstream
from tollgate.providers.transports.http_pool import HttpPool


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


@pytest.fixture
async def provider(upstream: FakeUpstream) -> AsyncIterator[OneProvider]:
    pool = HttpPool()
    yield OneProvider(upstream.url, pool)
    await pool.close()
