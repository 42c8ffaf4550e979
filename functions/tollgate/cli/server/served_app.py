"""The whole gateway as the app of a server process, over a deployed stack's tables."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import click
from starlette.types import ASGIApp

from tollgate.cli.server.measured_app import MeasuredApp, MetricsAccess
from tollgate.cli.server.metrics import MeasuringJournal, ServerMetrics
from tollgate.core.clock import SystemClock
from tollgate.engine.gateway import Gateway
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.files import wire_files
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.observation import add_request_hooks, wire_observation
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.whole import wire_local_reader, wire_whole_app


def _check_catalog(file: Path) -> None:
    """Raise ClickException unless the file is a catalog that can be served.

    An operator's file may come from another version; a file built by this version is not read in
    full.
    """
    try:
        Catalog.from_json(file.read_bytes())
    except FileNotFoundError as missing:
        raise click.ClickException(
            f"There is no {file}: `tollgate compile` writes it,"
            " and TOLLGATE_CATALOG_FILE says where it is."
        ) from missing
    except (OSError, ValueError) as failure:
        raise click.ClickException(
            f"{file} is not a catalog that can be served: {failure}. `tollgate compile` writes one."
        ) from failure


@asynccontextmanager
async def open_app(settings: Settings, clock: SystemClock) -> AsyncIterator[ASGIApp]:
    """Yield the app; close what it has opened afterwards."""
    observation, metrics = wire_observation(settings, clock), ServerMetrics()
    journal = MeasuringJournal(observation.journal, metrics)
    stores, upstream = wire_stores(settings, clock), wire_upstream(settings, clock)
    _check_catalog(settings.catalog_file)

    reader = wire_local_reader()

    def gateway(catalog: Catalog) -> Gateway:
        return wire_gateway(stores, upstream, catalog, clock=clock, journal=journal, reader=reader)

    published = stores.publications
    gateways = wire_catalog_follower(settings, published, gateway, clock=clock, journal=journal)
    catalogs = wire_catalog_follower(
        settings, published, lambda catalog: catalog, clock=clock, journal=journal
    )
    async with AsyncExitStack() as stack:
        for closed_last in (observation, stores, upstream):
            await stack.enter_async_context(aclosing(closed_last))
        files = wire_files(settings, stores, clock)
        if files is not None:
            await stack.enter_async_context(aclosing(files))
        app = wire_whole_app(
            settings, stores, gateways, catalogs, files=files, clock=clock, journal=journal
        )
        readers = MetricsAccess(token=settings.metrics_token, loopback=settings.metrics_loopback)
        yield MeasuredApp(add_request_hooks(app, settings, observation), metrics, readers)
