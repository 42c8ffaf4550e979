"""The reader function's client: what Lambda throttles is repeated, and tenants are stated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.clocks import FixedClock
from tests.emulator.http1 import read_request, response_head
from tollgate.aws.sigv4 import Credentials, Signer, fixed
from tollgate.core.documents.reading import (
    DocumentPage,
    ReadBatch,
    ReaderUnavailable,
    ReadingShare,
    ReadingTask,
)
from tollgate.stores.documents.invoked_reader import InvokedReader

BATCH = ReadBatch(pages=(DocumentPage(number=1, text="read"),), pages_total=1)
SHARE = ReadingShare(workspace_id="ws_1")


class ScriptedLambda:
    """Answers each invocation with the next status, and keeps the headers."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.headers: list[dict[str, str]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            async for _ in request.body():
                pass
            self.headers.append({name.lower(): value for name, value in request.headers})
            body = msgspec.json.encode(BATCH)
            writer.write(response_head(self.statuses.pop(0), [("content-length", str(len(body)))]))
            writer.write(body)
            await writer.drain()
        writer.close()


class PausedClock(FixedClock):
    """A clock that notes each pause in place of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.pauses.append(delay_s)


@asynccontextmanager
async def reader_of(
    service: ScriptedLambda, *, isolates_tenants: bool = False
) -> AsyncIterator[tuple[InvokedReader, list[float]]]:
    clock = PausedClock()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader = InvokedReader(
        "reader",
        "eu-west-1",
        Signer("lambda", "eu-west-1", fixed(Credentials("id", "secret")), FixedClock()),
        objects=None,
        new_id=lambda: "id",
        endpoint_url=f"http://127.0.0.1:{port}",
        isolates_tenants=isolates_tenants,
        clock=clock,
    )
    async with server:
        yield reader, clock.pauses
        await reader.close()


async def test_a_throttled_document_waits_for_others() -> None:
    async with reader_of(ScriptedLambda(429, 429, 200)) as (reader, pauses):
        read = await reader.read(b"x", "text/plain", ReadingTask(), SHARE)
    assert read.pages[0].text == "read"
    assert pauses == [0.5, 1.0]


async def test_a_document_that_stays_throttled_is_refused() -> None:
    async with reader_of(ScriptedLambda(*[429] * 9)) as (reader, pauses):
        with pytest.raises(ReaderUnavailable):
            await reader.read(b"x", "text/plain", ReadingTask(), SHARE)
    assert sum(pauses) < 10


@pytest.mark.parametrize("isolates", [False, True])
async def test_the_workspace_is_lambdas_tenant_where_the_function_needs_one(
    *, isolates: bool
) -> None:
    service = ScriptedLambda(200)
    async with reader_of(service, isolates_tenants=isolates) as (reader, _):
        await reader.read(b"x", "text/plain", ReadingTask(), SHARE)
    assert service.headers[0].get("x-amz-tenant-id") == ("ws_1" if isolates else None)
    assert ("x-amz-tenant-id" in service.headers[0]["authorization"]) is isolates
