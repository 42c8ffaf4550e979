"""The web server of `tollgate dev` and `tollgate serve`."""

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

from tollgate.cli.server.connections import ConnectionLimits, GuardedListener, RequestGuard
from tollgate.core.ids import IdSource
from tollgate.engine.generate import SETTLE_BUDGET_S

_LIMITS: Final = ConnectionLimits()
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, because these raise the signal again, which skips the
    clean-up.

    After `stop`, requests that run longer than `drain_s` seconds are cancelled and settled.
    """

    def __init__(
        self, app: ASGIApp, listener: GuardedListener, *, ids: IdSource, drain_s: int
    ) -> None:
        config = uvicorn.Config(
            RequestGuard(app, listener, ids),
            http="h11",
            # A library for WebSockets, if one is installed, would answer handshakes itself.
            ws="none",
            h11_max_incomplete_event_size=listener.limits.head_bytes_max,
            # The listener closes idle connections earlier than uvicorn would. It also closes
            # connections whose request head arrives slowly, which uvicorn never does.
            timeout_keep_alive=int(listener.limits.waiting_s) + 1,
            lifespan="off",
            loop="asyncio",
            # By default, uvicorn accepts the client address in headers from this machine.
            proxy_headers=False,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=drain_s,
        )
        super().__init__(config)
        self._listener = listener
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    @override
    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        finally:
            self._listener.end_discarding()

    def stop(self) -> None:
        """Accept no more requests; `serve` returns once running requests have ended."""
        self.should_exit = True

    async def until_settled(self) -> None:
        """Wait until cancelled requests are settled."""
        if self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks), timeout=SETTLE_BUDGET_S)


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Return False for uvicorn's report of a cancelled request, which is not an error."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


@contextlib.contextmanager
def stop_on_signals(server: Server) -> Iterator[None]:
    """Make SIGINT, SIGTERM and SIGHUP stop the server; under `nohup`, SIGHUP stays ignored."""
    loop = asyncio.get_running_loop()
    handled = set(_ENDING)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        handled.remove(signal.SIGHUP)
    for number in handled:
        loop.add_signal_handler(number, server.stop)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def address_text(host: str, port: int) -> str:
    """Return an address as in URLs, with brackets around an IPv6 host."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen_on(
    host: str,
    port: int,
    *,
    limits: ConnectionLimits = _LIMITS,
    other_port: str = "`--port {}`",
) -> GuardedListener:
    """Return a listening socket; port 0 picks a free port.

    Raises ClickException if the address cannot be used. If the port is in use, the message suggests
    `other_port`, formatted with another port.
    """
    listener = GuardedListener(socket.AF_INET6 if ":" in host else socket.AF_INET, limits)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as failure:
        listener.close()
        if failure.errno != errno.EADDRINUSE:
            raise click.ClickException(
                f"Cannot listen on {address_text(host, port)}: {failure.strerror}."
            ) from failure
        raise click.ClickException(
            f"Port {port} is taken; {other_port.format(port + 1)} uses another."
        ) from failure
    # From now on, connections are queued until the server runs.
    listener.listen()
    return listener
