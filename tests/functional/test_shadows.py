"""Shadow traffic under `tollgate serve`, and the report of its payer.

Keeps C102.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, Workspace
from tests.functional.test_batches import records_of
from tests.functional.test_serve import served, variables
from tests.local_server import TOLLGATE

# A run waits for ten seconds, and a server looks for open runs every five.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]


def shadowed_catalog(deployment: Deployment, folder: Path, payer: Workspace) -> Path:
    """The deployment's catalog, with a route `echo` that has a shadow that a workspace pays."""
    catalog: dict[str, Any] = json.loads(deployment.settings.catalog_file.read_bytes())
    catalog["routes"]["echo"] = {
        "description": "Shadowed",
        "try": [{"test/echo": 100}],
        "shadow": {
            "model": "test/echo",
            "share": 100,
            "workspace": payer.id,
            "key_id": payer.inference.id,
        },
    }
    file = folder / "shadowed.json"
    file.write_text(json.dumps(catalog))
    return file


async def test_c102_a_server_runs_shadows_and_the_payer_reads_the_report(
    deployment: Deployment, tmp_path: Path
) -> None:
    caller, payer = await deployment.workspace(content_days=7), await deployment.workspace()
    private = await deployment.workspace()
    catalog = shadowed_catalog(deployment, tmp_path, payer)
    folders = {"TOLLGATE_CATALOG_FILE": str(catalog), "TOLLGATE_OBJECTS_FOLDER": str(tmp_path)}
    async with served(deployment, **folders) as server:
        for workspace, stream in ((caller, False), (caller, True), (private, False)):
            async with server.post(workspace.inference, model="echo", stream=stream) as reply:
                assert reply.status == 200, await reply.text()
                await reply.read()
        async with asyncio.timeout(60):
            while len(await records_of(deployment, payer)) < 2:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.5)
        report = await asyncio.create_subprocess_exec(
            *(TOLLGATE, "shadow", "report", "--json"),
            env=variables(
                deployment,
                TOLLGATE_URL=f"{server.url}/api/v1",
                TOLLGATE_KEY=payer.management.secret,
            ),
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await report.communicate()
        named = set()
        for original in await records_of(deployment, caller):
            url = f"{server.url}/v1/generation?id={original.id}"
            bearer = {"authorization": f"Bearer {caller.inference.secret}"}
            async with deployment.http.get(url, headers=bearer) as reply:
                named.add((await reply.json())["data"]["shadowed_by"]["generation_id"])
    [row] = json.loads(output)
    assert (row["route"], row["shadow"], row["requests"]) == ("echo", "test/echo", "2")
    originals = {record.id for record in await records_of(deployment, caller)}
    shadows = await records_of(deployment, payer)
    assert {each.shadow.generation_id for each in shadows if each.shadow} == originals
    assert named == {f"gen-{each.id}" for each in shadows}
    balance = await deployment.administration.credits.balance(payer.id)
    assert balance.spent_nano_usd == sum(each.cost_nano_usd for each in shadows)
    assert balance.held_nano_usd == 0
