"""This tree's whole gateway over real tables, by a clock that only its caller moves."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.types import ASGIApp

from tests.asgi import Exchange, request
from tests.gateways import RecordedJournal
from tests.stores import REGION, HandClock
from tollgate.cli.server.reload import Reloaded
from tollgate.routing.file.compile import canonical_json, compile_catalog
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.wiring.administration import Administration, wire_administration
from tollgate.wiring.files import wire_files
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.item_versions import claim_store
from tollgate.wiring.stores import Stores, wire_stores
from tollgate.wiring.upkeep import Upkeep, wire_upkeep
from tollgate.wiring.whole import wire_whole_app

SIMULATOR: Final = Path(__file__).parents[2] / "infra" / "simulator.yaml"
OPERATOR: Final = "default"


@dataclass(frozen=True, kw_only=True)
class Release:
    """A running gateway."""

    app: ASGIApp
    clock: HandClock
    settings: Settings
    stores: Stores
    administration: Administration
    upkeep: Upkeep
    catalog: bytes

    async def ask(
        self,
        method: str,
        path: str,
        key: str,
        body: object = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Exchange:
        """Send a request with a key; its answer has that status."""
        sent = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        answer = await request(
            self.app, method, path, headers=sent | dict(headers or {}), body=content
        )
        assert answer.status == status, (method, path, answer.status, answer.body)
        return answer


@asynccontextmanager
async def running_release(
    url: str, names: Mapping[str, str], objects: Path, now_s: float
) -> AsyncIterator[Release]:
    """Run this tree over the named tables and a folder of objects."""
    clock = HandClock(now_s)
    settings = Settings(
        core_table=names["core"],
        ledger_table=names["ledger"],
        generations_table=names["generations"],
        dynamodb_endpoint_url=url,
        objects_folder=objects,
        operator_workspace=OPERATOR,
        aws_region=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    routing = compile_catalog(SIMULATOR, dev=True).routing
    routing = routing.model_copy(update={"attribution": {"case": "header:x-case"}})
    content = canonical_json(routing)
    catalog = Catalog.from_json(content)
    journal = RecordedJournal([])
    async with (
        aclosing(wire_stores(settings, clock, timeout_s=20.0)) as stores,
        aclosing(wire_upstream(settings, clock)) as upstream,
        aclosing(wire_upkeep(settings, stores, clock)) as upkeep,
    ):
        await stores.create_tables()
        await claim_store(stores)

        def gateway(served: Catalog) -> Any:
            return wire_gateway(stores, upstream, served, clock=clock, journal=journal)

        app = wire_whole_app(
            settings,
            stores,
            Reloaded(catalog, gateway),
            Reloaded(catalog, lambda served: served),
            upstream=upstream,
            files=wire_files(settings, stores, clock),
            clock=clock,
            journal=journal,
        )
        yield Release(
            app=app,
            clock=clock,
            settings=settings,
            stores=stores,
            administration=wire_administration(settings, stores, clock),
            upkeep=upkeep,
            catalog=content,
        )
