"""The log of access on everything the stores run on: once an hour, whoever floods it.

Keeps C98.
"""

import asyncio

import pytest
from msgspec.structs import replace

from tests.contract.test_audit_log import ADMIN, entries
from tests.stores import DynamoStores, MemoryStores
from tollgate.aws.failures import StoreUnavailable
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import AuditFilter, unauthenticated
from tollgate.stores.records.access_log import DynamoAccessLog
from tollgate.stores.rules.access_entries import ADDRESS_PLACES

AnyStores = MemoryStores | DynamoStores


async def test_c98_a_read_is_one_entry_an_hour_by_whoever_reads(stores: AnyStores) -> None:
    for _ in range(3):
        await stores.access_log.note_read("content", "gen-1", by=ADMIN)
        stores.clock.now += 60
    other = replace(ADMIN, id="5g0DOBgUqHItj5x", name="second")
    await stores.access_log.note_read("content", "gen-1", by=other)
    await stores.access_log.note_read("file", "file-1", by=ADMIN)
    stores.clock.now += 3_600
    await stores.access_log.note_read("content", "gen-1", by=ADMIN)
    found = await entries(stores, "acme")
    assert sorted((it.action, it.target, it.actor.name) for it in found) == [
        ("content.read", "gen-1", "admin"),
        ("content.read", "gen-1", "admin"),
        ("content.read", "gen-1", "second"),
        ("file.read", "file-1", "admin"),
    ]
    first = min(found, key=lambda it: it.at_ms)
    # The entry has the second of the read, and is found by it.
    second = AuditFilter(since_s=first.at_ms // 1000, until_s=first.at_ms // 1000 + 1)
    assert (await stores.audit_log.page("acme", second, limit=9)).found == (first,)
    assert await entries(stores, "acme", kind="change") == ()
    assert len(await entries(stores, "acme", kind="access")) == 4


async def test_c98_a_flood_of_refusals_from_many_addresses_is_bounded(stores: AnyStores) -> None:
    for number in range(600):
        by = unauthenticated(f"192.0.{number // 256}.{number % 256}", None)
        path = f"GET /v1/{number % 7}"
        await stores.access_log.note_refusal("call.refused", path, "invalid_api_key", by=by)
    found = await entries(stores)
    assert 20 < len(found) <= ADDRESS_PLACES
    assert {it.workspace_id for it in found} == {None}
    assert {it.after["code"] for it in found} == {"invalid_api_key"}


async def test_c98_refusals_of_a_key_are_one_entry_by_route_and_code(stores: AnyStores) -> None:
    for path in ("GET /v1/credits", "GET /v1/credits", "POST /v1/keys"):
        await stores.access_log.note_refusal("call.refused", path, "permission_denied", by=ADMIN)
    found = await entries(stores, "acme")
    assert sorted(it.target for it in found) == ["GET /v1/credits", "POST /v1/keys"]


async def test_c98_processes_at_once_write_an_access_once(dynamo: DynamoStores) -> None:
    logs = [
        DynamoAccessLog(
            dynamo.client, dynamo.tables, ids=IdSource(dynamo.clock), clock=dynamo.clock
        )
        for _ in range(4)
    ]
    await asyncio.gather(*(log.note_read("response", "resp_1", by=ADMIN) for log in logs))
    assert len(await entries(dynamo, "acme")) == 1


class CountedClient:
    """A client that counts its calls, or refuses them."""

    def __init__(self, client: object, *, works: bool = True) -> None:
        self.client = client
        self.works = works
        self.calls = 0

    async def call(self, operation: str, body: object, **more: object) -> object:
        self.calls += 1
        if not self.works:
            raise StoreUnavailable("down", maybe_applied=False)
        return await self.client.call(operation, body, **more)  # type: ignore[attr-defined]


async def test_c98_a_flood_is_one_write_of_a_process(dynamo: DynamoStores) -> None:
    counted = CountedClient(dynamo.client)
    log = DynamoAccessLog(counted, dynamo.tables, ids=IdSource(dynamo.clock), clock=dynamo.clock)  # type: ignore[arg-type]
    nobody = unauthenticated("192.0.2.7", None)
    await asyncio.gather(
        *(log.note_refusal("call.refused", "GET /v1/key", "x", by=nobody) for _ in range(500))
    )
    for _ in range(50):
        await log.note_read("content", "gen-1", by=ADMIN)
    assert counted.calls == 2


async def test_c98_nothing_is_read_without_an_entry_and_a_refusal_needs_none(
    dynamo: DynamoStores,
) -> None:
    counted = CountedClient(dynamo.client, works=False)
    log = DynamoAccessLog(counted, dynamo.tables, ids=IdSource(dynamo.clock), clock=dynamo.clock)  # type: ignore[arg-type]
    await log.note_refusal("call.refused", "GET /v1/key", "x", by=ADMIN)
    for _ in range(2):
        with pytest.raises(LedgerError):
            await log.note_read("content", "gen-1", by=ADMIN)
    counted.works = True
    await log.note_refusal("call.refused", "GET /v1/key", "x", by=ADMIN)
    await log.note_read("content", "gen-1", by=ADMIN)
    assert len(await entries(dynamo, "acme")) == 2
