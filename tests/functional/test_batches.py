"""Batches under `tollgate serve`, by OpenAI's SDK, while servers are killed.

Keeps C83.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types import Batch

from tests.deployment import Deployment, Workspace
from tests.functional.test_serve import Served, served
from tollgate.core.records.activity import GenerationFilter
from tollgate.core.records.generation import GenerationRecord

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = "/v1/chat/completions"


def lines(count: int) -> bytes:
    return b"".join(
        json.dumps(
            {
                "custom_id": f"n{number}",
                "method": "POST",
                "url": CHAT,
                "body": {
                    "model": "test/echo",
                    "max_tokens": 20,
                    "messages": [{"role": "user", "content": f"Say {number}."}],
                },
            }
        ).encode()
        + b"\n"
        for number in range(count)
    )


def sdk(server: Served, workspace: Workspace) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{server.url}/v1", api_key=workspace.inference.secret)


async def create(client: AsyncOpenAI, count: int) -> Batch:
    file = await client.files.create(file=("lines.jsonl", lines(count)), purpose="batch")
    return await client.batches.create(
        input_file_id=file.id, endpoint=CHAT, completion_window="24h", metadata={"job": "nightly"}
    )


async def ended(client: AsyncOpenAI, batch_id: str, *, within_s: float = 60.0) -> Batch:
    async with asyncio.timeout(within_s):
        while True:
            batch = await client.batches.retrieve(batch_id)
            if batch.status in ("completed", "failed", "expired", "cancelled"):
                return batch
            await asyncio.sleep(0.2)


async def progressed(client: AsyncOpenAI, batch_id: str, *, by: int) -> None:
    """Wait until so many more lines have ended."""
    until = _completed(await client.batches.retrieve(batch_id)) + by
    async with asyncio.timeout(180):
        while True:
            if _completed(await client.batches.retrieve(batch_id)) >= until:
                return
            await asyncio.sleep(0.1)


async def output(client: AsyncOpenAI, file_id: str | None) -> list[Any]:
    assert file_id is not None
    content = await client.files.content(file_id)
    return [json.loads(line) for line in content.text.splitlines()]


async def records_of(deployment: Deployment, workspace: Workspace) -> list[GenerationRecord]:
    found = list[GenerationRecord]()
    before: str | None = None
    while True:
        page = await deployment.stores.generations.page(
            workspace.id, GenerationFilter(since_s=0, until_s=2**31), limit=500, before=before
        )
        found += page.found
        before = page.next
        if before is None:
            return found


async def check_once(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, batch: Batch, count: int
) -> None:
    """Each line is once in the output, once among the records that count, and once billed."""
    assert batch.status == "completed", batch
    assert batch.request_counts is not None
    assert batch.request_counts.completed == count
    answers = await output(client, batch.output_file_id)
    assert [each["custom_id"] for each in answers] == [f"n{number}" for number in range(count)]
    records = await records_of(deployment, workspace)
    outcomes = Counter(record.outcome for record in records)
    assert outcomes["ok"] == count, outcomes
    billed = {record.id: record.cost_nano_usd for record in records if record.outcome == "ok"}
    assert sorted(billed) == sorted(each["response"]["request_id"] for each in answers)
    balance = await deployment.administration.credits.balance(workspace.id)
    assert balance.spent_nano_usd == sum(billed.values())


async def test_c83_openais_sdk_runs_a_batch_under_serve(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace = await deployment.workspace()
    async with (
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server,
        sdk(server, workspace) as client,
    ):
        batch = await create(client, 40)
        assert (batch.status, batch.metadata) == ("validating", {"job": "nightly"})
        batch = await ended(client, batch.id)
        await check_once(deployment, workspace, client, batch, 40)
        assert [it.id for it in (await client.batches.list()).data] == [batch.id]
        assert (await client.batches.cancel(batch.id)).status == "completed"


@pytest.mark.nightly
async def test_c83_servers_are_killed_and_each_line_is_once_in_output_record_and_bill(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace, count = await deployment.workspace(), 2_000
    batch_id = ""
    for _ in range(3):
        async with served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server:
            async with sdk(server, workspace) as client:
                if not batch_id:
                    batch_id = (await create(client, count)).id
                await progressed(client, batch_id, by=200)
            server.process.kill()
            await server.process.wait()
    async with (
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server,
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)),
        sdk(server, workspace) as client,
    ):
        batch = await ended(client, batch_id, within_s=300)
        await check_once(deployment, workspace, client, batch, count)


def _completed(batch: Batch) -> int:
    return 0 if batch.request_counts is None else batch.request_counts.completed
