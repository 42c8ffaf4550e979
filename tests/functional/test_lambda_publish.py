"""Publishing while requests run: the real function in three environments behind the emulator.

Keeps C54, C66.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio

from tests.deployed_functions import CHAT_ROUTES
from tests.deployment import (
    PATIENCE_S,
    Deployment,
    Workspace,
    deployed,
)
from tests.stores import an_entry
from tollgate.core.clock import SystemClock
from tollgate.core.records.generation import total_nano_usd
from tollgate.core.routing.publication import Publications, Signature, publish_to_all
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.price import bill
from tollgate.routing.routing_file import Routing
from tollgate.wiring.stores import wire_stores

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT_URL = CHAT_ROUTES[0].removeprefix("POST ")
MODEL = "test/echo"
ENVIRONMENTS = 3


class Load:
    """Requests one after another, from as many clients as there are environments."""

    def __init__(self, deployment: Deployment, workspace: Workspace) -> None:
        self._deployment = deployment
        self._headers = {
            "authorization": f"Bearer {workspace.inference.secret}",
            "x-tollgate-metadata": "enabled",
        }
        self._is_over = False
        self._answered = asyncio.Condition()
        self.answers: list[tuple[str, str]] = []

    async def run(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(ENVIRONMENTS)))

    async def served_everywhere(self, sha: str) -> None:
        """Wait until it has served for so many answers that it is in every environment."""
        wanted = [sha] * 5 * ENVIRONMENTS
        async with asyncio.timeout(PATIENCE_S), self._answered:
            await self._answered.wait_for(
                lambda: [served for _, served in self.answers[-len(wanted) :]] == wanted
            )

    def end(self) -> None:
        self._is_over = True

    async def _client(self) -> None:
        url = f"{self._deployment.emulator.url}{CHAT_URL}"
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]}
        while not self._is_over:
            post = self._deployment.http.post(url, headers=self._headers, json=body)
            async with post as response:
                said = await response.json()
            assert response.status == 200, said
            async with self._answered:
                self.answers.append((said["id"], said["tollgate_metadata"]["catalog_sha"]))
                self._answered.notify_all()


@pytest_asyncio.fixture(loop_scope="session")
async def deployment(ministack_url: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    """Functions that find published catalogs in a folder; chat has three environments."""
    objects = {"TOLLGATE_OBJECTS_FOLDER": str(tmp_path / "objects")}
    async with deployed(ministack_url, tmp_path, chat_environment=objects) as running:
        running.chat.concurrency = ENVIRONMENTS
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def publications(deployment: Deployment, tmp_path: Path) -> AsyncIterator[Publications]:
    settings = deployment.settings.model_copy(update={"objects_folder": tmp_path / "objects"})
    async with aclosing(wire_stores(settings, SystemClock())) as stores:
        yield stores.publications


def priced(content: bytes, output_usd: int) -> bytes:
    """A catalog with another price of the model, compiled."""
    routing = Routing.model_validate_json(content, strict=True)
    model = routing.models[MODEL]
    [offer] = model.endpoints
    price = offer.price.model_copy(update={"output": Decimal(output_usd)})
    offers = (offer.model_copy(update={"price": price}),)
    models = routing.models | {MODEL: model.model_copy(update={"endpoints": offers})}
    return canonical_json(routing.model_copy(update={"models": models}))


@pytest.mark.nightly
async def test_c54_c66_every_environment_follows_and_every_record_is_priced_by_its_catalog(
    deployment: Deployment, publications: Publications
) -> None:
    bundled = deployment.settings.catalog_file.read_bytes()
    contents = (bundled, priced(bundled, 5), priced(bundled, 7))
    catalogs = [Catalog.from_json(content) for content in contents]
    workspace = await deployment.workspace()
    load = Load(deployment, workspace)
    async with asyncio.TaskGroup() as group:
        group.create_task(load.run())
        await load.served_everywhere(catalogs[0].sha)
        last = None
        for content in (*contents[1:], contents[1]):
            sha = await publications.keep(content)
            signature = Signature(by="test", at_s=int(SystemClock().now_s()))
            last = publish_to_all(last, sha, signature)
            await publications.move(last, an_entry())
            await load.served_everywhere(sha)
        load.end()

    assert deployment.chat.environments_started == ENVIRONMENTS
    by_sha = {catalog.sha: catalog for catalog in catalogs}
    assert {served for _, served in load.answers} == by_sha.keys()
    for generation_id, served in load.answers:
        record = await deployment.record(workspace, generation_id)
        assert record.catalog_sha == served
        price = by_sha[served].models[MODEL].endpoints[0].price.price
        assert record.cost_nano_usd == total_nano_usd(bill(record.usage, price)) > 0
