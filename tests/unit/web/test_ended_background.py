"""Background responses that have ended: each read is recorded, and one deletion succeeds.

Keeps C84, C98.
"""

import asyncio
from collections import Counter

import pytest

from tests.background import open_waiting
from tests.memory.batches import MemoryBackgroundParts
from tollgate.core.background import BackgroundResponse


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/cancel")])
async def test_c98_a_manager_who_reads_an_answer_is_recorded_on_each_way(
    method: str, path: str
) -> None:
    waiting = await open_waiting()
    manager = await waiting.key(label="manages", role="management", response_days=None)
    id_ = (await waiting.ask()).json["id"]
    entries = waiting.home.stores.books.entries_of_audit
    assert (await waiting.call("GET", id_, key=manager)).json["status"] == "queued"
    assert [it for it in entries if it.kind == "access"] == []
    await waiting.run(id_)
    shown = await waiting.call(method, f"{id_}{path}", key=manager)
    assert shown.json["output"][0]["content"][0]["text"] == "Hello"
    [read] = [it for it in entries if it.kind == "access"]
    assert (read.action, read.target) == ("response.read", id_)


async def test_c84_a_response_is_deleted_with_its_request_and_its_events() -> None:
    waiting = await open_waiting()
    id_ = (await waiting.ask(stream=False)).json["id"]
    early = await waiting.call("DELETE", id_)
    assert (early.status, "cancelled first" in early.error["message"]) == (400, True)
    await waiting.run(id_)
    assert (await waiting.call("DELETE", id_)).json["deleted"]
    assert not waiting.parts.parts
    assert not waiting.shelf.contents
    assert (await waiting.call("GET", id_)).status == 404


class SlowParts(MemoryBackgroundParts):
    """Parts whose deletion takes time, so that deletions of one response overlap."""

    async def clear(self, job: BackgroundResponse) -> None:
        await asyncio.sleep(1.0)
        await super().clear(job)


async def test_c84_c90_of_many_deletions_of_one_response_at_once_one_succeeds() -> None:
    waiting = await open_waiting()
    waiting.parts = SlowParts(waiting.shelf)
    waiting.api.changes["background"] = waiting.services
    id_ = (await waiting.ask()).json["id"]
    await waiting.run(id_)
    replies = await asyncio.gather(*(waiting.call("DELETE", id_) for _ in range(24)))
    assert Counter(reply.status for reply in replies) == {200: 1, 404: 23}
    entries = waiting.home.stores.books.entries_of_audit
    assert [it.target for it in entries if it.action == "response.delete"] == [id_]
    assert not waiting.parts.parts
