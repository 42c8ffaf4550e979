"""A supervisor of two small servers, as a program: the gateway would take seconds to start.

Each answers with its number, once with the head of a request and once with its body; `/block` stops
its event loop.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from starlette.types import Receive, Scope, Send

from tollgate.cli.server.heartbeat import beat
from tollgate.cli.server.server import Server, stop_on_signals
from tollgate.cli.server.supervisor import Patience, Supervisor
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.observability.log import configure_logging

PATIENCE = Patience(ends_s=20, starts_s=20, silent_s=2, pause_s=0.2)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    number = b"%d\n" % os.getpid()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": number, "more_body": True})
    if scope["path"] == "/block":
        block_the_loop()
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.body", "body": number})


def block_the_loop() -> None:
    time.sleep(3600)


def serve_as_one(broken: Path, listener: socket.socket, heart: Connection) -> None:
    if broken.exists():
        raise SystemExit("the configuration is broken")
    asyncio.run(_serve(listener, heart))


async def _serve(listener: socket.socket, heart: Connection) -> None:
    server = Server(app, ids=IdSource(SystemClock()), drain_s=60)
    with stop_on_signals(server, [signal.SIGTERM]), beat(heart, server.stop):
        await server.serve(sockets=[listener])


def main() -> None:
    configure_logging()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        supervisor = Supervisor(partial(serve_as_one, Path(sys.argv[1])), listener, PATIENCE)
        if not asyncio.run(supervisor.run(2, lambda: print(f"port {port}", flush=True))):
            sys.exit("nothing serves")


if __name__ == "__main__":
    main()
