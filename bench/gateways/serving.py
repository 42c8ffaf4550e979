"""The web server that all aiohttp gateways share, so that its cost is the same for each."""

import asyncio

from aiohttp import web
from aiohttp.typedefs import Handler

from bench.children import announce

REQUEST_BYTES_MAX = 64 * 1024 * 1024


async def serve(handler: Handler, **facts: object) -> None:
    """Answer every POST with the handler, until the process is ended."""
    app = web.Application(client_max_size=REQUEST_BYTES_MAX)
    app.router.add_post("/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    announce(port=runner.addresses[0][1], **facts)
    await asyncio.Event().wait()
