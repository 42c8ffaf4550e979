"""One deployment for all tests that do it no harm, a workspace of its own for each of them."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from tests.deployment import Deployment, Workspace, deployed
from tests.functional.command_line import start
from tests.local_server import LocalServer
from tests.ministack import ministack_url
from tests.upstream import FakeUpstream
from tollgate.providers.transports.http_pool import HttpPool

__all__ = ["ministack_url"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def deployment(
    ministack_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """The functions as they are deployed, with patient timeouts."""
    async with deployed(ministack_url, tmp_path_factory.mktemp("deployment")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def workspace(deployment: Deployment) -> AsyncIterator[Workspace]:
    """Credit and keys; afterwards no hold may be left, no script unplayed, no rule broken."""
    for upstream in deployment.upstreams.each:
        upstream.reset()
    made = await deployment.workspace()
    yield made
    assert await deployment.holds(made) == {}
    assert [upstream.unplayed for upstream in deployment.upstreams.each] == [0] * 4
    assert deployment.emulator.take_violations() == []
    assert deployment.proxy.take_refusals() == []


@pytest_asyncio.fixture(loop_scope="session")
async def client(deployment: Deployment, workspace: Workspace) -> AsyncIterator[AsyncOpenAI]:
    """The official SDK with the workspace's inference key."""
    async with deployment.client(workspace.inference) as sdk:
        yield sdk


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


@pytest.fixture
async def pool() -> AsyncIterator[HttpPool]:
    pool = HttpPool()
    yield pool
    await pool.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Start one gateway for the modules of the command line that share it."""
    yield from start(tmp_path_factory)
