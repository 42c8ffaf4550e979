"""`tollgate serve`: the gateway over a deployed stack's tables, on any host."""

import asyncio
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tollgate.cli.server.served_app import open_app
from tollgate.cli.server.server import Server, listen_on, stop_on_signals
from tollgate.cli.server.several import serve_with
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.login.configuration import InvalidSignIn
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings, share_metrics


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="Port to listen on; 0 picks one.")
@click.option(
    "--drain-s",
    default=100,
    show_default=True,
    help="Seconds that streams have to end after SIGTERM.",
)
@click.option(
    "--processes",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processes that serve the port, one for each core.",
)
def serve(host: str, port: int, drain_s: int, processes: int) -> None:
    """Serve the gateway.

    The environment names the tables, see docs/container.md.
    """
    configure_logging()
    with listen_on(host, port) as listener:
        try:
            if processes == 1:
                asyncio.run(_serve(Settings(), listener, drain_s))
            else:
                _serve_several(Settings(), listener, drain_s=drain_s, processes=processes)
        except FileNotFoundError as missing:
            raise click.ClickException(
                f"There is no {missing.filename}: `tollgate compile` writes it,"
                " and TOLLGATE_CATALOG_FILE says where it is."
            ) from missing
        except InvalidSignIn as invalid:
            raise click.ClickException(f"The sign-in file cannot be served: {invalid}") from invalid


async def _serve(settings: Settings, listener: socket.socket, drain_s: int) -> None:
    clock = SystemClock()
    async with open_app(settings, clock) as app:
        server = Server(app, ids=IdSource(clock), drain_s=drain_s)
        with stop_on_signals(server):
            name, number = listener.getsockname()[:2]
            click.echo(f"Tollgate listens on {name}:{number}.")
            await server.serve(sockets=[listener])
            await server.until_settled()
    click.echo("Stopped.")


def _serve_several(
    settings: Settings, listener: socket.socket, *, drain_s: int, processes: int
) -> None:
    # A catalog that no process can serve is reported once, before any starts.
    Catalog.from_json(settings.catalog_file.read_bytes())
    with TemporaryDirectory(prefix="tollgate-metrics-") as folder:
        share_metrics(Path(folder))
        name, number = listener.getsockname()[:2]
        click.echo(f"Tollgate listens with {processes} processes on {name}:{number}.")
        serve_with(processes, listener, drain_s=drain_s)
    click.echo("Stopped.")
