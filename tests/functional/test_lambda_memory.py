"""What thousands of invocations leave behind in the process: nothing that adds up."""

import asyncio
import gc
import json
import sys
from typing import Final

import pytest

from tests.gateways import Always, House, house, request_body
from tests.unit.lambda_runtime.peer import ACCEPTED, next_reply
from tests.unit.lambda_runtime.serving import EVENT
from tollgate.core.clock import SystemClock
from tollgate.lambda_runtime.loop import run_loop
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

WARM_UP: Final = 500
TASKS_MAX: Final = 10


class Lambda:
    """Hands out one event again and again, until as many are answered as is wished."""

    def __init__(self, event: bytes) -> None:
        self._event = event
        self.answered = 0
        self.statuses: set[bytes] = set()
        self._enough = asyncio.Event()
        self._goes_on = asyncio.Event()
        self._stops_at = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET "):
                    await self._next(writer)
                else:
                    body = await reader.readuntil(b"\r\n0\r\n\r\n")
                    self.statuses.add(body.partition(b",")[0].partition(b"{")[2])
                    self.answered += 1
                    writer.write(ACCEPTED)
        except asyncio.IncompleteReadError:
            writer.close()

    async def until(self, answered: int) -> None:
        """Let so many be answered."""
        self._stops_at = answered
        self._enough.clear()
        self._goes_on.set()
        await self._enough.wait()

    def let_go(self) -> None:
        """Keep no connection waiting."""
        self._goes_on.set()

    async def _next(self, writer: asyncio.StreamWriter) -> None:
        if self.answered == self._stops_at:
            self._goes_on.clear()
            self._enough.set()
            await self._goes_on.wait()
        writer.write(self._event)


def blocks(home: House) -> int:
    """What the process has allocated, once what the doubles remember for tests is gone."""
    home.stores.books.records.clear()
    for remembered in (
        home.ledger.settled,
        home.journal.records,
        home.trace,
        home.near.requests,
    ):
        remembered.clear()
    gc.collect()
    return sys.getallocatedblocks()


# Whatever each of them left behind would be a block at least; caches of the process grow a little.
@pytest.mark.nightly
@pytest.mark.parametrize(("invocations", "blocks_max"), [(700, 600), (10_000, 1_000)])
async def test_memory_is_flat_over_streamed_generations(invocations: int, blocks_max: int) -> None:
    home = await house(
        key=NewKey(workspace_id="acme", label="busy", requests_per_minute=10**6, burst=10**6)
    )
    app = chat_app(
        home.front,
        Always(home.gateway),
        WebLimits(allowed_origins=("*",), body_bytes_max=1_000_000),
    )
    headers = {**EVENT["multiValueHeaders"], "Authorization": [f"Bearer {home.secret}"]}
    asked = {**EVENT, "multiValueHeaders": headers, "body": request_body(stream=True).decode()}
    deadline_ms = int((SystemClock().now_s() + 3600) * 1000)
    event = next_reply(json.dumps(asked).encode()).replace(b"1000000", b"%d" % deadline_ms)
    lambda_ = Lambda(event)
    server = await asyncio.start_server(lambda_.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    serving = asyncio.create_task(run_loop(app, f"{host}:{port}"))
    try:
        await lambda_.until(WARM_UP)
        before = blocks(home)
        await lambda_.until(WARM_UP + invocations)
        grown = blocks(home) - before
    finally:
        serving.cancel()
        await asyncio.wait({serving})
        lambda_.let_go()
        server.close()
    assert lambda_.statuses == {b'"statusCode":200'}
    assert len(asyncio.all_tasks()) <= TASKS_MAX
    assert grown <= blocks_max
