"""Legal holds, which postpone erasures and keep what would expire.

Keeps C99.
"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contract.files import NEW
from tests.contract.test_activity import MIDNIGHT_S, generated
from tests.contract.test_audit_log import ADMIN, entries
from tests.contract.test_erasure import ACME, ANA, EVE, HELD, Place, actions
from tests.stores import RETENTION_S, TESTER, DynamoStores, MemoryStores, funded_key, scan_items
from tollgate.core.clock import DAY_S
from tollgate.core.errors import AccessError, RequestError
from tollgate.core.records.subjects import STANDING_MAX, PrivacySubject
from tollgate.stores.records.contents import ObjectContentLog


async def test_c99_a_hold_postpones_an_erasure_and_keeps_what_would_expire(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    _, key = await funded_key(dynamo, 10**6)
    record = await generated(dynamo, key, MIDNIGHT_S, 5, user="eve@acme")
    await place.keep([record])
    dynamo.clock.now = MIDNIGHT_S + 7_200
    await dynamo.subjects.request(EVE, by=ADMIN)
    assert await dynamo.subjects.hold(HELD, by=ADMIN)
    assert not await dynamo.subjects.hold(HELD, by=ADMIN)
    for _ in range(2):
        assert (await place.rounds().run("acme")).held == 1
        assert (await place.preservation().run("acme")).preserved == 1
        dynamo.clock.now += 3_700
    [item] = await scan_items(dynamo.client, dynamo.tables.generations)
    assert "ttl" not in item
    assert await dynamo.generations.get("acme", record.id) == record
    assert len(await place.names("held/")) == 2
    [hold] = await dynamo.subjects.holds("acme")
    assert hold.preserved_s is not None

    assert await dynamo.subjects.release(HELD, by=ADMIN)
    assert await dynamo.subjects.holds("acme") == ()
    assert (await place.preservation().run("acme")).released == 1
    assert await place.names("held/") == []
    [item] = await scan_items(dynamo.client, dynamo.tables.generations)
    assert int(item["ttl"]["N"]) == record.created_s + RETENTION_S
    assert await dynamo.subjects.all_holds("acme") == ()
    assert (await place.rounds().run("acme")).finished == 1
    found = actions(await entries(dynamo, "acme"))
    assert {"hold.place", "hold.release", "erasure.request", "erasure.finish"} <= found


async def test_c99_a_file_of_a_member_on_hold_outlives_its_expiry(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    expiring = replace(NEW, member_id="ana@acme", expires_after_s=7_200)
    file = await place.files.create(expiring, b"words")
    await place.files.create(replace(expiring, member_id="bob@acme"), b"other words")
    await dynamo.subjects.hold(replace(HELD, subject=ANA), by=ADMIN)
    assert (await place.preservation().run("acme")).copied == 1
    assert (await place.preservation().run("acme")).copied == 0
    dynamo.clock.now += 7_201
    assert (await place.files.page("acme", limit=9)).found == ()
    assert await place.names("files/") == []
    [copy] = await place.names("held/")
    assert copy.endswith(file.id.removeprefix("file-"))
    assert await place.objects.get(copy) == b"words"


async def test_c99_records_of_another_subject_on_hold_stay(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    _, key = await funded_key(dynamo, 10**6)
    labels = {"member": "ana@acme"}
    record = await generated(dynamo, key, MIDNIGHT_S, 5, user="eve@acme", labels=labels)
    dynamo.clock.now = MIDNIGHT_S + 7_200
    await dynamo.subjects.hold(replace(HELD, subject=ANA), by=ADMIN)
    proof = await place.erase(EVE)
    assert proof.finished_s is None
    assert proof.waiting == ("records on legal hold: 1",)
    assert await dynamo.generations.get("acme", record.id) == record


@pytest.mark.parametrize("held", [EVE, ACME])
async def test_c99_a_request_for_what_is_on_hold_is_refused(
    stores: DynamoStores | MemoryStores, held: PrivacySubject
) -> None:
    assert await stores.subjects.hold(replace(HELD, subject=held), by=ADMIN)
    with pytest.raises(AccessError, match="on legal hold"):
        await stores.subjects.request(EVE, by=ADMIN)
    assert await stores.subjects.release(replace(HELD, subject=held), by=ADMIN)
    assert not await stores.subjects.release(replace(HELD, subject=held), by=ADMIN)
    erasure = await stores.subjects.request(EVE, by=ADMIN)
    assert await stores.subjects.request(EVE, by=TESTER) == erasure
    assert (await stores.subjects.erasures("acme")).found == (erasure,)
    assert (await stores.subjects.erasures("other")).found == ()


async def test_c99_erasures_come_in_pages_and_have_a_limit(
    stores: DynamoStores | MemoryStores,
) -> None:
    requested = [
        await stores.subjects.request(replace(EVE, id=str(number)), by=TESTER)
        for number in range(STANDING_MAX)
    ]
    with pytest.raises(RequestError, match="100 open erasures"):
        await stores.subjects.request(EVE, by=TESTER)
    first = await stores.subjects.erasures("acme", limit=60)
    rest = await stores.subjects.erasures("acme", after=first.next, limit=60)
    assert (len(first.found), rest.next) == (60, None)
    found = {it.subject for it in (*first.found, *rest.found)}
    assert found == {it.subject for it in requested}


async def test_c99_a_hold_stops_a_round_that_is_running(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    _, key = await funded_key(dynamo, 10**6)
    records = [
        await generated(dynamo, key, MIDNIGHT_S - DAY_S * day, 5, user="eve@acme") for day in (9, 0)
    ]
    await place.keep(records)

    class Holding(ObjectContentLog):
        """A log, of which the first deletion meets a new hold."""

        async def delete(self, workspace_id: str, generation_id: str) -> None:
            await dynamo.subjects.hold(HELD, by=ADMIN)
            await super().delete(workspace_id, generation_id)

    dynamo.clock.now = MIDNIGHT_S + 7_200
    await dynamo.subjects.request(EVE, by=ADMIN)
    rounds = place.rounds((Holding(place.objects, clock=dynamo.clock),))
    assert (await rounds.run("acme")).held == 1
    assert await dynamo.generations.get("acme", records[1].id) == records[1]
    assert await place.logs[0].get("acme", records[1].id) == b"secret"
