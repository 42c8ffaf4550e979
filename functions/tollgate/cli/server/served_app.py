"""The whole gateway as the app of a server process, over a deployed stack's tables."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from multiprocessing import parent_process

from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.cli.server.measured_app import MeasuredApp, MetricsAccess
from tollgate.cli.server.metrics import MeasuringJournal, ServerMetrics
from tollgate.cli.server.server import is_no_cancellation
from tollgate.core.clock import SystemClock
from tollgate.engine.gateway import Gateway
from tollgate.engine.generate import SETTLE_BUDGET_S
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings, metrics_folder
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.files import wire_files
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.local_reader import wire_local_reader
from tollgate.wiring.observation import add_request_hooks, wire_observation
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.whole import wire_whole_app


@asynccontextmanager
async def open_app(settings: Settings, clock: SystemClock) -> AsyncIterator[ASGIApp]:
    """Make the app; close what it has opened afterwards."""
    observation, metrics = wire_observation(settings, clock), ServerMetrics(metrics_folder())
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
        yield MeasuredApp(add_request_hooks(app, settings, observation), metrics, readers)


class ServedApp:
    """The app of one of several processes, which the process opens as it starts.

    The process that starts it sends it there as a pickle, so it has nothing open yet.
    """

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._answering: set[asyncio.Task[object]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._app is None:
            raise RuntimeError("the app is served before it is opened")
        task = asyncio.current_task()
        if task is not None:
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Open the app, and close it once the requests of a stopping server have settled."""
        configure_logging()
        logging.getLogger("uvicorn.error").addFilter(is_no_cancellation)
        _end_with_the_parent()
        await receive()
        async with open_app(Settings(), SystemClock()) as self._app:
            await send({"type": "lifespan.startup.complete"})
            await receive()
            if self._answering:
                await asyncio.wait(set(self._answering), timeout=SETTLE_BUDGET_S)
        await send({"type": "lifespan.shutdown.complete"})


def _end_with_the_parent() -> None:
    """Stop this process, as on SIGTERM, once the one that started it has ended.

    It would hold the port, and nobody would start it again.
    """
    parent = parent_process()
    if parent is None:
        return
    loop, sentinel = asyncio.get_running_loop(), parent.sentinel

    def stop() -> None:
        loop.remove_reader(sentinel)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(sentinel, stop)
