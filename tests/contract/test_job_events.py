"""The ends of batches and background responses are events of webhooks.

Keeps C83, C84, C102.
"""

import asyncio
from functools import partial

import pytest

from tests.contract.receiver import Receiver, receiver, tls
from tests.contract.test_webhooks import Hooks, Tls
from tests.stores import DynamoStores
from tollgate.core.background import BackgroundResponse
from tollgate.core.batches import Batch, StepTry
from tollgate.core.ids import IdSource
from tollgate.core.shadows import ShadowRun, claim
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.batches.background import BACKGROUND
from tollgate.stores.batches.batches import DynamoBatchStore
from tollgate.stores.batches.jobs import SHADOWS, DynamoJobStore
from tollgate.stores.batches.keys import batch_partition
from tollgate.stores.ports.batches import BatchPlace
from tollgate.stores.rules.background import begin_answer, finish_answer
from tollgate.stores.rules.batches import VALIDATION, refuse_file
from tollgate.stores.rules.batches import begin_try as begin_batch

__all__ = ["receiver", "tls"]


@pytest.fixture
def hooks(dynamo: DynamoStores, receiver: Receiver, tls: Tls) -> Hooks:
    return Hooks(dynamo, receiver, tls)


async def test_c83_c84_the_ends_of_jobs_are_events_of_their_workspace(hooks: Hooks) -> None:
    await hooks.make("batch.*", "response.completed")
    await hooks.make("batch.*", workspace_id="other")
    stores = hooks.dynamo
    now_s, ids = stores.clock.now_s(), IdSource(stores.clock)
    place = (stores.client, stores.tables.core)
    batches = DynamoBatchStore(*place, ids=ids, clock=stores.clock)
    batch = Batch(
        id=f"batch_{ids.new_id()}",
        workspace_id="acme",
        key_id="key",
        endpoint="/v1/embeddings",
        input_file_id="file-1",
        times={"validating": int(now_s)},
        expires_s=int(now_s) + 86_400,
    )
    await batches.create(batch)
    at = BatchPlace("acme", batch.id)
    trial = StepTry(ids.new_id(), now_s + 60)
    await batches.change(at, partial(begin_batch, step=VALIDATION, trial=trial, now_s=now_s))
    await batches.change(at, lambda found: refuse_file(found, trial.id, (), lines=0, now_s=now_s))
    answers = DynamoJobStore(*place, BACKGROUND, ids=ids, clock=stores.clock)
    for status in ("completed", "failed"):
        response = BackgroundResponse(
            id=f"resp_{ids.new_id()}",
            workspace_id="acme",
            key_id="key",
            created_s=int(now_s),
            days=7,
        )
        await answers.create(response)
        at = BatchPlace("acme", response.id)
        await answers.change(at, partial(begin_answer, trial=trial, now_s=now_s))
        done = partial(finish_answer, try_id=trial.id, status=status, now_s=now_s)
        ended = await answers.change(at, done)
        assert ended is not None
        if status == "completed":
            completed = ended
    for _ in range(2):
        await hooks.run()
    found = {event["type"]: event["data"] for event in hooks.events}
    assert found == {"batch.failed": {"id": batch.id}, "response.completed": {"id": completed.id}}
    assert len(hooks.events) == 2
    assert not await answers.open_jobs()


async def test_c102_a_shadow_run_is_claimed_once_and_is_no_event(hooks: Hooks) -> None:
    await hooks.make("*")
    stores = hooks.dynamo
    now_s, ids = stores.clock.now_s(), IdSource(stores.clock)
    runs = DynamoJobStore(stores.client, stores.tables.core, SHADOWS, ids=ids, clock=stores.clock)
    run = ShadowRun(id=f"shadow_{ids.new_id()}", workspace_id="acme", key_id="key", created_s=now_s)
    await runs.create(run)
    place = BatchPlace("acme", run.id)
    assert await runs.open_jobs() == [place]
    changes = [partial(claim, shadow_id=str(worker)) for worker in range(4)]
    claims = await asyncio.gather(*(runs.change(place, change) for change in changes))
    assert len([each for each in claims if each is not None]) == 1
    assert await runs.open_jobs() == []
    rows = await all_rows(stores.client, stores.tables.core, batch_partition("acme"), "E#")
    assert not rows
