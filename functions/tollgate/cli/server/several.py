"""Several processes of a server on one port, under uvicorn's supervisor."""

import logging
import socket

import click
from typing_extensions import override
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from tollgate.cli.server.connections import BoundedConfig
from tollgate.cli.server.served_app import ServedApp
from tollgate.cli.server.server import server_config
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which closes its own end of the port before the processes drain.

    Else connections would wait in a queue from which nobody accepts any more.
    """

    @override
    def handle_term(self) -> None:
        self._close_listeners()
        super().handle_term()

    @override
    def handle_int(self) -> None:
        self._close_listeners()
        super().handle_int()

    def _close_listeners(self) -> None:
        for listener in self.sockets:
            listener.close()


def serve_with(processes: int, listener: socket.socket, *, drain_s: int) -> None:
    """Serve until SIGTERM or SIGINT with so many processes, each started again if it ends.

    All accept from the one listener, so that none has a queue of its own that it could leave
    behind. SIGHUP replaces one process after the other.
    """
    config: BoundedConfig = server_config(
        ServedApp(), ids=IdSource(SystemClock()), drain_s=drain_s, processes=processes
    )
    # The supervisor logs there that a process has ended.
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
    supervisor = _Supervisor(config, [listener])
    supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise click.ClickException("No process can serve; the lines above say why.")
