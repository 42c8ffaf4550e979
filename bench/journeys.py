"""Counts of the calls between packages, and of the switches of package, during one request.

Usage: python -m bench.journeys. A call counts once for each pair of functions in two packages of
tollgate; a switch is a change of package in the order of calls. Both counts leave out three
packages: `core`, which all packages share, and `aws` and `http1`, which are as independent of
Tollgate as libraries. Both counts are the same on any machine.
"""

import asyncio
import contextlib
import itertools
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.ministack import running_ministack

from bench.catalogs import compile_bench_catalog
from bench.children import TOP, child
from tollgate.cli.server.seed import LocalKeys, seed
from tollgate.core.clock import Clock, SystemClock
from tollgate.engine.gateway import Gateway
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.observation import wire_observation
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.whole import wire_whole_app

_PRODUCT = f"{TOP / 'functions' / 'tollgate'}{os.sep}"
_SHARED = frozenset({"aws", "core", "http1"})
_ROUNDS = 5


@dataclass
class Journey:
    """The calls between tollgate's own functions in one request, in order."""

    files: set[str] = field(default_factory=set)
    calls: set[tuple[str, str]] = field(default_factory=set)
    _packages: list[str] = field(default_factory=list)

    @property
    def switches(self) -> int:
        """Number of changes of package from one call to the next."""
        own = [package for package in self._packages if package not in _SHARED]
        return sum(before != after for before, after in itertools.pairwise(own))

    def weight(self) -> tuple[int, int]:
        """Return the counts by which journeys of the same name are ordered."""
        return len(self.calls), self.switches

    def trace(self, frame: FrameType, event: str, _argument: object) -> None:
        """Record one event of `sys.setprofile`."""
        callee = _function(frame)
        if event != "call" or callee is None:
            return
        self.files.add(frame.f_code.co_filename)
        self._packages.append(_package(callee))
        above = frame.f_back
        while above is not None and (caller := _function(above)) is None:
            above = above.f_back
        if above is None:
            return
        packages = {_package(caller or ""), _package(callee)}
        if packages & _SHARED:
            return
        if len(packages) == 2:
            self.calls.add((caller or "", callee))


def _function(frame: FrameType) -> str | None:
    """Return the path of a function of tollgate, or None for any other function."""
    file = frame.f_code.co_filename
    if not file.startswith(_PRODUCT):
        return None
    return f"{file.removeprefix(_PRODUCT)}:{frame.f_code.co_qualname}"


def _package(function: str) -> str:
    return function.partition(os.sep)[0].partition(".")[0]


@dataclass(frozen=True)
class Client:
    """A client that calls an application without a server in between."""

    app: ASGIApp

    async def request(self, method: str, path: str, key: str, body: object = None) -> bytes:
        """Return the body of a reply; raise RuntimeError on an error status."""
        content = b"" if body is None else json.dumps(body).encode()
        replies: list[Message] = []
        ended = asyncio.Event()
        requests = iter([{"type": "http.request", "body": content, "more_body": False}])

        async def receive() -> Message:
            for message in requests:
                return message
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            replies.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                ended.set()

        await _call(self.app, _scope(method, path, key, len(content)), receive, send)
        answer = b"".join(message.get("body", b"") for message in replies[1:])
        if replies[0]["status"] >= 400:
            raise RuntimeError(f"{method} {path}: {replies[0]['status']} {answer.decode()}")
        return answer


async def _call(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


def _scope(method: str, path: str, key: str, length: int) -> Scope:
    path, _, query = path.partition("?")
    headers = {"authorization": f"Bearer {key}", "content-length": str(length)}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": None,
        "server": None,
    }


@contextlib.contextmanager
def _traced(journeys: dict[str, Journey], name: str) -> Iterator[None]:
    journeys[name] = Journey()
    sys.setprofile(journeys[name].trace)
    try:
        yield
    finally:
        sys.setprofile(None)


async def _travel(client: Client, keys: LocalKeys) -> dict[str, Journey]:
    """Return the journeys of a streamed chat, a read of its record, and the creation of a key."""
    chat = {
        "model": "sse/short",
        "stream": True,
        "messages": [{"role": "user", "content": "Hello"}],
    }
    journeys: dict[str, Journey] = {}
    with _traced(journeys, "one streamed chat"):
        answer = await client.request("POST", "/api/v1/chat/completions", keys.inference, chat)
    first = json.loads(answer.split(b"\n\n")[0].removeprefix(b"data: "))
    with _traced(journeys, "read a record"):
        await client.request("GET", f"/api/v1/generation?id={first['id']}", keys.inference)
    with _traced(journeys, "create a key"):
        await client.request("POST", "/api/v1/keys", keys.management, {"name": first["id"]})
    return journeys


@contextlib.asynccontextmanager
async def _gateway(
    upstream_port: int, dynamodb_url: str, folder: Path
) -> AsyncIterator[tuple[Client, LocalKeys]]:
    catalog_file = folder / "routing.json"
    catalog_file.write_bytes(compile_bench_catalog(upstream_port))
    settings = Settings(
        dynamodb_endpoint_url=dynamodb_url,
        catalog_file=catalog_file,
        objects_folder=folder / "objects",
    )
    clock: Clock = SystemClock()
    journal = wire_observation(settings, clock).journal
    stores, upstream = wire_stores(settings, clock), wire_upstream(settings, clock)

    def gateway(catalog: Catalog) -> Gateway:
        return wire_gateway(stores, upstream, catalog, clock=clock, journal=journal)

    def follow(make: Any) -> Any:
        return wire_catalog_follower(
            settings,
            stores.publications,
            make,
            as_candidate=lambda served: served,
            clock=clock,
            journal=journal,
        )

    async with contextlib.aclosing(stores), contextlib.aclosing(upstream):
        await stores.create_tables()
        administration = wire_administration(settings, stores, clock)
        keys = await seed(administration.keys, administration.credits, folder)
        app = wire_whole_app(
            settings,
            stores,
            follow(gateway),
            follow(lambda catalog: catalog),
            upstream=upstream,
            files=None,
            clock=clock,
            journal=journal,
        )
        yield Client(app), keys


async def measure() -> Mapping[str, Journey]:
    """Return the journey with the fewest calls for each name, on a warm gateway."""
    os.environ.setdefault("BENCH_API_KEY", "bench")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_ministack(folder) as url, child("bench.upstream", measured=False) as upstream:
            async with _gateway(upstream.port, url, folder) as (client, keys):
                rounds = [await _travel(client, keys) for _ in range(_ROUNDS)]
    # The first round is cold, and a later one may refresh caches that expire after some seconds.
    return {name: min((each[name] for each in rounds), key=Journey.weight) for name in rounds[0]}


def main() -> None:
    """Print a line for each journey, and each call with `--calls`."""
    for name, journey in asyncio.run(measure()).items():
        counts = f"{len(journey.calls)} calls between packages, {journey.switches} switches"
        print(f"{name}: {len(journey.files)} files, {counts}")
        if "--calls" in sys.argv:
            print("".join(f"  {caller} -> {callee}\n" for caller, callee in sorted(journey.calls)))


if __name__ == "__main__":
    main()
