"""Batches are stored and listed, and change only from the state that was read.

Keeps C83.
"""

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from tests.memory.batches import MemoryBatchStore
from tests.stores import DynamoStores, Stores, record_of
from tollgate.core.batches import Batch, StepTry, Tally
from tollgate.core.errors import RequestError
from tollgate.core.ids import IdSource
from tollgate.core.ownership import OwnerScope
from tollgate.stores.batches.batches import DynamoBatchStore
from tollgate.stores.batches.records import DynamoLineRecords
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.batches import BatchPlace, BatchStore
from tollgate.stores.rules.batches import (
    JOIN,
    VALIDATION,
    begin_try,
    finish_join,
    finish_piece,
    finish_validation,
    next_step,
)


def batch_store(stores: Stores) -> BatchStore:
    if isinstance(stores, DynamoStores):
        ids = IdSource(stores.clock)
        return DynamoBatchStore(stores.client, stores.tables.core, ids=ids, clock=stores.clock)
    return MemoryBatchStore()


def a_batch(stores: Stores, workspace_id: str = "acme", member_id: str | None = None) -> Batch:
    now_s = int(stores.clock.now_s())
    return Batch(
        id=f"batch_{IdSource(stores.clock).new_id()}",
        workspace_id=workspace_id,
        key_id="key",
        member_id=member_id,
        endpoint="/v1/embeddings",
        input_file_id="file-1",
        times={"validating": now_s},
        expires_s=now_s + 86_400,
        metadata={"job": "nightly"},
    )


def place_of(batch: Batch) -> BatchPlace:
    return BatchPlace(batch.workspace_id, batch.id)


async def test_c83_a_batch_is_found_in_its_workspace_alone(stores: Stores) -> None:
    store, batch = batch_store(stores), a_batch(stores)
    await store.create(batch)
    assert await store.get(place_of(batch)) == batch
    assert await store.get(BatchPlace("other", batch.id)) is None
    assert await store.get(BatchPlace("acme", "batch_none")) is None
    assert list(await store.open_jobs()) == [place_of(batch)]


async def test_c83_a_batch_goes_through_its_steps_and_is_no_longer_open(stores: Stores) -> None:
    store, batch, now_s = batch_store(stores), a_batch(stores), stores.clock.now_s()
    await store.create(batch)
    change = partial(store.change, place_of(batch))

    async def take(step: int, name: str) -> None:
        found = await store.get(place_of(batch))
        assert found is not None
        assert next_step(found, now_s) == step
        trial = StepTry(name, now_s + 60)
        assert await change(partial(begin_try, step=step, trial=trial, now_s=now_s))
        assert (
            await change(partial(begin_try, step=step, trial=StepTry("x", 0), now_s=now_s)) is None
        )

    await take(VALIDATION, "a")
    await change(
        lambda it: finish_validation(it, "a", lines=2, pieces=1, bound_nano_usd=9, now_s=1)
    )
    await take(0, "b")
    assert await change(lambda it: finish_piece(it, 0, "other", Tally())) is None
    await change(lambda it: finish_piece(it, 0, "b", Tally(completed=2, cost_nano_usd=5)))
    await take(JOIN, "c")
    ended = await change(
        lambda it: finish_join(
            it, "c", output_file_id="file-2", error_file_id=None, not_run=0, now_s=now_s
        )
    )
    assert ended is not None
    assert (ended.status, ended.output_file_id, ended.tally.cost_nano_usd) == (
        "completed",
        "file-2",
        5,
    )
    assert await store.get(place_of(batch)) == ended
    assert not await store.open_jobs()


async def test_c83_changes_at_once_are_all_applied(stores: Stores) -> None:
    store, batch = batch_store(stores), a_batch(stores)
    await store.create(batch)

    def count(found: Batch) -> Batch:
        return replace(found, tally=found.tally.plus(Tally(completed=1)))

    await asyncio.gather(*(store.change(place_of(batch), count) for _ in range(8)))
    found = await store.get(place_of(batch))
    assert found is not None
    assert (found.tally.completed, found.revision) == (8, 8)


# A race shows only on an engine whose conditions are atomic.
@pytest.mark.parametrize("stores", ["memory", "ministack"], indirect=True)
async def test_c83_of_many_deletions_of_one_batch_at_once_one_succeeds(stores: Stores) -> None:
    store, batch = batch_store(stores), a_batch(stores)
    await store.create(batch)
    deleted = await asyncio.gather(*(store.delete(place_of(batch)) for _ in range(24)))
    assert deleted.count(True) == 1
    assert await store.get(place_of(batch)) is None
    assert await store.delete(place_of(batch)) is False


async def test_c83_batches_are_listed_newest_first_in_pages(stores: Stores) -> None:
    store = batch_store(stores)
    batches = list[Batch]()
    for number in range(5):
        stores.clock.now += 1
        batches.append(a_batch(stores, member_id="ann" if number % 2 else None))
        await store.create(batches[-1])
    await store.create(a_batch(stores, "other"))
    first = await store.page("acme", limit=3)
    assert [it.id for it in first.found] == [it.id for it in batches[:1:-1]]
    rest = await store.page("acme", limit=3, after=first.next)
    assert [it.id for it in rest.found] == [it.id for it in batches[1::-1]]
    assert rest.next is None
    of_ann = await store.page("acme", limit=9, reach=OwnerScope(owner="ann"))
    assert [it.member_id for it in of_ann.found] == ["ann", "ann"]
    with pytest.raises(RequestError, match="after"):
        await store.page("acme", limit=3, after="nonsense")


async def test_c83_the_first_record_of_a_line_decides(dynamo: DynamoStores) -> None:
    records = DynamoLineRecords(dynamo.generations)
    hold = Hold(
        id=IdSource(dynamo.clock).new_id(),
        workspace_id="acme",
        key_id="key",
        shard=0,
        wallet_nano_usd=9,
        key_nano_usd=9,
    )
    assert await records.get("acme", hold.id) is None
    lost = record_of(hold, 0, "lost")
    assert await records.decide(lost) == lost
    assert await records.decide(record_of(hold, 5)) == lost
    assert await records.get("acme", hold.id) == lost
