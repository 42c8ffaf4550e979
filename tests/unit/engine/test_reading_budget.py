"""The documents of one request share one limit of CPU time and the request's deadline.

Keeps C72.
"""

import asyncio
import json

import pytest
from msgspec.structs import replace

from tests import documents
from tests.memory.reader import InlineReader
from tests.unit.engine.test_read_documents import ask, body, reading
from tollgate.core.documents.reading import (
    CPU_SECONDS_MAX,
    ReadDocument,
    ReadingShare,
    ReadingTask,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.engine.documents.document_reading import READING_PART
from tollgate.engine.generate import generate

MANY = [documents.pdf([str(number)]) for number in range(16)]


class CostlyReader(InlineReader):
    """A reader whose documents each cost so many CPU seconds, and take as long."""

    def __init__(self, *costs: float) -> None:
        super().__init__()
        self.costs = list(costs)
        self.shares: list[ReadingShare] = []
        self.spent = 0.0
        self.running = self.running_most = 0

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        self.shares.append(share)
        cost = min(self.costs.pop(0), share.cpu_seconds_max)
        self.running += 1
        self.running_most = max(self.running, self.running_most)
        await asyncio.sleep(cost)
        self.running -= 1
        self.spent += cost
        read = await super().read(content, media_type, task, share)
        return replace(read, cpu_seconds=cost)


async def test_light_documents_are_read_two_at_a_time() -> None:
    reader = CostlyReader(*[0.4] * 16)
    home = await reading(reader)
    assert (await ask(home, "acme/blind", *MANY)).status == 200
    assert reader.running_most == 2
    assert reader.spent == pytest.approx(6.4)
    assert {share.workspace_id for share in reader.shares} == {home.principal.workspace_id}


@pytest.mark.parametrize("cost", [3.0, 9.0, 1000.0])
async def test_the_documents_of_a_request_never_take_more_than_the_budget(cost: float) -> None:
    reader = CostlyReader(*[cost] * 16)
    home = await reading(reader)
    reply = await ask(home, "acme/blind", *MANY)
    assert (reply.status, reply.json["error"]["code"]) == (400, "document_too_large")
    assert "takes too long to read" in reply.json["error"]["message"]
    assert reader.spent <= CPU_SECONDS_MAX + 1e-6
    assert home.stores.books.records == {}


async def test_a_single_document_may_take_the_whole_budget() -> None:
    reader = CostlyReader(CPU_SECONDS_MAX)
    assert (await ask(await reading(reader), "acme/blind")).status == 200
    assert reader.shares[0].cpu_seconds_max == CPU_SECONDS_MAX


async def test_a_heavy_document_leaves_the_rest_to_others() -> None:
    reader = CostlyReader(9.0, *[0.1] * 15)
    assert (await ask(await reading(reader), "acme/blind", *MANY)).status == 200


class EndlessReader(InlineReader):
    """A reader that never ends."""

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_reading_that_takes_too_long_is_not_an_error_of_a_provider() -> None:
    home = await reading(EndlessReader())
    parsed = home.ingress.parse(json.dumps(body("acme/blind")).encode())
    call = replace(home.call("acme/blind", time_s=60), parsed=parsed)
    start_s = asyncio.get_running_loop().time()
    with pytest.raises(RequestError) as refused:
        await generate(home.gateway, call, home.sink(call, home.reply()))
    assert refused.value.code is ErrorCode.DOCUMENT_TOO_LARGE
    assert "within 30 s" in refused.value.message
    # The model has the rest of the time.
    assert asyncio.get_running_loop().time() - start_s == pytest.approx(60 * READING_PART)
    assert (home.stores.books.records, home.near.requests) == ({}, [])
