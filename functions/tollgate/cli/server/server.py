"""The web server of a process that serves by itself: `tollgate dev`, `tollgate serve`."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Iterator
from typing import Final

import click
import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from tollgate.engine.generate import SETTLE_BUDGET_S

# Above the 60 s after which load balancers let go of an idle connection, so that none of them sends
# a request into one that is being closed (ELB user guide, "Connection idle timeout", 2026-11-21).
_KEEPALIVE_S: Final = 75


class Server(uvicorn.Server):
    """uvicorn, stopped by us: by itself it would re-raise the signal and skip our clean-up.

    Once it is to stop, requests have `drain_s` to end; those that have not are cut off, and settle.
    """

    def __init__(self, app: ASGIApp, *, drain_s: int) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=drain_s,
                timeout_keep_alive=_KEEPALIVE_S,
            )
        )
        logging.getLogger("uvicorn.error").addFilter(_is_no_cut)

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Finish what is being served, then return from `serve`."""
        self.should_exit = True

    async def until_settled(self) -> None:
        """Wait for the requests that were cut off: they still settle."""
        if self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks), timeout=SETTLE_BUDGET_S)


def _is_no_cut(record: logging.LogRecord) -> bool:
    """uvicorn tells a request that it cut off itself as a defect of ours, with the whole stack."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


@contextlib.contextmanager
def stopped_by_signals(server: Server) -> Iterator[None]:
    """Let the signals that end a process stop the server instead."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, server.stop)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def listening(host: str, port: int, *, other_port: str = "`--port {}`") -> socket.socket:
    """A socket that others can connect to; port 0 picks one.

    ClickException if the port is taken: `other_port` is what to write for another one.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as failure:
        listener.close()
        if failure.errno != errno.EADDRINUSE:
            raise
        raise click.ClickException(
            f"Port {port} is taken; {other_port.format(port + 1)} uses another."
        ) from failure
    # From here on whoever connects is answered, if only once the server runs.
    listener.listen()
    return listener
