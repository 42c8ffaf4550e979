"""Codes of sign-ins: kept for their time, replaced by one caller, taken by one caller."""

import asyncio

import pytest

from tests.memory.login_codes import MemoryCodes
from tests.stores import DynamoStores, MemoryStores
from tollgate.sign_in.codes import digest_of
from tollgate.stores.ports.people import CodeStore
from tollgate.stores.sign_in.codes import DynamoCodeStore

NAME = digest_of("a code")


@pytest.fixture
def codes(stores: MemoryStores | DynamoStores) -> CodeStore:
    if isinstance(stores, MemoryStores):
        return MemoryCodes(stores.clock)
    return DynamoCodeStore(stores.client, stores.tables.core, stores.clock)


async def test_a_value_is_kept_for_its_time(
    codes: CodeStore, stores: MemoryStores | DynamoStores
) -> None:
    assert await codes.read("device", NAME) is None
    assert await codes.add("device", NAME, b"first", lifetime_s=600)
    assert not await codes.add("device", NAME, b"second", lifetime_s=600)
    # Another kind has names of its own.
    assert await codes.add("user", NAME, b"other", lifetime_s=600)
    stores.clock.now += 599
    assert await codes.read("device", NAME) == b"first"
    stores.clock.now += 1
    assert await codes.read("device", NAME) is None
    assert await codes.take("device", NAME) is None
    # A row that DynamoDB has yet to delete is in nobody's way.
    assert await codes.add("device", NAME, b"third", lifetime_s=600)
    assert await codes.read("device", NAME) == b"third"


async def test_a_value_is_taken_once(codes: CodeStore) -> None:
    await codes.add("code", NAME, b"value", lifetime_s=60)
    assert await codes.take("code", NAME) == b"value"
    assert await codes.take("code", NAME) is None
    assert await codes.read("code", NAME) is None


async def test_a_value_is_replaced_while_it_is_the_old_one(
    codes: CodeStore, stores: MemoryStores | DynamoStores
) -> None:
    await codes.add("refresh", NAME, b"first", lifetime_s=60)
    assert not await codes.replace("refresh", NAME, b"another", b"second", lifetime_s=60)
    assert await codes.replace("refresh", NAME, b"first", b"second", lifetime_s=None)
    stores.clock.now += 59
    assert await codes.replace("refresh", NAME, b"second", b"third", lifetime_s=60)
    stores.clock.now += 59
    assert await codes.read("refresh", NAME) == b"third"
    stores.clock.now += 1
    assert not await codes.replace("refresh", NAME, b"third", b"fourth", lifetime_s=60)


async def test_calls_of_an_address_are_counted_by_window(
    codes: CodeStore, stores: MemoryStores | DynamoStores
) -> None:
    stores.clock.now = 600 * 1_000_000

    async def counts(what: str = "code", origin: str = "192.0.2.1") -> bool:
        return await codes.count(what, origin, window_s=600, most=2)

    assert [await counts() for _ in range(3)] == [True, True, False]
    assert await counts(origin="192.0.2.2")
    assert await counts(what="device")
    stores.clock.now += 600
    assert await counts()


async def test_of_many_at_once_one_takes_and_one_replaces(honest: DynamoStores) -> None:
    codes = DynamoCodeStore(honest.client, honest.tables.core, honest.clock)
    await codes.add("code", NAME, b"value", lifetime_s=60)
    taken = await asyncio.gather(*(codes.take("code", NAME) for _ in range(16)))
    assert sorted(taken, key=bool) == [None] * 15 + [b"value"]
    await codes.add("refresh", NAME, b"old", lifetime_s=60)
    replaced = await asyncio.gather(
        *(codes.replace("refresh", NAME, b"old", b"%d" % each, lifetime_s=60) for each in range(16))
    )
    assert sum(replaced) == 1
