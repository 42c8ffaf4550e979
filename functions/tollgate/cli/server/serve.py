"""`tollgate serve`: the gateway over a deployed stack's tables, on any host."""

import asyncio
import socket
from contextlib import AsyncExitStack, aclosing

import click

from tollgate.cli.server.measured_app import MeasuredApp, MetricsAccess
from tollgate.cli.server.metrics import MeasuringJournal, ServerMetrics
from tollgate.cli.server.server import Server, listen_on, stop_on_signals
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.engine.gateway import Gateway
from tollgate.login.configuration import InvalidSignIn
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.files import wire_files
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.local_reader import wire_local_reader
from tollgate.wiring.observation import add_request_hooks, wire_observation
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.whole import wire_whole_app


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="Port to listen on; 0 picks one.")
@click.option(
    "--drain-s",
    default=100,
    show_default=True,
    help="Seconds that streams have to end after SIGTERM.",
)
def serve(host: str, port: int, drain_s: int) -> None:
    """Serve the gateway.

    The environment names the tables, see docs/container.md.
    """
    configure_logging()
    with listen_on(host, port) as listener:
        try:
            asyncio.run(_serve(Settings(), listener, drain_s))
        except FileNotFoundError as missing:
            raise click.ClickException(
                f"There is no {missing.filename}: `tollgate compile` writes it,"
                " and TOLLGATE_CATALOG_FILE says where it is."
            ) from missing
        except InvalidSignIn as invalid:
            raise click.ClickException(f"The sign-in file cannot be served: {invalid}") from invalid


async def _serve(settings: Settings, listener: socket.socket, drain_s: int) -> None:
    clock = SystemClock()
    observation, metrics = wire_observation(settings, clock), ServerMetrics()
    journal = MeasuringJournal(observation.journal, metrics)
    stores, upstream = wire_stores(settings, clock), wire_upstream(settings, clock)
    # An operator's file may be of another version; one that this code has built is not read whole.
    Catalog.from_json(settings.catalog_file.read_bytes())

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
        app = MeasuredApp(add_request_hooks(app, settings, observation), metrics, readers)
        server = Server(app, ids=IdSource(clock), drain_s=drain_s)
        with stop_on_signals(server):
            name, number = listener.getsockname()[:2]
            click.echo(f"Tollgate listens on {name}:{number}.")
            await server.serve(sockets=[listener])
            await server.until_settled()
    click.echo("Stopped.")
