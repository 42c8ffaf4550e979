"""`tollgate upkeep subjects` as a process: it finishes an erasure, and says what came of it.

Keeps C99.
"""

import asyncio
import json
from asyncio.subprocess import PIPE, STDOUT
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.clocks import ShiftedClock
from tests.deployment import PATIENCE_S, Deployment, open_stores
from tests.functional.test_serve import variables
from tests.local_server import TOLLGATE
from tests.stores import TESTER, record_of
from tollgate.core.ids import IdSource
from tollgate.core.records.subjects import PrivacySubject
from tollgate.stores.subjects.standing import DynamoSubjectStore

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_c99_a_process_finishes_an_erasure_that_was_requested_two_hours_ago(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace, earlier = await deployment.workspace(), ShiftedClock(-7_200)
    async with aclosing(open_stores(deployment.settings, earlier)) as stores:
        principal = await deployment.stores.keys.authenticate(workspace.inference.secret)
        hold = await stores.ledger.hold(principal, 1_000)
        await stores.ledger.settle(hold, replace(record_of(hold, 7), user="eve"))
        subject = PrivacySubject(workspace_id=workspace.id, kind="user", id="eve")
        requests = DynamoSubjectStore(
            stores.client, stores.tables, ids=IdSource(earlier), clock=earlier
        )
        await requests.request(subject, by=TESTER)
    folder = {"TOLLGATE_OBJECTS_FOLDER": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        *(TOLLGATE, "upkeep", "subjects"),
        env=variables(deployment, **folder),
        stdout=PIPE,
        stderr=STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0, output.decode()
    told = json.loads(output.decode().splitlines()[-1])
    assert (told["message"], told["finished"]) == ("erasures and legal holds served", 1)
    record = await deployment.stores.generations.get(workspace.id, hold.id)
    assert record is not None
    assert (record.user, record.cost_nano_usd) == (None, 7)
