"""Tollgate behind the same web server as the pass-through, with its ledger in memory or DynamoDB.

Usage: python -m bench.gateways.ours UPSTREAM_PORT [DYNAMODB_URL]. If the variable PROFILE_TO names
a file, a profile from the first request to the end is written to it.
"""

import asyncio
import cProfile
import gc
import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from aiohttp import web
from starlette.types import ASGIApp, Message, Scope
from tests.gateways import Always
from tests.stores import funded_key, memory_stores

from bench.accounts import BUSY_KEY, GRANT_NANO_USD, prepare_account
from bench.catalogs import compile_bench_catalog
from bench.gateways.serving import serve
from tollgate.core.clock import Clock, SystemClock
from tollgate.engine.gateway import Gateway
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.web.generation.entrance import Gateways
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.generation import wire_chat_app, wire_gateway, wire_upstream
from tollgate.wiring.observation import wire_observation, wire_web_limits
from tollgate.wiring.stores import wire_stores


async def main(upstream_port: int, dynamodb_url: str | None) -> None:
    """Serve the metered routes to one funded key."""
    clock = SystemClock()
    with TemporaryDirectory() as folder:
        catalog_file = Path(folder) / "routing.json"
        catalog_file.write_bytes(compile_bench_catalog(upstream_port))
        settings = Settings(dynamodb_endpoint_url=dynamodb_url, catalog_file=catalog_file)
        app, key = await _wired(settings, clock)
    if profile_to := os.environ.get("PROFILE_TO"):
        _profile(Path(profile_to))
    # As in chat.py, objects from the start are never freed.
    gc.freeze()
    await serve(Adapter(app), key=key)


async def _wired(settings: Settings, clock: Clock) -> tuple[ASGIApp, str]:
    """Return the app and the secret of a funded key.

    Without a DynamoDB URL, memory stores provide the attributes that the wiring reads.
    """
    journal = wire_observation(settings, clock).journal
    upstream = wire_upstream(settings, clock)
    stores: Any

    def gateway(catalog: Catalog) -> Gateway:
        return wire_gateway(stores, upstream, catalog, clock=clock, journal=journal)

    gateways: Gateways
    if settings.dynamodb_endpoint_url is None:
        memory = memory_stores(clock)
        stores = SimpleNamespace(
            **vars(memory),
            answers=None,
            answer_cache=None,
            contents=None,
            responses=None,
            named_files=None,
            seal_keys=None,
        )
        key, _ = await funded_key(memory, GRANT_NANO_USD, BUSY_KEY)
        gateways = Always(gateway(Catalog.from_json(settings.catalog_file.read_bytes())))
    else:
        stores = wire_stores(settings, clock)
        key = await prepare_account(settings, stores, clock)
        gateways = wire_catalog_follower(
            settings,
            stores.publications,
            gateway,
            as_candidate=lambda served: served,
            clock=clock,
            journal=journal,
        )
    limits = wire_web_limits(settings)
    app = wire_chat_app(
        stores,
        gateways,
        limits,
        background=lambda: None,
        shadows=lambda: None,
        videos=lambda: None,
        clock=clock,
        journal=journal,
    )
    return app, key


class Adapter:
    """An adapter from an ASGI application to a handler of aiohttp's server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        body: bytes | None = await request.read()
        answered = asyncio.Event()
        response = web.StreamResponse()

        async def receive() -> Message:
            nonlocal body
            if body is not None:
                message = {"type": "http.request", "body": body, "more_body": False}
                body = None
                return message
            await answered.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                response.set_status(message["status"])
                for name, value in message["headers"]:
                    response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
                await response.prepare(request)
                return
            if octets := message["body"]:
                await response.write(octets)
            if not message.get("more_body", False):
                answered.set()

        await self._app(_scope(request), receive, send)
        return response


def _scope(request: web.Request) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
        "client": None,
        "server": None,
    }


def _profile(to: Path) -> None:
    profiler = cProfile.Profile()

    def finish() -> None:
        profiler.disable()
        profiler.dump_stats(to)
        sys.exit()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, finish)
    profiler.enable()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
