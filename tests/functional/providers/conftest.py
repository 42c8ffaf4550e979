"""A scripted upstream, and a provider that points at it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.functional.providers.one_provider import OneProvider
from tests.upstream import FakeUpstream
from tollgate.providers.transports.http_pool import HttpPool


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


@pytest.fixture
def google_file(tmp_path: Path) -> Path:
    """The place of the environment's own Google credentials; nothing is there yet."""
    return tmp_path / "google.json"


@pytest.fixture
async def provider(upstream: FakeUpstream, google_file: Path) -> AsyncIterator[OneProvider]:
    pool = HttpPool()
    yield OneProvider(upstream.url, pool, google_file)
    await pool.close()
