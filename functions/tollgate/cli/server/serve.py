"""`tollgate serve`: the gateway over a deployed stack's tables, on any host."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

import click

from tollgate.cli.server.heartbeat import beat
from tollgate.cli.server.served_app import check_catalog, open_app
from tollgate.cli.server.server import Server, address_text, listen_on, stop_on_signals
from tollgate.cli.server.shared_counts import add_ended, open_shared_counts
from tollgate.cli.server.supervisor import Patience, Supervisor
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.engine.generate import SETTLE_BUDGET_S
from tollgate.login.configuration import InvalidSignIn
from tollgate.observability.log import configure_logging
from tollgate.settings import Settings, share_metrics

# After the last request has settled.
_CLOSES_WITHIN_S: Final = 5.0


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
    with listen_on(host, port) as listener, _explain_failures():
        if processes == 1:
            asyncio.run(_serve(Settings(), listener, drain_s))
        else:
            _serve_several(Settings(), listener, drain_s=drain_s, processes=processes)
    _tell("Stopped.")


async def _serve(
    settings: Settings, listener: socket.socket, drain_s: int, heart: Connection | None = None
) -> None:
    """Serve until a signal; a supervisor watches `heart`."""
    clock = SystemClock()
    async with open_app(settings, clock) as app:
        server = Server(app, ids=IdSource(clock), drain_s=drain_s)
        with contextlib.ExitStack() as stack:
            if heart is None:
                stack.enter_context(stop_on_signals(server))
                _announce(listener)
            else:
                # What a terminal sends to all that it has started is the supervisor's.
                stack.enter_context(stop_on_signals(server, (signal.SIGTERM,)))
                stack.enter_context(beat(heart, server.stop))
            await server.serve(sockets=[listener])
            await server.until_settled()


def _serve_several(
    settings: Settings, listener: socket.socket, *, drain_s: int, processes: int
) -> None:
    # A catalog that no process can serve is reported once, before any starts.
    check_catalog(settings.catalog_file)
    patience = Patience(ends_s=drain_s + SETTLE_BUDGET_S + _CLOSES_WITHIN_S)
    with open_shared_counts() as folder:
        share_metrics(folder)
        supervisor = Supervisor(
            partial(_serve_as_one, drain_s), listener, patience, partial(add_ended, folder)
        )
        announce = partial(_announce, listener, processes)
        if not asyncio.run(supervisor.run(processes, announce)):
            raise click.ClickException("No process can serve; the lines above say why.")


def _serve_as_one(drain_s: int, listener: socket.socket, heart: Connection) -> None:
    """Serve as one of several processes."""
    configure_logging()
    try:
        with _explain_failures():
            asyncio.run(_serve(Settings(), listener, drain_s, heart))
    except click.ClickException as failed:
        failed.show()
        raise SystemExit(failed.exit_code) from failed


@contextlib.contextmanager
def _explain_failures() -> Iterator[None]:
    """Raise ClickException with the reason why nothing can be served."""
    try:
        yield
    except InvalidSignIn as invalid:
        raise click.ClickException(f"The sign-in file cannot be served: {invalid}") from invalid


def _announce(listener: socket.socket, processes: int = 1) -> None:
    name, number = listener.getsockname()[:2]
    several = f" with {processes} processes" if processes > 1 else ""
    _tell(f"Tollgate listens{several} on {address_text(name, number)}.")


def _tell(line: str) -> None:
    # A full disk of logs, or a terminal that is closed, keeps no request from its answer.
    with contextlib.suppress(OSError):
        click.echo(line)
