"""Lines of batches at Bedrock, from the settings to the bucket and back to the output file.

Keeps C83.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final

import boto3
import pytest
from aiohttp import web
from msgspec.structs import replace
from typing_extensions import override

from tests.batches import Works, batch_of, line
from tests.buckets import create_bucket
from tests.functional.test_submitted_lines import TERMS, Later, OneRow, finish
from tests.gateways import house
from tests.loopback import LocalServer
from tests.moto_server import running_moto
from tests.unit.routing.catalogs import endpoint, model
from tollgate.core.clock import Deadline
from tollgate.core.ids import IdSource
from tollgate.engine.batches.worker import BatchWorker
from tollgate.providers.ports.base import Provider
from tollgate.settings import Settings
from tollgate.stores.batches.objects import StoredBatchObjects
from tollgate.stores.rules.batches import cancel
from tollgate.stores.rules.object_names import batch_folder
from tollgate.wiring.generation import Upstream, wire_upstream

BUCKET: Final = "tollgate-bedrock-lines"
ROLE: Final = "arn:aws:iam::123456789012:role/batches"
ARN: Final = "arn:aws:bedrock:us-east-1:123456789012:model-invocation-job/abcdefghij12"
# The smallest number of lines that Bedrock accepts.
COUNT: Final = 100
HALF_NANO_USD: Final = 10 * 1_500 + 2 * 7_500
ROW: Final = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "us-east-1"}


def says(record: Any) -> list[Any]:
    """Return a job's answer to a record, which repeats its text; unset fields are null."""
    block = {"text": record["modelInput"]["messages"][0]["content"][0]["text"], "toolUse": None}
    output = {
        "output": {"message": {"role": "assistant", "content": [block]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12},
    }
    return [{**record, "modelOutput": output}]


class Bedrock(LocalServer):
    """Runs each job until its second poll, and answers the first requests of its file."""

    def __init__(self, s3: Any) -> None:
        super().__init__()
        self.s3 = s3
        self.jobs: list[Any] = []
        self.stopped = asyncio.Event()
        self.polls = 0
        self.status = "Completed"
        self.answers: Callable[[Any], list[Any]] = says
        self.processed = COUNT
        self.answers_max = COUNT

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path:
            case "POST", "/model-invocation-job":
                self.jobs.append(json.loads(await request.read()))
                return web.json_response({"jobArn": ARN})
            case "POST", "/model-invocation-job/abcdefghij12/stop":
                self.stopped.set()
                return web.Response()
            case "GET", "/model-invocation-job/abcdefghij12":
                return web.json_response(await self._job())
        raise AssertionError(request.path)

    async def _job(self) -> Any:
        self.polls += 1
        [job] = self.jobs
        is_running = self.polls < 2 and not self.stopped.is_set()
        if self.polls == 2 or self.stopped.is_set():
            await asyncio.to_thread(self._write, job)
        return {
            "jobArn": ARN,
            "jobName": job["jobName"],
            "status": "InProgress" if is_running else self.status,
            "processedRecordCount": self.processed,
            "outputDataConfig": job["outputDataConfig"],
        }

    def _write(self, job: Any) -> None:
        uri = job["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]
        content = self.s3.get_object(Bucket=BUCKET, Key=key_of(uri))["Body"].read()
        records = [json.loads(each) for each in content.splitlines()]
        found = [it for each in records[: self.answers_max] for it in self.answers(each)]
        out = key_of(job["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"])
        body = "".join(f"{json.dumps(each)}\n" for each in reversed(found))
        self.s3.put_object(Bucket=BUCKET, Key=f"{out}abcdefghij12/input.jsonl.out", Body=body)


def key_of(uri: str) -> str:
    return uri.removeprefix(f"s3://{BUCKET}/")


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    with running_moto() as url:
        create_bucket(url, BUCKET)
        yield url


@pytest.fixture
async def bedrock(moto_url: str) -> AsyncIterator[Bedrock]:
    s3 = boto3.client(
        "s3",
        "us-east-1",
        endpoint_url=moto_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    async with Bedrock(s3) as server:
        yield server
    s3.close()


@pytest.fixture
async def upstream(bedrock: Bedrock, moto_url: str) -> AsyncIterator[Upstream]:
    settings = Settings(
        objects_bucket=BUCKET,
        s3_endpoint_url=moto_url,
        bedrock_batch_role=ROLE,
        bedrock_endpoint_url=bedrock.url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        container_credentials_url=None,
    )
    found = wire_upstream(settings, Later())
    yield found
    await found.aclose()


async def submitted(upstream: Upstream) -> Works:
    """A batch of lines for a Bedrock row that answers only batches, no interactive requests."""
    home = await house(
        providers={"near": {**ROW, "batch": {"form": "bedrock", **TERMS}}},
        models={"acme/large": model(endpoint("near", "us.l", dollars_in="3", dollars_out="15"))},
        aliases={},
        routes={},
    )
    found = upstream.registry.provider(home.catalog.providers["near"])
    transport = home.gateway.providers.provider("near", home.principal).transport
    answered = Provider(
        found.codec, transport, found.batch_codecs, found.stream_codecs, found.batches
    )
    clock = Later()
    home.gateway = replace(
        home.gateway, clock=clock, ids=IdSource(clock), providers=OneRow(answered)
    )
    return await batch_of(home, [line(f"n{n}") for n in range(COUNT)])


async def test_c83_bedrocks_job_answers_each_line_in_the_callers_format(
    bedrock: Bedrock, upstream: Upstream
) -> None:
    works = await submitted(upstream)
    await finish(works)
    batch = await works.check_once(COUNT)
    [job] = bedrock.jobs
    assert (job["roleArn"], job["modelId"]) == (ROLE, "us.l")
    assert batch.tally.cost_nano_usd == COUNT * HALF_NANO_USD
    for found in works.lines(batch.output_file_id):
        said = found["response"]["body"]["choices"][0]["message"]["content"]
        assert said == f"Say {found['custom_id']}."
    # The files of the job are in the folder of the batch, and are deleted with it.
    assert upstream.job_bucket is not None
    objects = upstream.job_bucket.objects
    folder = batch_folder(batch)
    keys = [found.key async for group in objects.list(folder) for found in group]
    assert [key.rpartition("/")[2] for key in keys] == ["input.jsonl", "input.jsonl.out"]
    assert all(key.startswith(f"{folder}jobs/") for key in keys)
    no_files: Any = None
    await StoredBatchObjects(objects, no_files).clear(batch)
    assert not [group async for group in objects.list(folder)]


async def test_c83_half_of_a_jobs_answers_and_some_twice_bill_what_ran(
    bedrock: Bedrock, upstream: Upstream
) -> None:
    def some(record: Any) -> list[Any]:
        # The first line has the number 1.
        number = int(record["recordId"])
        if number % 3 == 0:
            return [*says(record), *says(record)]
        if number % 3 == 1:
            return [{**record, "error": {"errorCode": 400, "errorMessage": "Too long."}}]
        return []

    bedrock.answers, bedrock.status = some, "PartiallyCompleted"
    works = await submitted(upstream)
    await finish(works)
    batch = await works.batch()
    assert (batch.status, batch.lines) == ("completed", COUNT)
    ran = COUNT // 3
    assert (batch.tally.completed, batch.tally.failed) == (ran, COUNT - ran)
    assert works.home.spent_nano_usd == batch.tally.cost_nano_usd == ran * HALF_NANO_USD
    assert works.home.held_nano_usd == 0
    errors = {each["custom_id"]: each for each in works.lines(batch.error_file_id)}
    assert len(errors) == COUNT - ran
    assert "Too long" in json.dumps(errors["n0"])
    assert "no result" in json.dumps(errors["n1"])


@pytest.mark.parametrize("status", ["Failed", "Expired"])
async def test_c83_a_job_that_fails_or_expires_bills_the_answers_that_it_wrote(
    bedrock: Bedrock, upstream: Upstream, status: str
) -> None:
    bedrock.status, bedrock.processed, bedrock.answers_max = status, 5, 5
    works = await submitted(upstream)
    await finish(works)
    batch = await works.batch()
    assert (batch.tally.completed, batch.tally.failed) == (5, COUNT - 5)
    assert works.home.spent_nano_usd == 5 * HALF_NANO_USD
    assert works.home.held_nano_usd == 0
    assert not works.home.near.requests


async def test_c83_cancelling_stops_the_job_and_bills_the_answers_that_it_wrote(
    bedrock: Bedrock, upstream: Upstream
) -> None:
    bedrock.status, bedrock.answers_max = "Stopped", 7
    works = await submitted(upstream)
    worker = works.worker()
    clock: Any = works.home.gateway.clock
    while not bedrock.jobs:
        await step(works, worker, clock)
    await works.store.change(works.place, lambda found: cancel(found, clock.now_s()))
    await finish(works)
    assert bedrock.stopped.is_set()
    batch = await works.batch()
    assert (batch.status, batch.tally.completed) == ("cancelled", 7)
    assert works.home.spent_nano_usd == 7 * HALF_NANO_USD
    assert works.home.held_nano_usd == 0
    unrun: Sequence[Any] = works.lines(batch.error_file_id)
    assert {each["error"]["code"] for each in unrun} == {"batch_cancelled"}
    assert len(unrun) == COUNT - 7


async def step(works: Works, worker: BatchWorker, clock: Any) -> None:
    """Let a worker do what it can now."""
    wait_s = await worker.work(works.place, Deadline.within(clock, 600.0))
    assert wait_s is not None
    clock.ahead_s += wait_s
