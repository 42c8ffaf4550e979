"""Three tenants on real hosts: honest, hostile without credit, and hostile with credit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from statistics import quantiles
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from msgspec.structs import replace as replace_struct
from tests.hostile.shapes import STORED_ID, Shape, stored_conversation
from tests.soak.accounts import server_environment
from tests.soak.run import open_client
from tests.soak.servers import SoakServer
from tests.stores import TESTER

from bench.accounts import BUSY_KEY, prepare_account
from bench.children import Child, pin
from bench.starts import Stage, open_stage
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.stores.ports.administration import NewKey
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.stores import wire_stores

_PENNILESS: Final = "penniless"
_SPENDER: Final = "spender"
_DAYS: Final = 7
_MODEL: Final = b"sse/huge"
_PAUSE_S: Final = 0.001
_PATIENCE_S: Final = 60.0
_TRIES: Final = 3


@dataclass(frozen=True, kw_only=True)
class Tenants:
    """A stage with the secrets of its tenants, and a stored conversation of both hostile ones."""

    stage: Stage
    penniless: str
    spender: str
    stored_id: str

    @property
    def honest(self) -> str:
        """The secret of the honest tenant."""
        return self.stage.key

    def body(self, shape: Shape, part: float = 1.0) -> bytes:
        """Return the body of a hostile request, for the model with the largest context."""
        body = shape.make(part).replace(STORED_ID.encode(), self.stored_id.encode())
        return body.replace(b"acme/large", _MODEL)


@asynccontextmanager
async def open_tenants() -> AsyncIterator[Tenants]:
    """Open a stage, and create the hostile tenants and their conversation."""
    async with open_stage() as opened:
        folder = opened.settings.catalog_file.parent / "objects"
        settings = opened.settings.model_copy(update={"objects_folder": folder})
        clock = SystemClock()
        async with aclosing(wire_stores(settings, clock)) as stores:
            keys = wire_administration(settings, stores, clock).keys
            await prepare_account(settings, stores, clock, _SPENDER)
            secrets = {
                workspace_id: (await keys.create(_key_of(workspace_id), by=TESTER)).secret
                for workspace_id in (_PENNILESS, _SPENDER)
            }
            stored_id = IdSource(clock).new_id()
            [content] = stored_conversation().values()
            assert stores.responses is not None
            for workspace_id in secrets:
                await stores.responses.keep(workspace_id, stored_id, content, days=_DAYS)
        yield Tenants(
            stage=replace(opened, settings=settings),
            penniless=secrets[_PENNILESS],
            spender=secrets[_SPENDER],
            stored_id=stored_id,
        )


def _key_of(workspace_id: str) -> NewKey:
    return replace_struct(BUSY_KEY, workspace_id=workspace_id, label="hostile", response_days=_DAYS)


@dataclass(frozen=True, kw_only=True)
class Served:
    """A `tollgate serve` process, and a client of it."""

    url: str
    process: Child
    http: aiohttp.ClientSession

    async def send(
        self, path: str, body: bytes, secret: str, *, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        """Send a request from another thread; return the status and the body of the reply.

        A body of 50 MB would delay all that the event loop of this process measures.
        """
        return await asyncio.to_thread(self._send, path, body, secret, content_type)

    def _send(self, path: str, body: bytes, secret: str, content_type: str) -> tuple[int, bytes]:
        headers = {"authorization": f"Bearer {secret}", "content-type": content_type}
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=_PATIENCE_S)
        with closing(connection):
            connection.request("POST", path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.read()

    async def wait_s(self) -> float:
        """Return the time of a request that needs nothing but a turn of the event loop."""
        start_s = perf_counter()
        async with self.http.get(f"{self.url}/v1/health/live") as reply:
            await reply.read()
        return perf_counter() - start_s

    async def waits_s(self, work: Awaitable[object]) -> list[float]:
        """Return the times of such requests, sent one after another until the work ends."""
        running = asyncio.ensure_future(work)
        waits_s = [await self.wait_s()]
        while not running.done():
            waits_s.append(await self.wait_s())
            await asyncio.sleep(_PAUSE_S)
        await running
        return waits_s


@asynccontextmanager
async def serving(tenants: Tenants) -> AsyncIterator[Served]:
    """Run `tollgate serve` over the store of the tenants, on a CPU without other processes."""
    settings = tenants.stage.settings
    folder = settings.objects_folder
    assert folder is not None
    url = settings.dynamodb_endpoint_url
    assert url is not None
    server = SoakServer(
        number=0,
        variables={
            **server_environment(settings, store_url=url, folder=folder),
            "BENCH_API_KEY": "bench",
        },
        log_file=folder.with_name("serve.log"),
    )
    async with open_client() as http:
        await server.start(http)
        try:
            assert server.process is not None
            pin(server.process.pid, last=True)
            yield Served(url=server.url, process=Child(server.process.pid), http=http)
        finally:
            await server.stop()


async def honest_times_s(
    served: Served, tenants: Tenants, *, seconds: float, every_s: float = 0.125
) -> list[float]:
    """Return the times of an honest tenant's small requests, which are sent at a steady rate."""
    loop = asyncio.get_running_loop()
    body = b'{"model":"sse/short","messages":[{"role":"user","content":"Hello"}]}'

    url = f"{served.url}/v1/chat/completions"
    headers = {"authorization": f"Bearer {tenants.honest}", "content-type": "application/json"}

    async def ask(due_s: float) -> float:
        await asyncio.sleep(due_s - loop.time())
        refusal = ""
        # Clients repeat a 503, which a store on a busy machine causes.
        for _ in range(_TRIES):
            async with served.http.post(url, data=body, headers=headers) as reply:
                content = await reply.read()
            if reply.status == 200:
                return loop.time() - due_s
            refusal = f"{reply.status}: {content[:200]!r}"
        raise RuntimeError(f"an honest request got {refusal}")

    begun_s = loop.time()
    dues_s = [begun_s + number * every_s for number in range(int(seconds / every_s))]
    return await asyncio.gather(*map(ask, dues_s))


def p99(times_s: list[float]) -> float:
    """Return the time that 99 % of the requests do not exceed."""
    return quantiles(times_s, n=100, method="inclusive")[98]
