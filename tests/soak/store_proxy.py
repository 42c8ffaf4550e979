"""A store that is throttled, frozen or slow: a proxy between the gateways and their DynamoDB."""

import asyncio
import random
from collections import Counter
from types import TracebackType
from typing import Final, Self

import aiohttp
from aiohttp import web

from tests.faulty_client import refusal

_FORWARDED: Final = ("content-type", "x-amz-target", "authorization", "x-amz-date")
_WRITES: Final = frozenset({"PutItem", "UpdateItem"})


class StoreProxy:
    """Forwards calls of DynamoDB's protocol to `target`.

    A caller that has given up does not take its call back: what was sent lands.
    """

    def __init__(self, target: str, seed: int) -> None:
        self.url = ""
        # The share of calls that are refused as throttled.
        self.throttled = 0.0
        # Seconds by which writes are late, drawn for each.
        self.late_max_s = 0.0
        self.counts: Counter[str] = Counter()
        self._target = target
        self._draw = random.Random(seed)
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._runner = web.ServerRunner(
            web.Server(self._serve, access_log=None), shutdown_timeout=0.1
        )
        self._client: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=512).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.thaw()
        await self._runner.cleanup()
        assert self._client is not None
        await self._client.close()

    def freeze(self) -> None:
        """Take calls and answer none."""
        self._thawed.clear()

    def thaw(self) -> None:
        """Forward again, first what came meanwhile."""
        self._thawed.set()

    async def all_delivered(self) -> None:
        """Wait until no call is under way."""
        await self._idle.wait()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        operation = request.headers.get("x-amz-target", "").rpartition(".")[2]
        self._under_way += 1
        self._idle.clear()
        try:
            return await self._answer(operation, request, body)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _answer(
        self, operation: str, request: web.BaseRequest, body: bytes
    ) -> web.StreamResponse:
        self.counts["calls"] += 1
        if self.throttled and self._draw.random() < self.throttled:
            self.counts["throttled"] += 1
            code, cancels = "ProvisionedThroughputExceededException", False
            if operation == "TransactWriteItems":
                code, cancels = "ProvisionedThroughputExceeded", True
            return web.Response(status=400, body=refusal(code, cancels=cancels))
        if not self._thawed.is_set():
            self.counts["frozen"] += 1
            await self._thawed.wait()
        if self.late_max_s and operation in _WRITES:
            self.counts["late"] += 1
            await asyncio.sleep(self._draw.random() * self.late_max_s)
        assert self._client is not None
        headers = {it: request.headers[it] for it in _FORWARDED if it in request.headers}
        async with self._client.post(self._target, data=body, headers=headers) as answer:
            content = await answer.read()
            return web.Response(
                status=answer.status,
                body=content,
                headers={"content-type": answer.headers.get("content-type", "")},
            )
