"""C59: answers for identical requests lie in the workspace's folder, and can be deleted.

Keeps C59.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.memory.answer_cache import MemoryAnswerCache, MemoryClearableCache
from tests.stores import TESTER, DynamoStores, MemoryStores
from tests.unit.engine.test_answer_cache import CachedHouse, cached
from tests.unit.web.test_api_app import Api, api
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.objects import FolderObjects, ListedObject, ObjectStore
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import AuditFilter
from tollgate.stores.ports.administration import ClearableCache
from tollgate.stores.ports.base import AnswerCache
from tollgate.stores.records import answer_cache
from tollgate.stores.records.answer_cache import ObjectAnswerCache
from tollgate.stores.records.audited_cache import AuditedAnswerCache
from tollgate.stores.records.expired_objects import EXPIRY_DAYS


@pytest.fixture(params=[MemoryAnswerCache, ObjectAnswerCache])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryAnswerCache | ObjectAnswerCache:
    kind = request.param
    return kind() if kind is MemoryAnswerCache else kind(FolderObjects(tmp_path))


async def test_c59_an_answer_is_found_only_in_its_workspace(cache: AnswerCache) -> None:
    await cache.put("acme", "0a1b", b"old")
    await cache.put("acme", "0a1b", b"new")
    assert await cache.get("acme", "0a1b") == b"new"
    assert await cache.get("rival", "0a1b") is None
    assert await cache.get("acme", "0a1c") is None


async def test_c59_a_workspace_deletes_its_answers_alone(
    cache: MemoryAnswerCache | ObjectAnswerCache,
) -> None:
    for name in ("a", "b"):
        await cache.put("acme", name, b"1")
    await cache.put("rival", "a", b"2")
    assert await cache.clear("acme") == 2
    assert await cache.clear("acme") == 0
    assert await cache.get("acme", "a") is None
    assert await cache.get("rival", "a") == b"2"


async def test_c59_one_call_deletes_a_bounded_number(tmp_path: Path) -> None:
    class Crowded(FolderObjects):
        deleted = 0

        async def list(self, prefix: str) -> AsyncIterator[Sequence[ListedObject]]:
            for _ in range(3):
                yield [ListedObject(key=f"{prefix}{n}", written_s=0) for n in range(600)]

        async def delete(self, key: str) -> None:
            Crowded.deleted += 1

    assert await ObjectAnswerCache(Crowded(tmp_path)).clear("acme") == answer_cache.CLEARED_MAX
    assert Crowded.deleted == answer_cache.CLEARED_MAX


async def test_c59_a_store_that_is_away_is_told_as_such(tmp_path: Path) -> None:
    class Away(FolderObjects):
        async def get(self, key: str, **limits: Any) -> bytes | None:
            raise StoreUnavailable("GET", maybe_applied=True)

    with pytest.raises(LedgerError):
        await ObjectAnswerCache(Away(tmp_path)).get("acme", "0a1b")


def test_c59_answers_expire_after_the_longest_time_for_which_they_are_reused() -> None:
    assert answer_cache.cached_folder("acme").startswith("answers/")
    assert EXPIRY_DAYS["answers/"] >= 1


async def test_c59_a_workspace_empties_its_cache(objects: ObjectStore) -> None:
    home: CachedHouse = await cached()
    store = ObjectAnswerCache(objects)
    home.home.gateway = replace(home.home.gateway, answer_cache=store)
    assert await home.status() == "miss"
    assert await home.status() == "hit; age=0"
    made: Api = await api()
    books, clock = made.home.stores.books, made.home.stores.clock
    cache = MemoryClearableCache(books, clock, store)
    call = Api(made.home, made.management, made.stranger, {"answer_cache": cache})
    other = await call("DELETE", "/v1/cache", key=call.stranger)
    assert (other.status, other.json) == (200, {"deleted": 0})
    reply = await call("DELETE", "/v1/cache", key=call.management)
    assert (reply.status, reply.json) == (200, {"deleted": 1})
    assert await home.status() == "miss"


async def test_c59_c90_emptying_a_cache_is_an_entry_of_its_workspace(
    stores: MemoryStores | DynamoStores, tmp_path: Path
) -> None:
    answers = ObjectAnswerCache(FolderObjects(tmp_path))
    for workspace_id in ("acme", "rival"):
        await answers.put(workspace_id, "0a1b", b"answer")
    cache: ClearableCache = (
        MemoryClearableCache(stores.books, stores.clock, answers)
        if isinstance(stores, MemoryStores)
        else AuditedAnswerCache(
            stores.client, stores.tables, answers, ids=IdSource(stores.clock), clock=stores.clock
        )
    )
    assert await cache.clear("rival", by=TESTER) == 1
    assert await answers.get("acme", "0a1b") == b"answer"
    wanted = AuditFilter(since_s=0, until_s=int(stores.clock.now_s()) + 1)
    [entry] = (await stores.audit_log.page("rival", wanted, limit=1)).found
    assert (entry.action, entry.target, entry.actor) == ("cache.clear", "rival", TESTER)
