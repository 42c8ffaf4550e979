"""The erasure of end users, members and workspaces, on DynamoDB and a folder of objects.

Keeps C99.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contract.files import NEW, file_store
from tests.contract.test_activity import MIDNIGHT_S, generated
from tests.contract.test_audit_log import ADMIN, entries
from tests.stores import (
    RETENTION_S,
    TESTER,
    DynamoStores,
    funded_key,
    record_of,
    scan_items,
)
from tollgate.aws.objects import FolderObjects
from tollgate.core.clock import DAY_S
from tollgate.core.errors import LedgerError, RequestError
from tollgate.core.idempotency import Claim
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.records.subjects import BACKUPS_S, Erasure, LegalHold, PrivacySubject
from tollgate.core.webhooks import WebhookSettings
from tollgate.http1.egress import Egress
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.stores.records.answer_cache import ObjectAnswerCache
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.kept_answers import DynamoAnswerStore
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.stores.subjects.erasure import ErasureRounds
from tollgate.stores.subjects.jobs import JobErasure
from tollgate.stores.subjects.people import PeopleErasure
from tollgate.stores.subjects.preservation import Preservation
from tollgate.stores.subjects.stored import StoredRecords
from tollgate.stores.webhooks.endpoints import DynamoWebhookStore
from tollgate.stores.webhooks.posting import EventSender
from tollgate.stores.webhooks.sealing import PlainSecrets

EVE = PrivacySubject(workspace_id="acme", kind="user", id="eve@acme")
ANA = PrivacySubject(workspace_id="acme", kind="member", id="ana@acme")
ACME = PrivacySubject(workspace_id="acme", kind="workspace", id="acme")
HELD = LegalHold(
    subject=EVE, reason="case 7", placed_s=MIDNIGHT_S, placed_by="k", by_operator=False
)


class Place:
    """Everything that an erasure reaches."""

    def __init__(self, dynamo: DynamoStores, folder: Path) -> None:
        self.dynamo = dynamo
        self.objects = FolderObjects(folder)
        self.logs = (
            ObjectContentLog(self.objects, clock=dynamo.clock),
            ObjectContentLog(self.objects, clock=dynamo.clock, kind="responses"),
        )
        self.files = file_store(dynamo, FolderFiles(folder))
        self.answers = DynamoAnswerStore(
            dynamo.client, dynamo.tables.core, self.objects, clock=dynamo.clock
        )

    def records(self, logs: Sequence[ObjectContentLog] | None = None) -> StoredRecords:
        dynamo = self.dynamo
        return StoredRecords(
            dynamo.client,
            dynamo.tables.generations,
            dynamo.generations,  # type: ignore[arg-type]
            tuple(self.logs if logs is None else logs),
            retention_s=RETENTION_S,
            clock=dynamo.clock,
        )

    def rounds(self, logs: Sequence[ObjectContentLog] | None = None) -> ErasureRounds:
        dynamo = self.dynamo
        people = PeopleErasure(
            dynamo.client,
            dynamo.tables,
            dynamo.subjects,
            dynamo.keys,  # type: ignore[arg-type]
            files=self.files,
            clock=dynamo.clock,
        )
        jobs = JobErasure(
            dynamo.client,
            dynamo.tables,
            dynamo.subjects,
            objects=self.objects,
            files=self.files,
            clock=dynamo.clock,
        )
        return ErasureRounds(
            dynamo.subjects, self.records(logs), people, self.objects, jobs=jobs, clock=dynamo.clock
        )

    def preservation(self) -> Preservation:
        dynamo = self.dynamo
        return Preservation(
            dynamo.client,
            dynamo.tables,
            dynamo.subjects,
            self.records(),
            objects=self.objects,
            retention_s=RETENTION_S,
            clock=dynamo.clock,
        )

    async def erase(self, subject: PrivacySubject) -> Erasure:
        """Request an erasure and run the rounds until it is finished; return the proof."""
        await self.dynamo.subjects.request(subject, by=ADMIN)
        for _ in range(2):
            await self.rounds().run("acme")
            self.dynamo.clock.now += 3_700
        [erasure] = (await self.dynamo.subjects.erasures("acme")).found
        return erasure

    async def keep(self, records: Sequence[GenerationRecord]) -> None:
        for log in self.logs:
            for record in records:
                await log.keep("acme", record.id, b"secret", days=30)

    async def names(self, prefix: str) -> list[str]:
        return [found.key async for group in self.objects.list(prefix) for found in group]


class BrokenLog(ObjectContentLog):
    """A log whose content cannot be deleted."""

    async def delete(self, workspace_id: str, generation_id: str) -> None:
        raise LedgerError("service_unavailable", "away")  # type: ignore[arg-type]


def webhooks_of(dynamo: DynamoStores) -> DynamoWebhookStore:
    sealer, ids = PlainSecrets(), IdSource(dynamo.clock)
    sender = EventSender(dynamo.clock, Egress(), sealer)
    return DynamoWebhookStore(
        dynamo.client, dynamo.tables, sender, sealer, ids=ids, clock=dynamo.clock
    )


def actions(found: Sequence[object]) -> set[str]:
    return {entry.action for entry in found}  # type: ignore[attr-defined]


async def test_c99_an_erased_user_is_in_no_record_and_its_content_is_gone(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    _, principal = await funded_key(dynamo, 10**6)
    made = [
        await generated(dynamo, principal, MIDNIGHT_S - DAY_S * day, 5, user=user)
        for day, user in ((9, "eve@acme"), (0, "bob@acme"), (0, "eve@acme"))
    ]
    await place.keep(made)
    for record in made:
        claim = Claim(workspace_id="acme", key_hash=record.id, body_hash="b", request_id=record.id)
        await place.answers.claim(claim)
        await place.answers.keep(claim, b"secret")
    await ObjectAnswerCache(place.objects).put("acme", "0a1b", b"secret")
    await ObjectAnswerCache(place.objects).put("rival", "0a1b", b"secret")
    dynamo.clock.now = MIDNIGHT_S + 7_200

    proof = await place.erase(EVE)
    assert proof.finished_s is not None
    # Nobody knows whose a cached answer is.
    assert proof.erased == {"answers": 3, "jobs": 0, "records": 2}
    assert await ObjectAnswerCache(place.objects).get("rival", "0a1b") == b"secret"
    await ObjectAnswerCache(place.objects).clear("rival")
    assert proof.days == ("2026-11-12", "2026-11-21")
    assert proof.subject.id == sha256(b"eve@acme").hexdigest()
    assert proof.backups_until_s == proof.finished_s + BACKUPS_S
    for record, user in zip(made, (None, "bob@acme", None), strict=True):
        assert await dynamo.generations.get("acme", record.id) == replace(record, user=user)
        for log in place.logs:
            assert (await log.get("acme", record.id) is None) == (user is None)
    assert [name.rpartition("/")[2] for name in await place.names("answers/")] == [made[1].id]
    found = [it for it in await entries(dynamo, "acme") if it.action == "erasure.finish"]
    assert [it.target for it in found] == [proof.subject.id]
    assert found[0].after["erased.records"] == "2"
    assert "eve@acme" not in str(await scan_items(dynamo.client, dynamo.tables.core))


async def test_c99_what_a_request_writes_late_is_erased_by_the_second_round(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    _, principal = await funded_key(dynamo, 10**6)
    dynamo.clock.now = MIDNIGHT_S
    record = await generated(dynamo, principal, MIDNIGHT_S, 5, user="eve@acme")
    await dynamo.subjects.request(EVE, by=ADMIN)
    assert (await place.rounds().run("acme")).open == 1
    await place.keep([record])
    late = await generated(dynamo, principal, MIDNIGHT_S + 30, 5, user="eve@acme")
    after = await generated(dynamo, principal, MIDNIGHT_S + 300, 5, user="eve@acme")
    dynamo.clock.now = MIDNIGHT_S + 3_700
    assert (await place.rounds().run("acme")).finished == 1
    users = [await dynamo.generations.get("acme", it.id) for it in (record, late, after)]
    assert [it.user for it in users if it] == [None, None, "eve@acme"]
    assert [await log.get("acme", record.id) for log in place.logs] == [None, None]


async def test_c99_an_erasure_that_failed_has_no_proof_and_continues(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    _, principal = await funded_key(dynamo, 10**6)
    record = await generated(dynamo, principal, MIDNIGHT_S, 5, user="eve@acme")
    dynamo.clock.now = MIDNIGHT_S + 7_200
    await dynamo.subjects.request(EVE, by=ADMIN)
    dynamo.clock.now += 3_700
    broken = (BrokenLog(place.objects, clock=dynamo.clock),)
    assert (await place.rounds(broken).run("acme")).failed == 1
    assert await dynamo.generations.get("acme", record.id) == record
    assert "erasure.finish" not in actions(await entries(dynamo, "acme"))
    assert (await place.rounds().run("acme")).finished == 1
    assert (await place.rounds().run("acme")).finished == 0


async def test_c99_a_member_who_left_leaves_money_and_an_id(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    dynamo.clock.now = MIDNIGHT_S
    settings = MemberSettings(display_name="Ana Person", email="ana.p@example.com")
    for name in ("ana@acme", "bob@acme"):
        subject = f"https://issuer.example {name.upper()}"
        await dynamo.members.create("acme", name, settings, subject=subject, by=TESTER)
    keys = [
        (await funded_key(dynamo, 10**6, NewKey(workspace_id="acme", label=name, member_id=name)))[
            1
        ]
        for name in ("ana@acme", "bob@acme")
    ]
    records = [
        await generated(
            dynamo, key, MIDNIGHT_S, 5, user="eve", labels={"member": str(key.member_id)}
        )
        for key in keys
    ]
    await place.keep(records)
    files = [
        await place.files.create(replace(NEW, key_id=key.key_id, member_id=key.member_id), b"words")
        for key in keys
    ]
    await dynamo.sessions.open("acme", "ana@acme", lifetime_s=60, by=TESTER)
    dynamo.clock.now = MIDNIGHT_S + 7_200
    with pytest.raises(RequestError, match="Remove the member"):
        await dynamo.subjects.request(ANA, by=ADMIN)
    await dynamo.members.remove("acme", "ana@acme", by=TESTER)

    proof = await place.erase(ANA)
    assert proof.finished_s is not None
    # The key of the member's sessions is the second.
    assert proof.erased == {
        "answers": 0,
        "files": 1,
        "jobs": 0,
        "keys": 2,
        "members": 1,
        "records": 1,
        "sessions": 1,
    }
    ana, bob = [await dynamo.members.get("acme", name) for name in ("ana@acme", "bob@acme")]
    assert ana is not None
    assert bob is not None
    assert (ana.display_name, ana.email, ana.subject) == (None, None, None)
    assert (bob.display_name, bob.email) == ("Ana Person", "ana.p@example.com")
    assert await dynamo.members.find_by_subject("acme", "https://issuer.example ANA@ACME") == ana
    [kept] = (await dynamo.keys.list("acme")).found
    assert kept.member_id == "bob@acme"
    assert [it.id for it in (await place.files.page("acme", limit=9)).found] == [files[1].id]
    stored = [await dynamo.generations.get("acme", it.id) for it in records]
    assert stored == [replace(records[0], user=None), records[1]]
    assert [await place.logs[0].get("acme", it.id) for it in records] == [None, b"secret"]
    created = [it for it in await entries(dynamo, "acme") if it.action == "member.create"]
    assert created[0].after["email"].startswith("sha256:")
    texts = str([it for it in await entries(dynamo, "acme") if it.target == "ana@acme"])
    assert not [it for it in ("Ana Person", "ana.p@example.com", "ANA@") if it in texts]


async def test_c99_a_key_with_a_running_request_is_deleted_by_a_later_round(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    await dynamo.members.create("acme", "ana@acme", MemberSettings(), by=TESTER)
    new = NewKey(workspace_id="acme", label="ana", member_id="ana@acme")
    _, key = await funded_key(dynamo, 10**6, new)
    hold = await dynamo.ledger.hold(key, 10)
    await dynamo.members.remove("acme", "ana@acme", by=TESTER)
    proof = await place.erase(ANA)
    assert (proof.finished_s, proof.waiting) == (None, ("keys with running requests: 1",))
    await dynamo.ledger.settle(hold, record_of(hold, 7))
    proof = await place.erase(ANA)
    assert proof.finished_s is not None
    assert proof.erased["keys"] == 1
    assert await dynamo.audit.run() == []


async def test_c99_an_erased_workspace_leaves_its_books(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    place = Place(dynamo, tmp_path)
    await dynamo.workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    _, key = await funded_key(dynamo, 10**6)
    record = await generated(dynamo, key, MIDNIGHT_S, 5, user="eve")
    await place.keep([record])
    # A content whose record has expired.
    await place.logs[0].keep("acme", IdSource(dynamo.clock).new_id(), b"secret", days=90)
    await place.files.create(NEW, b"words")
    await dynamo.members.create("acme", "ana", MemberSettings(email="a@x", role="owner"), by=TESTER)
    hooks = webhooks_of(dynamo)
    await hooks.create("acme", WebhookSettings(url="https://hooks.example/"), by=TESTER)
    _, stranger = await funded_key(dynamo, 10**6, NewKey(workspace_id="other", label="k"))
    kept = await generated(dynamo, stranger, MIDNIGHT_S, 5, user="eve")
    await place.logs[0].keep("other", kept.id, b"secret", days=30)
    theirs = await place.files.create(replace(NEW, workspace_id="other"), b"words")
    dynamo.clock.now = MIDNIGHT_S + 7_200
    with pytest.raises(RequestError, match="Lock the workspace"):
        await dynamo.subjects.request(ACME, by=ADMIN)
    await dynamo.workspaces.set_locked("acme", locked=True, by=TESTER)
    before = await dynamo.credits.balance("acme")

    proof = await place.erase(ACME)
    assert proof.finished_s is not None
    assert (proof.erased["files"], proof.erased["keys"], proof.erased["members"]) == (1, 1, 1)
    assert not await hooks.list("acme")
    assert await place.names("responses/") == []
    assert [name.rpartition("/")[2] for name in await place.names("content/")] == [kept.id]
    assert await dynamo.generations.get("other", kept.id) == kept
    assert [it.id for it in (await dynamo.keys.list("other")).found] == [stranger.key_id]
    assert (await place.files.page("other", limit=9)).found == (theirs,)
    assert (await place.files.page("acme", limit=9)).found == ()
    ana = await dynamo.members.get("acme", "ana")
    assert ana is not None
    assert (ana.email, ana.removed_s) == (None, MIDNIGHT_S + 7_200)
    assert (await dynamo.keys.list("acme")).found == ()
    assert await dynamo.generations.get("acme", record.id) == replace(record, user=None)
    assert await dynamo.credits.balance("acme") == before
    assert await dynamo.audit.run() == []
