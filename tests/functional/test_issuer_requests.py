"""Requests to an issuer end in time and size, and go nowhere else."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web

from tollgate.sign_in.issuer import IssuerUnavailable, fetch_from_issuer


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async def move(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"location": "/here"})

    async def answer(request: web.Request) -> web.Response:
        form = await request.text()
        return web.Response(text=f"{request.method} {form} {request.headers.get('x-word')}")

    async def flood(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse()
        await reply.prepare(request)
        for _ in range(64):
            await reply.write(b"x" * 65_536)
        return reply

    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    app = web.Application()
    app.add_routes(
        [
            web.get("/moved", move),
            web.route("*", "/here", answer),
            web.get("/flood", flood),
            web.get("/hang", hang_up),
        ]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_form_and_its_headers_arrive(url: str) -> None:
    reply = await fetch_from_issuer(f"{url}/here", form=b"a=1", headers={"x-word": "hush"})
    assert (reply.status, reply.body) == (200, b"POST a=1 hush")
    assert (await fetch_from_issuer(f"{url}/here")).body.startswith(b"GET")


async def test_a_redirect_is_not_followed(url: str) -> None:
    assert (await fetch_from_issuer(f"{url}/moved")).status == 302


@pytest.mark.parametrize("path", ["/flood", "/hang"])
async def test_a_reply_that_is_too_large_or_breaks_is_none(url: str, path: str) -> None:
    with pytest.raises(IssuerUnavailable):
        await fetch_from_issuer(url + path)


async def test_a_host_that_nobody_has_is_unavailable() -> None:
    with pytest.raises(IssuerUnavailable):
        await fetch_from_issuer("https://issuer.invalid/keys")
