"""The seals of the audit log on DynamoDB: what was changed, removed or inserted is found.

Keeps C90.
"""

import asyncio
import gzip
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from tests.stores import TESTER, DynamoStores
from tollgate.aws.attributes import string
from tollgate.aws.objects import FolderObjects
from tollgate.core.clock import DAY_S
from tollgate.core.records.audit import SealedDay
from tollgate.stores.aws.items import AuditItem, AuditSealItem
from tollgate.stores.aws.tables import audit_key, audit_seal_key, audit_seals, audit_workspace
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.stores.records.audit_seals import AuditSealing, export_name, read_day
from tollgate.stores.rules.audit_chain import seal_day

# Noon of 2026-11-21.
DAY, NEXT = "2026-11-21", "2026-11-22"


def sealing(dynamo: DynamoStores, folder: Path | None = None) -> AuditSealing:
    bucket = None if folder is None else FolderObjects(folder)
    return AuditSealing(dynamo.client, dynamo.tables, bucket, clock=dynamo.clock)


async def two_sealed_days(dynamo: DynamoStores, folder: Path | None = None) -> None:
    """Three entries of acme on the first day, one on the second; both days are sealed."""
    await dynamo.workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    for name in ("one", "two"):
        dynamo.clock.now += 1
        await dynamo.keys.create(NewKey(workspace_id="acme", label=name), by=TESTER)
    dynamo.clock.now += 13 * 3_600
    assert await sealing(dynamo, folder).seal_due() > 0
    await dynamo.keys.create(NewKey(workspace_id="acme", label="three"), by=TESTER)
    dynamo.clock.now += DAY_S
    assert await sealing(dynamo, folder).seal_due() > 0
    dynamo.clock.now += 4 * 3_600


async def checked(dynamo: DynamoStores, workspace_id: str | None = "acme") -> Sequence[SealedDay]:
    return await dynamo.audit_log.check(workspace_id, DAY, NEXT)


async def ids_of(dynamo: DynamoStores, day: str = DAY) -> list[str]:
    return [it.id for it in await read_day(dynamo.client, dynamo.tables.core, "acme", day)]


async def store(dynamo: DynamoStores, entry_id: str, text: str) -> None:
    item = {**audit_key(audit_workspace("acme"), entry_id), AuditItem.ENTRY: string(text)}
    await dynamo.client.call("PutItem", {"TableName": dynamo.tables.core, "Item": item})


@pytest.mark.parametrize("workspace_id", ["acme", None])
async def test_c90_sealed_days_that_nobody_touched_have_no_problem(
    dynamo: DynamoStores, workspace_id: str | None
) -> None:
    await two_sealed_days(dynamo)
    first, second = await checked(dynamo, workspace_id)
    assert (first.problem, second.problem) == (None, None)
    assert first.seal is not None
    assert second.seal is not None
    assert first.seal.previous == ""
    assert second.seal.previous == first.seal.hash != second.seal.hash
    if workspace_id is not None:
        assert (first.entries, second.entries) == (3, 1)
    # A second run has nothing to do.
    assert await sealing(dynamo).seal_due() == 0


async def test_c90_a_changed_entry_is_found(dynamo: DynamoStores) -> None:
    await two_sealed_days(dynamo)
    _, second_id, _ = await ids_of(dynamo)
    entries = await read_day(dynamo.client, dynamo.tables.core, "acme", DAY)
    await store(dynamo, second_id, entries[1].text.replace("one", "eve"))
    first, second = await checked(dynamo)
    assert first.first_difference == second_id
    assert first.problem == (
        f"The log was changed at entry {second_id}: 3 entries were found, and 3 were sealed."
    )
    assert second.problem is None


async def test_c90_a_removed_entry_is_found(dynamo: DynamoStores) -> None:
    await two_sealed_days(dynamo)
    *_, last = await ids_of(dynamo)
    await dynamo.forget("core", audit_workspace("acme"), last)
    first, _ = await checked(dynamo)
    assert first.problem == (
        "The log was changed after the last entry: 2 entries were found, and 3 were sealed."
    )


async def test_c90_an_inserted_entry_is_found_also_on_an_empty_day(dynamo: DynamoStores) -> None:
    await two_sealed_days(dynamo)
    dynamo.clock.now += DAY_S
    await sealing(dynamo).seal_due()
    inserted = f"{int(dynamo.clock.now - DAY_S) * 1_000:013d}.{'x' * 15}"
    await store(dynamo, inserted, "{}")
    [found] = await dynamo.audit_log.check("acme", "2026-11-23", "2026-11-23")
    assert found.problem is not None
    assert found.problem.endswith("1 entries were found, and 0 were sealed.")


async def test_c90_a_removed_seal_is_found(dynamo: DynamoStores) -> None:
    await two_sealed_days(dynamo)
    await dynamo.forget("core", audit_seals("acme"), f"D#{NEXT}")
    assert [it.problem for it in await checked(dynamo)] == [None, "The seal is missing."]


async def test_c90_a_day_that_was_sealed_again_is_found_by_the_next_seal(
    dynamo: DynamoStores,
) -> None:
    await two_sealed_days(dynamo)
    await store(dynamo, (await ids_of(dynamo))[1], "{}")
    entries = await read_day(dynamo.client, dynamo.tables.core, "acme", DAY)
    forged = msgspec.json.encode(seal_day(DAY, None, entries)).decode()
    item = {**audit_seal_key("acme", DAY), AuditSealItem.SEAL: string(forged)}
    await dynamo.client.call("PutItem", {"TableName": dynamo.tables.core, "Item": item})
    first, second = await checked(dynamo)
    assert first.problem is None
    assert second.problem == "The seal does not continue the seal of the day before."


async def test_c90_two_runs_at_once_write_one_seal_a_day(dynamo: DynamoStores) -> None:
    await dynamo.workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    dynamo.clock.now += 13 * 3_600
    await asyncio.gather(*(sealing(dynamo).seal_due() for _ in range(3)))
    [day] = await dynamo.audit_log.check("acme", DAY, DAY)
    assert (day.problem, day.entries) == (None, 1)


async def test_c90_an_exported_day_proves_itself_without_the_table(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    await two_sealed_days(dynamo, tmp_path)
    for workspace_id in ("acme", None):
        previous = ""
        for day in (DAY, NEXT):
            content = (tmp_path / export_name(workspace_id, day)).read_bytes()
            *lines, last = gzip.decompress(content).splitlines()
            assert lines
            for line in lines:
                text = line.partition(b'"entry":')[2][:-1].decode()
                shown = json.loads(line)
                previous = sha256(f"{previous}\n{shown['id']}\n{text}".encode()).hexdigest()
                assert shown["hash"] == previous
                assert shown["entry"]["id"] == shown["id"]
            assert json.loads(last)["hash"] == previous
            assert json.loads(last)["entries"] == len(lines)
