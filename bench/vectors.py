"""CPU for a large reply with vectors, through the gateway and through a proxy that copies bytes.

`PYTHONPATH=functions python -m bench.vectors` prints the CPU seconds of each. The server that sends
the vectors is a separate process, and is not counted.
"""

import asyncio
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import aiohttp
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace
from tests.gateways import Always, house
from tests.unit.routing.catalogs import price, provider

from tollgate.core.principal import Principal
from tollgate.core.secret import SecretReference
from tollgate.ingress.formats import EMBEDDINGS
from tollgate.providers.ports.base import Provider, ProviderRow
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.providers.transports.http_sse import HttpSse
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

INPUTS: Final = 2_048
DIMENSIONS: Final = 3_072
ROUNDS: Final = 5
PORT: Final = 18_473
URL: Final = f"http://127.0.0.1:{PORT}/v1"


async def _drain_clients(app: web.Application) -> None:
    """Start a server that stands in for a client: it reads and discards everything."""

    async def read_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(2**20):
            pass
        writer.close()

    await asyncio.start_server(read_all, "127.0.0.1", PORT + 1)


class NoKey:
    """The authorization for a server without keys."""

    async def headers(self) -> Mapping[str, str]:
        return {}


class OneProvider(Struct):
    """A directory with one provider."""

    only: Provider

    def provider(self, slug: str, principal: Principal) -> Provider:
        return self.only


def reply_body() -> bytes:
    """Return a reply as OpenAI sends it."""
    rng = random.Random(7)
    numbers = ", ".join(repr(rng.uniform(-0.1, 0.1)) for _ in range(DIMENSIONS))
    items = (
        f'{{"object": "embedding", "index": {index}, "embedding": [{numbers}]}}'
        for index in range(INPUTS)
    )
    usage = '{"prompt_tokens": 2048, "total_tokens": 2048}'
    data = ", ".join(items)
    return f'{{"object": "list", "data": [{data}], "model": "m", "usage": {usage}}}'.encode()


def serve_vectors() -> None:
    """Serve the reply until the process is ended."""
    body = reply_body()

    async def embeddings(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    app = web.Application(client_max_size=2**28)
    app.router.add_post("/v1/embeddings", embeddings)
    app.on_startup.append(_drain_clients)
    web.run_app(app, host="127.0.0.1", port=PORT, print=None)


async def copied(body: bytes, client: asyncio.StreamWriter) -> int:
    """Forward the request, read the reply and write it to the client; return its size."""
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.post(f"{URL}/embeddings", data=body) as response,
    ):
        whole = await response.read()
        client.write(whole)
        await client.drain()
    return len(whole)


async def through_gateway() -> Callable[[bytes, asyncio.StreamWriter], Awaitable[int]]:
    """Return a function that sends a request through the app of the metered routes."""
    pool = HttpPool()
    row = ProviderRow(
        slug="near", codec="openai_chat", transport="http_sse", base_url=URL, key=SecretReference()
    )
    rates = {name: rate for name, rate in price().items() if name != "output"}
    home = await house(
        providers={"near": provider()},
        models={
            "acme/vec": {
                "name": "Vectors",
                "kind": "embedding",
                "context": 8192,
                "vectors": {"dimensions": DIMENSIONS},
                "endpoints": ({"provider": "near", "upstream": "m", "price": rates},),
            }
        },
        aliases={},
        routes={},
    )
    carrier = HttpSse(row, pool, NoKey())
    near = Provider(None, carrier, WIRE_FORMATS["openai_chat"].batch_codecs)
    gateway = replace(home.gateway, providers=OneProvider(near))
    app = chat_app(home.front, Always(gateway), WebLimits())

    async def ask(body: bytes, client: asyncio.StreamWriter) -> int:
        size = 0
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, object]:
            if messages:
                return messages.pop()
            await asyncio.get_running_loop().create_future()
            raise AssertionError

        async def send(message: dict[str, object]) -> None:
            nonlocal size
            piece = message.get("body", b"")
            size += len(piece)
            client.write(piece)
            await client.drain()

        headers = [(b"authorization", f"Bearer {home.secret}".encode())]
        scope = {
            "type": "http",
            "method": "POST",
            "path": EMBEDDINGS.path,
            "raw_path": EMBEDDINGS.path.encode(),
            "query_string": b"",
            "headers": headers,
        }
        await app(scope, receive, send)
        return size

    return ask


async def measure() -> None:
    body = json.dumps({"model": "acme/vec", "input": ["a"] * INPUTS}).encode()
    ours = await through_gateway()
    figures: dict[str, list[float]] = {"pass-through": [], "gateway": []}
    sizes = {}
    _, client = await asyncio.open_connection("127.0.0.1", PORT + 1)
    for _ in range(ROUNDS):
        for name, ask in (("pass-through", copied), ("gateway", ours)):
            start_s = time.process_time()
            sizes[name] = await ask(body, client)
            figures[name].append(time.process_time() - start_s)
    for name, seconds in figures.items():
        print(f"{name:13} {sizes[name] / 1e6:6.1f} MB  {statistics.median(seconds):.3f} s of CPU")
    ratio = statistics.median(figures["gateway"]) / statistics.median(figures["pass-through"])
    print(f"ratio         {ratio:.2f}")


if __name__ == "__main__":
    server = multiprocessing.Process(target=serve_vectors, daemon=True)
    server.start()
    time.sleep(4)
    try:
        asyncio.run(measure())
    finally:
        server.terminate()
    sys.exit(0)
