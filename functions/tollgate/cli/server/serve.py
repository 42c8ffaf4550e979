"""`tollgate serve`: the gateway on any host, with the tables of a deployed stack."""

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import click
from starlette.types import ASGIApp

from tollgate.cli.server.batch_work import working_on_jobs
from tollgate.cli.server.connections import GuardedListener
from tollgate.cli.server.measured_app import MeasuredApp, MetricsAccess
from tollgate.cli.server.metrics import MeasuringJournal, ServerMetrics
from tollgate.cli.server.server import Server, address_text, listen_on, stop_on_signals
from tollgate.core.clock import SystemClock
from tollgate.core.documents.reading import DocumentReader, ReaderUnavailable
from tollgate.core.errors import LedgerError, NewerItems
from tollgate.core.ids import IdSource
from tollgate.engine.gateway import Gateway
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.sign_in.configuration import InvalidSignIn
from tollgate.wiring.aws import rotating_credentials
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.files import wire_files
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.item_versions import claim_store
from tollgate.wiring.jobs import wire_job_pollings
from tollgate.wiring.observation import add_request_hooks, wire_observation
from tollgate.wiring.stores import Stores, wire_stores
from tollgate.wiring.whole import open_confined_reader, wire_whole_app

# Python's defaults are 700, 10 and 10. A request of 60,000 messages makes a million objects.
_COLLECTION_THRESHOLDS: Final = (20_000, 5, 20)
# A small request takes about ten turns, and each turn waits this long while the side thread
# computes. Python's default is 5 ms.
_SWITCH_S: Final = 0.000_5


@click.command(epilog="Example: tollgate serve --host 0.0.0.0 --port 8080")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 picks one.",
)
@click.option(
    "--drain-s",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    help="Seconds that streams may run after SIGTERM.",
)
def serve(host: str, port: int, drain_s: int) -> None:
    """Serve the gateway with one process, which uses one core.

    Environment variables name the tables. To use more cores, run several containers or systemd
    units behind a reverse proxy, each on its own port; see docs/container.md.
    """
    configure_logging()
    with listen_on(host, port) as listener, _explain_failures():
        asyncio.run(_serve(Settings(), listener, drain_s))
    _tell("Stopped.")


async def _serve(settings: Settings, listener: GuardedListener, drain_s: int) -> None:
    """Serve until a signal arrives."""
    clock = SystemClock()
    reader, layers = await _open_reader(settings)
    async with _open_app(settings, clock, reader, drain_s) as app:
        _shorten_pauses()
        server = Server(app, listener, ids=IdSource(clock), drain_s=drain_s)
        with stop_on_signals(server):
            _announce(listener)
            _tell(f"Documents are read with {layers}.")
            await server.serve(sockets=[listener])
            await server.until_settled()


def _shorten_pauses() -> None:
    """Reduce how long requests wait while large requests of other callers are processed."""
    # A full collection stops all requests: 0.1 s for the objects created at the start, which are
    # never freed, and 10 ms for each 100,000 others.
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_S)


def _check_catalog(file: Path) -> None:
    """Raise ClickException unless the file is a catalog that this version can serve."""
    try:
        Catalog.from_json(file.read_bytes())
    except FileNotFoundError as missing:
        raise click.ClickException(
            f"There is no catalog at {file}: `tollgate compile` writes a catalog, and"
            " TOLLGATE_CATALOG_FILE has its path."
        ) from missing
    except (OSError, ValueError) as failure:
        raise click.ClickException(
            f"{file} is not a valid catalog: {failure}. `tollgate compile` writes a catalog."
        ) from failure


async def _claim_tables(settings: Settings, stores: Stores) -> None:
    """Raise ClickException if a newer release wrote the tables; ignore tables out of reach."""
    # A container's credentials are otherwise fetched with the first request.
    if (credentials := rotating_credentials(settings)) is not None:
        await credentials.renew()
    try:
        await claim_store(stores)
    except NewerItems as newer:
        raise click.ClickException(newer.message) from newer
    except LedgerError as failure:
        # The server starts anyway, and readiness fails until the tables are reachable.
        _tell(f"The version of the stored items is unknown: {failure.message}")


@asynccontextmanager
async def _open_app(
    settings: Settings, clock: SystemClock, reader: DocumentReader, drain_s: int
) -> AsyncIterator[ASGIApp]:
    """Yield the ASGI app, and close its connections at the end."""
    observation, metrics = wire_observation(settings, clock), ServerMetrics()
    journal = MeasuringJournal(observation.journal, metrics)
    stores, upstream = wire_stores(settings, clock), wire_upstream(settings, clock)
    _check_catalog(settings.catalog_file)
    await _claim_tables(settings, stores)

    def gateway(catalog: Catalog) -> Gateway:
        return wire_gateway(stores, upstream, catalog, clock=clock, journal=journal, reader=reader)

    published = stores.publications
    gateways = wire_catalog_follower(
        settings,
        published,
        gateway,
        as_candidate=Gateway.as_candidate,
        clock=clock,
        journal=journal,
    )
    catalogs = wire_catalog_follower(
        settings,
        published,
        lambda catalog: catalog,
        as_candidate=Catalog.as_candidate,
        clock=clock,
        journal=journal,
    )
    async with AsyncExitStack() as stack:
        for closed_last in (observation, stores, upstream):
            await stack.enter_async_context(aclosing(closed_last))
        files = wire_files(settings, stores, clock)
        if files is not None:
            await stack.enter_async_context(aclosing(files))
        jobs = wire_job_pollings(settings, stores, files, gateways, clock=clock, journal=journal)
        await stack.enter_async_context(working_on_jobs(jobs.each, drain_s))
        app = wire_whole_app(
            settings,
            stores,
            gateways,
            catalogs,
            upstream=upstream,
            files=files,
            jobs=jobs,
            clock=clock,
            journal=journal,
        )
        readers = MetricsAccess(token=settings.metrics_token, loopback=settings.metrics_loopback)
        yield MeasuredApp(add_request_hooks(app, settings, observation), metrics, readers)


async def _open_reader(settings: Settings) -> tuple[DocumentReader, str]:
    """Return the document reader and its confinement; raise ClickException if it cannot start."""
    try:
        return await open_confined_reader(settings)
    except ReaderUnavailable as failure:
        raise click.ClickException(
            "No process can read documents here. TOLLGATE_READER_USER needs a server that runs as"
            " root, and a user who exists and may run Python."
        ) from failure


@contextlib.contextmanager
def _explain_failures() -> Iterator[None]:
    """Raise ClickException if the sign-in file is invalid."""
    try:
        yield
    except InvalidSignIn as invalid:
        raise click.ClickException(f"The sign-in file cannot be served: {invalid}") from invalid


def _announce(listener: GuardedListener) -> None:
    name, number = listener.getsockname()[:2]
    _tell(f"Tollgate listens on {address_text(name, number)}.")


def _tell(line: str) -> None:
    # A full disk or a closed terminal must not stop the server.
    with contextlib.suppress(OSError):
        click.echo(line)
