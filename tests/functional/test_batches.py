"""Batches under `tollgate serve`, by OpenAI's SDK, while servers are killed.

Keeps C83.
"""

import asyncio
import json
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.types import Batch

from tests.clocks import ShiftedClock
from tests.deployment import Deployment, Workspace, open_stores
from tests.functional.test_serve import Served, served
from tollgate.core.clock import DAY_S, SystemClock
from tollgate.core.records.activity import GenerationFilter
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S
from tollgate.wiring.upkeep import wire_upkeep

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
    now_s = int(SystemClock().now_s())
    # A longer time has more partitions, which a page reads one by one.
    wanted = GenerationFilter(since_s=now_s - DAY_S, until_s=now_s + DAY_S)
    while True:
        page = await deployment.stores.generations.page(
            workspace.id, wanted, limit=500, before=before
        )
        found += page.found
        before = page.next
        if before is None:
            return found


async def settle_what_died(deployment: Deployment) -> None:
    """Sweep, as processes that died between a record and its settlement need it."""
    later = ShiftedClock(HOLD_LIFETIME_S + 60)
    async with aclosing(open_stores(deployment.settings, later)) as stores:
        await wire_upkeep(deployment.settings, stores, later).sweeper.run()


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
    assert (balance.spent_nano_usd, balance.held_nano_usd) == (sum(billed.values()), 0)


async def test_c83_openais_sdk_runs_a_batch_under_serve(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace = await deployment.workspace()
    async with (
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server,
        sdk(server, workspace) as client,
    ):
        batch = await create(client, 12)
        assert (batch.status, batch.metadata) == ("validating", {"job": "nightly"})
        batch = await ended(client, batch.id)
        await check_once(deployment, workspace, client, batch, 12)
        assert [it.id for it in (await client.batches.list()).data] == [batch.id]
        assert (await client.batches.cancel(batch.id)).status == "completed"


async def test_c83_anthropics_sdk_runs_a_batch_under_serve(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace = await deployment.workspace()

    def asked(custom_id: str, **changes: Any) -> Any:
        params = {
            "model": "test/echo",
            "max_tokens": 20,
            "messages": [{"role": "user", "content": "Say it."}],
        }
        return {"custom_id": custom_id, "params": params | changes}

    async with (
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server,
        AsyncAnthropic(base_url=f"{server.url}/api", api_key=workspace.inference.secret) as client,
    ):
        batches = client.messages.batches
        with pytest.raises(anthropic.BadRequestError, match="same custom_id"):
            await batches.create(requests=[asked("a"), asked("a")])
        batch = await batches.create(
            requests=[asked("a"), asked("b"), asked("c", max_tokens=-1), asked("d", model="none")]
        )
        assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 4)
        with pytest.raises(anthropic.BadRequestError, match="cancelled first"):
            await batches.delete(batch.id)
        async with asyncio.timeout(60):
            while batch.processing_status != "ended":
                await asyncio.sleep(0.2)
                batch = await batches.retrieve(batch.id)
        assert (batch.request_counts.succeeded, batch.request_counts.errored) == (2, 2)
        results = {each.custom_id: each.result async for each in await batches.results(batch.id)}
        assert [results[name].type for name in "abcd"] == [
            *("succeeded", "succeeded", "errored", "errored")
        ]
        first, third = results["a"], results["c"]
        assert first.type == "succeeded"
        assert first.message.content[0].type == "text"
        assert third.type == "errored"
        assert third.error.error.type == "invalid_request_error"
        assert [each.id async for each in batches.list()] == [batch.id]
        assert (await batches.cancel(batch.id)).processing_status == "ended"
        assert (await batches.delete(batch.id)).type == "message_batch_deleted"
        with pytest.raises(anthropic.NotFoundError):
            await batches.retrieve(batch.id)
        records = await records_of(deployment, workspace)
        assert Counter(record.outcome for record in records) == {"ok": 2}


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
        await settle_what_died(deployment)
        await check_once(deployment, workspace, client, batch, count)


def _completed(batch: Batch) -> int:
    return 0 if batch.request_counts is None else batch.request_counts.completed
