"""The erasure of an end user from records and content, on DynamoDB and a folder of objects.

Keeps C99.
"""

from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contract.test_activity import MIDNIGHT_S, generated
from tests.contract.test_audit_log import ADMIN, entries
from tests.stores import RETENTION_S, DynamoStores, funded_key
from tollgate.aws.objects import FolderObjects
from tollgate.core.clock import DAY_S
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.erasure import Erasure


class BrokenLog(ObjectContentLog):
    """A log whose content cannot be deleted."""

    async def delete(self, workspace_id: str, generation_id: str) -> None:
        raise LedgerError("service_unavailable", "away")  # type: ignore[arg-type]


def logs_of(dynamo: DynamoStores, folder: Path) -> tuple[ObjectContentLog, ...]:
    objects = FolderObjects(folder)
    return (
        ObjectContentLog(objects, clock=dynamo.clock),
        ObjectContentLog(objects, clock=dynamo.clock, kind="responses"),
    )


def erasure_of(dynamo: DynamoStores, logs: tuple[ObjectContentLog, ...]) -> Erasure:
    return Erasure(
        dynamo.client,
        dynamo.tables,
        dynamo.generations,  # type: ignore[arg-type]
        logs,
        retention_s=RETENTION_S,
        ids=IdSource(dynamo.clock),
        clock=dynamo.clock,
    )


async def test_c99_an_erased_user_is_in_no_record_and_its_content_is_gone(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    _, principal = await funded_key(dynamo, 10**6)
    made = [
        await generated(dynamo, principal, MIDNIGHT_S - DAY_S * day, 5, user=user)
        for day, user in ((9, "eve@acme"), (0, "bob@acme"), (0, "eve@acme"))
    ]
    logs = logs_of(dynamo, tmp_path)
    for log in logs:
        for record in made:
            await log.keep("acme", record.id, b"secret", days=30)
    dynamo.clock.now = MIDNIGHT_S + 3_600

    erased = await erasure_of(dynamo, logs).erase_user("acme", "eve@acme", by=ADMIN)
    assert (erased.records, erased.days) == (2, ("2026-11-12", "2026-11-21"))
    for record, user in zip(made, (None, "bob@acme", None), strict=True):
        stored = await dynamo.generations.get("acme", record.id)
        assert stored == replace(record, user=user)
        for log in logs:
            content = await log.get("acme", record.id)
            assert (content is None) == (user is None)
    [entry] = [it for it in await entries(dynamo, "acme") if it.action == "user.erase"]
    assert entry.target == erased.user == sha256(b"eve@acme").hexdigest()
    assert entry.after == {"records": "2", "unreadable": "0"}
    again = await erasure_of(dynamo, logs).erase_user("acme", "eve@acme", by=ADMIN)
    assert again.records == 0


async def test_c99_an_erasure_that_failed_has_no_proof_and_continues(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    _, principal = await funded_key(dynamo, 10**6)
    record = await generated(dynamo, principal, MIDNIGHT_S, 5, user="eve@acme")
    broken = (BrokenLog(FolderObjects(tmp_path), clock=dynamo.clock),)
    with pytest.raises(LedgerError):
        await erasure_of(dynamo, broken).erase_user("acme", "eve@acme", by=ADMIN)
    assert await dynamo.generations.get("acme", record.id) == record
    assert "user.erase" not in {it.action for it in await entries(dynamo, "acme")}
    logs = logs_of(dynamo, tmp_path)
    assert (await erasure_of(dynamo, logs).erase_user("acme", "eve@acme", by=ADMIN)).records == 1
