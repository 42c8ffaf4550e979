"""`tollgate serve`: the gateway over a deployed stack's tables, on any host."""

import asyncio
import contextlib
from collections.abc import Iterator

import click

from tollgate.cli.server.connections import GuardedListener
from tollgate.cli.server.served_app import open_app
from tollgate.cli.server.server import Server, address_text, listen_on, stop_on_signals
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.sign_in.configuration import InvalidSignIn


@click.command()
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
    help="Seconds that streams may still run after SIGTERM.",
)
def serve(host: str, port: int, drain_s: int) -> None:
    """Serve the gateway by one process, which uses one core.

    The environment names the tables. For more cores, run several containers or systemd units behind
    the reverse proxy, each on its own port: docs/container.md.
    """
    configure_logging()
    with listen_on(host, port) as listener, _explain_failures():
        asyncio.run(_serve(Settings(), listener, drain_s))
    _tell("Stopped.")


async def _serve(settings: Settings, listener: GuardedListener, drain_s: int) -> None:
    """Serve until a signal."""
    clock = SystemClock()
    async with open_app(settings, clock) as app:
        server = Server(app, listener, ids=IdSource(clock), drain_s=drain_s)
        with stop_on_signals(server):
            _announce(listener)
            await server.serve(sockets=[listener])
            await server.until_settled()


@contextlib.contextmanager
def _explain_failures() -> Iterator[None]:
    """Raise ClickException with the reason if the gateway cannot be served."""
    try:
        yield
    except InvalidSignIn as invalid:
        raise click.ClickException(f"The sign-in file cannot be served: {invalid}") from invalid


def _announce(listener: GuardedListener) -> None:
    name, number = listener.getsockname()[:2]
    _tell(f"Tollgate listens on {address_text(name, number)}.")


def _tell(line: str) -> None:
    # A full disk for logs, or a closed terminal, must not stop the server.
    with contextlib.suppress(OSError):
        click.echo(line)
