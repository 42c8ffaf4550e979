"""A store that is throttled, frozen or slow: a proxy between the gateways and their DynamoDB."""

import asyncio
import random
from collections import Counter
from types import TracebackType
from typing import Final

from aiohttp import web
from typing_extensions import override

from tests.faulty_client import refusal
from tests.loopback import LocalProxy

_FORWARDED: Final = ("content-type", "x-amz-target", "authorization", "x-amz-date")
_WRITES: Final = frozenset({"PutItem", "UpdateItem"})


class StoreProxy(LocalProxy):
    """Forwards calls of DynamoDB's protocol to `target`.

    A caller that has given up does not take its call back: what was sent lands.
    """

    def __init__(self, target: str, seed: int) -> None:
        super().__init__()
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

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.thaw()
        await super().__aexit__(exc_type, exc, traceback)

    def freeze(self) -> None:
        """Take calls and answer none."""
        self._thawed.clear()

    def thaw(self) -> None:
        """Forward again, first what came meanwhile."""
        self._thawed.set()

    async def all_delivered(self) -> None:
        """Wait until no call is under way."""
        await self._idle.wait()

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
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
        headers = {it: request.headers[it] for it in _FORWARDED if it in request.headers}
        async with self.client.post(self._target, data=body, headers=headers) as answer:
            content = await answer.read()
            return web.Response(
                status=answer.status,
                body=content,
                headers={"content-type": answer.headers.get("content-type", "")},
            )
