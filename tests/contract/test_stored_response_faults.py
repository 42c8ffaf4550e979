"""Responses that cannot be stored or read, and the audit of deletions.

Keeps C80, C90.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests.asgi import request
from tests.memory.responses import MemoryResponses
from tests.scripted import Scripted, says
from tests.stored_responses import PATH, open_shop
from tests.stores import TESTER, DynamoStores, HandClock, MemoryStores
from tollgate.aws.objects import ObjectStore
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import AuditFilter
from tollgate.stores.ports.administration import ResponseStore
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.responses import AuditedResponses
from tollgate.web.records import response_storage


@pytest.fixture
def log(objects: ObjectStore) -> ObjectContentLog:
    return ObjectContentLog(objects, clock=HandClock(0), kind="responses")


async def test_c80_a_conversation_beyond_the_bound_is_answered_and_not_stored(
    log: ObjectContentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_storage, "RESPONSE_BYTES_MAX", 1_000)
    shop = await open_shop(log)
    reply = await shop.ask("word " * 400)
    assert (reply.status, reply.json["store"]) == (200, False)


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        ({"input_": "x" * 1_500}, True),
        # Lambda takes a reply as a text inside JSON, where a quotation mark has four characters.
        ({"input_": '"' * 1_500}, False),
        ({"input_": "Hi", "instructions": '"' * 1_500}, False),
    ],
)
async def test_c80_what_no_reply_has_room_for_is_answered_and_not_stored(
    log: ObjectContentLog, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], stored: bool
) -> None:
    monkeypatch.setattr(response_storage, "REPLY_BYTES_MAX", 4_000)
    shop = await open_shop(log)
    reply = await shop.ask(**fields)
    assert (reply.status, reply.json["store"]) == (200, stored)


@pytest.mark.parametrize(("number", "stored"), [("1e999", False), ('"Infinity"', True)])
async def test_c80_a_number_beyond_any_is_answered_and_not_stored(
    log: ObjectContentLog, number: str, stored: bool
) -> None:
    shop = await open_shop(log)
    item = {"role": "user", "content": "Hi", "odd": "NUMBER"}
    sent = json.dumps({"model": "acme/small", "input": [item]}).replace('"NUMBER"', number)
    reply = await request(
        shop.app,
        "POST",
        PATH,
        headers={"authorization": f"Bearer {shop.secret}"},
        body=sent.encode(),
    )
    assert (reply.status, reply.json["store"]) == (200, stored)
    shown = await shop.call("GET", f"{reply.json['id']}/input_items")
    assert shown.status == (200 if stored else 404)


@pytest.mark.parametrize("kept", [b"", b"nonsense", b"{}", b'{"response":1,"input":2}'])
async def test_c80_a_corrupt_response_is_not_found(log: ObjectContentLog, kept: bytes) -> None:
    shop = await open_shop(log)
    id_ = IdSource(HandClock()).new_id()
    await log.keep("acme", id_, kept, days=7)
    refused = await shop.ask("Hi", previous_response_id=f"resp_{id_}")
    assert refused.status == 400, refused.body
    assert refused.error["code"] == "previous_response_not_found"
    assert (await shop.call("GET", f"resp_{id_}/input_items")).status == 404


async def test_c80_what_broke_is_not_stored(log: ObjectContentLog) -> None:
    shop = await open_shop(log, near=Scripted([*says("Hel"), RuntimeError("gone")]))
    reply = await shop.ask("Hi", stream=True)
    last = json.loads(reply.body.split(b"\n\n")[-2].splitlines()[1][6:])
    assert (last["type"], last["response"]["store"]) == ("response.failed", False)
    assert (await shop.call("GET", last["response"]["id"])).status == 404


@pytest.fixture
async def audited(
    stores: MemoryStores | DynamoStores, log: ObjectContentLog
) -> AsyncIterator[ResponseStore]:
    """Stored responses beside every audit log."""
    if isinstance(stores, MemoryStores):
        yield MemoryResponses(stores.books, log, stores.clock)
        return
    yield AuditedResponses(
        stores.client, stores.tables, log, ids=IdSource(stores.clock), clock=stores.clock
    )


async def test_c80_c90_a_deletion_is_an_entry_of_its_workspace(
    stores: MemoryStores | DynamoStores, audited: ResponseStore, log: ObjectContentLog
) -> None:
    id_ = IdSource(HandClock()).new_id()
    await log.keep("acme", id_, b"{}", days=30)
    assert await audited.delete("other", id_, by=TESTER) is False
    assert await audited.get("acme", id_) == b"{}"
    assert await audited.delete("acme", id_, by=TESTER) is True
    assert await audited.delete("acme", id_, by=TESTER) is False
    assert await audited.get("acme", id_) is None
    wanted = AuditFilter(since_s=0, until_s=int(stores.clock.now_s()) + 1, target=f"resp_{id_}")
    page = await stores.audit_log.page("acme", wanted, limit=10)
    assert [(it.action, it.target) for it in page.found] == [("response.delete", f"resp_{id_}")]


# A race shows only on an engine whose transactions are atomic, as moto's are not.
@pytest.mark.parametrize("stores", ["memory", "ministack"], indirect=True)
async def test_c80_c90_many_deletions_of_one_response_at_once_are_one(
    stores: MemoryStores | DynamoStores, audited: ResponseStore, log: ObjectContentLog
) -> None:
    id_ = IdSource(HandClock()).new_id()
    await log.keep("acme", id_, b"{}", days=30)
    deleted = await asyncio.gather(*(audited.delete("acme", id_, by=TESTER) for _ in range(24)))
    assert deleted.count(True) == 1
    assert await audited.get("acme", id_) is None
    wanted = AuditFilter(since_s=0, until_s=int(stores.clock.now_s()) + 1, target=f"resp_{id_}")
    assert len((await stores.audit_log.page("acme", wanted, limit=50)).found) == 1


async def test_c80_a_deletion_whose_process_was_killed_is_ended_by_the_next_one(
    dynamo: DynamoStores, log: ObjectContentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = IdSource(HandClock()).new_id()
    responses = AuditedResponses(
        dynamo.client, dynamo.tables, log, ids=IdSource(dynamo.clock), clock=dynamo.clock
    )
    await log.keep("acme", id_, b"{}", days=30)
    with monkeypatch.context() as killed:
        killed.setattr(log, "delete", None)
        with pytest.raises(TypeError):
            await responses.delete("acme", id_, by=TESTER)
    assert await responses.delete("acme", id_, by=TESTER) is False
    assert await responses.get("acme", id_) is None
