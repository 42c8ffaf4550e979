"""Batches through the queue and the function of a deployment, with the rights of their roles.

Keeps C83.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.buckets import create_bucket
from tests.clocks import ShiftedClock
from tests.deployed_functions import ALPHA_KEY, FUNCTIONS
from tests.deployment import Deployment, deployed, environment
from tests.emulator import Function
from tests.functional.test_batches import (
    check_once,
    create,
    records_of,
    settle_what_died,
)
from tests.functional.test_shadows import shadowed_catalog
from tests.iam.roles import without_batches
from tests.ministack import ministack_command, running_ministack
from tollgate.core.ids import IdSource
from tollgate.core.shadows import ShadowRun
from tollgate.stores.batches.records import DynamoLineRecords
from tollgate.wiring.shadows import wire_shadow_store

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.nightly]

BUCKET: Final = "tollgate-objects"
BATCH_TIMEOUT_S: Final = 900
COUNT: Final = 2_000


@dataclass(frozen=True)
class Workers:
    """A deployment with the queues of jobs, whose messages the test passes on."""

    deployment: Deployment
    sqs: Any
    url: str
    answers_url: str

    async def start(self, name: str, timeout_s: int, **more: str) -> Function:
        variables = environment(self.deployment.settings, endpoint_url=self.deployment.proxy.url)
        return await self.deployment.emulator.start_function(
            name=name,
            command=[sys.executable, "-m", "awslambdaric", f"{name}.handler"],
            env={**variables, "ALPHA_API_KEY": ALPHA_KEY, **more},
            mode="BUFFERED",
            timeout_s=timeout_s,
            routes=[],
            task_root=FUNCTIONS,
        )

    async def messages(self, url: str | None = None) -> list[Any]:
        url = url or self.url
        received = await asyncio.to_thread(self.sqs.receive_message, QueueUrl=url)
        found: list[Any] = received.get("Messages", [])
        for each in found:
            handle = each["ReceiptHandle"]
            await asyncio.to_thread(self.sqs.delete_message, QueueUrl=url, ReceiptHandle=handle)
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Workers]:
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    folder = tmp_path_factory.mktemp("batches")
    with running_ministack(folder, services="dynamodb,s3,sqs") as url:
        create_bucket(url, BUCKET)
        sqs = boto3.client(
            "sqs",
            "us-east-1",
            endpoint_url=url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        queue = sqs.create_queue(QueueName="batches")["QueueUrl"]
        answers = sqs.create_queue(QueueName="background")["QueueUrl"]
        async with deployed(
            url, folder, bucket=BUCKET, queue=queue, answers_queue=answers
        ) as running:
            yield Workers(running, sqs, queue, answers)


async def test_c83_a_message_of_the_queue_runs_a_batch(workers: Workers) -> None:
    deployment = workers.deployment
    workspace = await deployment.workspace()
    async with deployment.client(workspace.inference) as client:
        batch = await create(client, 40)
        [message] = await workers.messages()
        function = await workers.start("batch", BATCH_TIMEOUT_S)
        # A message that is delivered twice does nothing twice.
        for _ in range(2):
            invocation = function.invoke({"Records": [{"body": message["Body"]}]})
            await invocation.finished.wait()
            assert invocation.error is None, function.log
        batch = await client.batches.retrieve(batch.id)
        await check_once(deployment, workspace, client, batch, 40)
    assert await workers.messages() == []


async def test_c83_functions_are_killed_and_openais_sdk_gets_each_line_once(
    workers: Workers,
) -> None:
    deployment = workers.deployment
    workspace = await deployment.workspace()
    async with deployment.client(workspace.inference).with_options(max_retries=5) as client:
        batch = await create(client, COUNT)

        async def find_progress() -> tuple[int, bool]:
            found = await client.batches.retrieve(batch.id)
            assert found.request_counts is not None
            return found.request_counts.completed, found.status == "completed"

        await run_killed(workers, find_progress)
        await settle_what_died(deployment)
        batch = await client.batches.retrieve(batch.id)
        await check_once(deployment, workspace, client, batch, COUNT)


async def run_killed(
    workers: Workers, find_progress: Callable[[], Awaitable[tuple[int, bool]]]
) -> None:
    """Deliver a batch's message until the batch has ended; kill the first three functions."""
    function = await workers.start("batch", BATCH_TIMEOUT_S)
    [message] = await workers.messages()
    event = {"Records": [{"body": message["Body"]}]}
    for number in range(1, 4):
        function.invoke(event)
        async with asyncio.timeout(300):
            while True:
                lines, is_ended = await find_progress()
                if lines >= 100 * number:
                    break
                await asyncio.sleep(0.2)
        assert not is_ended
        await function.kill()
    async with asyncio.timeout(600):
        while not (await find_progress())[1]:
            # A function that fails, because its store is slow, gets the message again.
            await function.invoke(event).finished.wait()
            # Until the leases of the killed functions end, there is little to do.
            await asyncio.sleep(2)
    while await workers.messages():
        pass


