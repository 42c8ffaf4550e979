"""The erasure of batches and background responses, on DynamoDB and a folder of objects.

Keeps C99.
"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contract.test_activity import MIDNIGHT_S
from tests.contract.test_erasure import ACME, ANA, EVE, HELD, Place
from tests.stores import TESTER, DynamoStores, funded_key
from tollgate.core.background import BackgroundResponse
from tollgate.core.batches import Batch
from tollgate.core.ids import IdSource
from tollgate.core.records.subjects import PrivacySubject
from tollgate.stores.batches.background import BACKGROUND, StoredBackgroundParts
from tollgate.stores.batches.batches import DynamoBatchStore
from tollgate.stores.batches.jobs import DynamoJobStore
from tollgate.stores.ports.administration import WorkspaceSettings
from tollgate.stores.ports.batches import BatchPlace
from tollgate.stores.rules.background import cancel_answer
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.stores.rules.object_names import batch_folder


class Jobs:
    """The jobs of a place, each with contents."""

    def __init__(self, place: Place) -> None:
        dynamo = place.dynamo
        at, ids = (dynamo.client, dynamo.tables.core), IdSource(dynamo.clock)
        self.place = place
        self.ids = ids
        self.batches = DynamoBatchStore(*at, ids=ids, clock=dynamo.clock)
        self.answers = DynamoJobStore(*at, BACKGROUND, ids=ids, clock=dynamo.clock)
        self.parts = StoredBackgroundParts(place.objects, place.logs[1])

    async def batch(self, member_id: str | None, workspace_id: str = "acme") -> BatchPlace:
        batch = Batch(
            id=f"batch_{self.ids.new_id()}",
            workspace_id=workspace_id,
            key_id="k",
            member_id=member_id,
            endpoint="/v1/embeddings",
            input_file_id="file-1",
            times={"validating": MIDNIGHT_S},
            expires_s=MIDNIGHT_S,
        )
        await self.batches.create(batch)
        await self.place.objects.put(batch_folder(batch) + "index", b"secret")
        return BatchPlace(workspace_id, batch.id)

    async def end_batch(self, at: BatchPlace) -> None:
        await self.batches.change(at, lambda found: replace(found, status="completed"))

    async def answer(self, member_id: str | None, user: str | None = None) -> BatchPlace:
        job = BackgroundResponse(
            id=f"resp_{self.ids.new_id()}",
            workspace_id="acme",
            key_id="k",
            member_id=member_id,
            user=user,
            created_s=MIDNIGHT_S,
            days=7,
        )
        await self.answers.create(job)
        await self.parts.put(job, "request", b"secret")
        await self.parts.keep(job, b"secret")
        at = BatchPlace("acme", job.id)
        await self.answers.change(at, lambda found: cancel_answer(found, MIDNIGHT_S))
        return at


@pytest.fixture
def jobs(dynamo: DynamoStores, tmp_path: Path) -> Jobs:
    dynamo.clock.now = MIDNIGHT_S
    return Jobs(Place(dynamo, tmp_path))


async def test_c99_a_members_jobs_are_erased_once_they_have_ended(jobs: Jobs) -> None:
    place, dynamo = jobs.place, jobs.place.dynamo
    await dynamo.members.create("acme", ANA.id, MemberSettings(role="developer"), by=TESTER)
    hers, others = await jobs.batch(ANA.id), await jobs.batch(None)
    answer, kept = await jobs.answer(ANA.id), await jobs.answer("ben@acme")
    dynamo.clock.now = MIDNIGHT_S + 7_200
    await dynamo.members.remove("acme", ANA.id, by=TESTER)
    proof = await place.erase(ANA)
    assert proof.finished_s is None
    assert proof.waiting == ("jobs that have not ended: 1",)
    await jobs.end_batch(hers)
    await jobs.end_batch(others)
    await place.rounds().run("acme")
    [proof] = (await dynamo.subjects.erasures("acme")).found
    assert proof.finished_s is not None
    assert proof.erased["jobs"] == 2
    assert await jobs.batches.get(hers) is None
    assert await jobs.answers.get(answer) is None
    assert await jobs.batches.get(others) is not None
    assert await jobs.answers.get(kept) is not None
    names = [*await place.names("batches/"), *await place.names("responses/")]
    assert len(names) == 3
    assert not any(hers.batch_id in name or answer.batch_id[5:] in name for name in names)


async def test_c99_an_end_users_responses_are_erased_unless_they_are_held(jobs: Jobs) -> None:
    place, dynamo = jobs.place, jobs.place.dynamo
    eves, others = await jobs.answer(None, user=EVE.id), await jobs.answer(None, user="dan")
    dynamo.clock.now = MIDNIGHT_S + 7_200
    proof = await place.erase(EVE)
    assert (proof.finished_s is not None, proof.erased["jobs"]) == (True, 1)
    assert await jobs.answers.get(eves) is None
    assert await jobs.answers.get(others) is not None


async def test_c99_a_workspaces_jobs_are_erased_but_for_those_on_hold(jobs: Jobs) -> None:
    place, dynamo = jobs.place, jobs.place.dynamo
    await dynamo.workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    await funded_key(dynamo, 10**6)
    batch, theirs = await jobs.batch(None), await jobs.batch(None, workspace_id="other")
    for at in (batch, theirs):
        await jobs.end_batch(at)
    answer = await jobs.answer("ben@acme")
    dynamo.clock.now = MIDNIGHT_S + 7_200
    await dynamo.workspaces.set_locked("acme", locked=True, by=TESTER)
    assert (await place.erase(ACME)).finished_s is not None
    assert await jobs.batches.get(batch) is None
    assert await jobs.answers.get(answer) is None
    assert await jobs.batches.get(theirs) is not None
    assert len(await place.names("batches/")) == 1


def test_c99_a_hold_on_an_end_user_covers_its_responses() -> None:
    job = BackgroundResponse(
        id="resp_x", workspace_id="acme", key_id="k", user=EVE.id, created_s=0, days=7
    )
    assert HELD.subject.has_job(job)
    assert not PrivacySubject(workspace_id="acme", kind="user", id="dan").has_job(job)