async def test_c83_the_sweeper_wakes_the_workers_of_open_batches(workers: Workers) -> None:
    deployment = workers.deployment
    workspace = await deployment.workspace()
    async with deployment.client(workspace.inference) as client:
        batch = await create(client, 1)
        assert len(await workers.messages()) == 1
        sweeper = await workers.start("sweeper", 240)
        invocation = sweeper.invoke({})
        await invocation.finished.wait()
        assert invocation.error is None, sweeper.log
        [message] = await workers.messages()
        assert batch.id in message["Body"]


async def test_c84_a_message_of_the_queue_answers_a_background_response(workers: Workers) -> None:
    deployment = workers.deployment
    workspace = await deployment.workspace(response_days=7)
    function = await workers.start("batch", BATCH_TIMEOUT_S)
    async with deployment.client(workspace.inference) as client:
        queued = await client.responses.create(
            model="test/echo", input="Say it again.", background=True
        )
        assert queued.status == "queued"
        [message] = await workers.messages(workers.answers_url)
        # A message that is delivered twice does nothing twice.
        for _ in range(2):
            invocation = function.invoke({"Records": [{"body": message["Body"]}]})
            await invocation.finished.wait()
            assert invocation.error is None, function.log
        answered = await client.responses.retrieve(queued.id)
        assert (answered.status, answered.id) == ("completed", queued.id)
        assert answered.output_text
        stream = await client.responses.create(
            model="test/echo", input="Say it again.", background=True, stream=True
        )
        first = await anext(stream)
        assert first.type == "response.created"
        await stream.close()
        [message] = await workers.messages(workers.answers_url)
        invocation = function.invoke({"Records": [{"body": message["Body"]}]})
        await invocation.finished.wait()
        resumed = await client.responses.retrieve(
            first.response.id, stream=True, starting_after=first.sequence_number
        )
        kinds = [event.type async for event in resumed]
        assert (kinds[0], kinds[-1]) == ("response.queued", "response.completed")
        waiting = await client.responses.create(model="test/echo", input="Wait.", background=True)
        assert (await client.responses.cancel(waiting.id)).status == "cancelled"
        assert len(await workers.messages(workers.answers_url)) == 1
        await client.responses.delete(waiting.id)


async def test_c102_a_message_of_the_queue_runs_a_shadow_once(
    workers: Workers, tmp_path: Path
) -> None:
    deployment = workers.deployment
    caller, payer = await deployment.workspace(content_days=7), await deployment.workspace()
    async with deployment.client(caller.inference) as client:
        messages: Any = [{"role": "user", "content": "Say it again."}]
        await client.chat.completions.create(model="test/echo", messages=messages)
    [original] = await records_of(deployment, caller)
    # The chat function has no route with a shadow, so the test makes a record and a run of its own.
    stores, clock = deployment.stores, ShiftedClock(-60)
    assert stores.contents is not None
    content = await stores.contents.get(caller.id, original.id)
    assert content is not None
    routed = replace(
        original, id=IdSource(clock).new_id(), trace=replace(original.trace, route="echo")
    )
    await DynamoLineRecords(stores.generations).decide(routed)
    await stores.contents.keep(caller.id, routed.id, content, days=7)
    run = ShadowRun(
        id=f"shadow_{routed.id}",
        workspace_id=caller.id,
        key_id=caller.inference.id,
        created_s=clock.now_s(),
    )
    await wire_shadow_store(stores, clock).create(run)
    catalog = shadowed_catalog(deployment, tmp_path, payer)
    function = await workers.start("batch", BATCH_TIMEOUT_S, TOLLGATE_CATALOG_FILE=str(catalog))
    body = json.dumps({"workspace_id": caller.id, "batch_id": run.id})
    for _ in range(2):
        invocation = function.invoke({"Records": [{"body": body}]})
        await invocation.finished.wait()
        assert invocation.error is None, function.log
    [shadow] = await records_of(deployment, payer)
    assert shadow.shadow is not None
    assert (shadow.outcome, shadow.shadow.generation_id) == ("ok", routed.id)


async def test_no_function_was_refused_anything_and_only_these_wake_workers(
    workers: Workers,
) -> None:
    proxy = workers.deployment.proxy
    assert proxy.take_refusals() == []
    senders = {name for name, access in proxy.accesses if access.action == "sqs:SendMessage"}
    assert senders == {"api", "chat", "sweeper"}
    assert "batch" not in without_batches(proxy.roles)
