"""The batches of Bedrock: jobs over a socket, and their files in a bucket of moto.

Keeps C83.
"""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import boto3
import pytest

from tests.buckets import create_bucket
from tests.emulator.event import ACCOUNT_ID
from tests.functional.providers.one_provider import Secrets
from tests.functional.providers.test_provider_batches import NAME, answers, ok
from tests.iam.calls import Call, read_accesses, read_signature
from tests.iam.policy import Access, decide
from tests.iam.roles import Resources, function_statements, template_stack
from tests.moto_server import running_moto
from tests.upstream import FakeUpstream, Script
from tollgate.aws.objects import S3Objects
from tollgate.aws.sigv4 import Credentials, Signer, fixed
from tollgate.core.clock import SystemClock
from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.base import ProviderRow
from tollgate.providers.ports.provider_batches import (
    BatchedRequest,
    BatchTerms,
    NotAccepted,
    ProviderBatches,
)
from tollgate.providers.transports.authorization import JobBucket, ProviderServices
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.settings import Settings
from tollgate.wiring.providers import Registry

BUCKET: Final = "tollgate-objects"
ROLE: Final = f"arn:aws:iam::{ACCOUNT_ID}:role/BedrockBatchRole"
FOLDER: Final = "batches/0123/batch_1/jobs/57K/"
JOB: Final = "tollgate-" + NAME.encode().hex()
ARN: Final = "arn:aws:bedrock:us-east-1:123456789012:model-invocation-job/abcdefghij12"
ID: Final = "abcdefghij12"
OUT: Final = f"s3://{BUCKET}/{FOLDER}output/"
SAID: Final = {"output": {"message": {"content": [{"text": "Hi"}]}}, "stopReason": "end_turn"}


@dataclass(frozen=True)
class Bedrock:
    """The batches of a row, their scripted jobs, and the bucket that both sides use."""

    batches: ProviderBatches
    jobs: FakeUpstream
    s3: Any

    def write(self, key: str, *lines: object) -> None:
        """Write a file as Bedrock does."""
        body = b"".join(
            (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n"
            for each in lines
        )
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)

    def read(self, key: str) -> Sequence[Any]:
        """Read a file as Bedrock does."""
        body = self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return [json.loads(line) for line in body.splitlines()]


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    with running_moto() as url:
        create_bucket(url, BUCKET)
        yield url


def row(region: str = "us-east-1") -> ProviderRow:
    return ProviderRow(
        slug="acme",
        codec="bedrock",
        transport="bedrock_runtime",
        region=region,
        batch=BatchTerms(form="bedrock", percent=50),
    )


def registry(pool: HttpPool, bucket: JobBucket | None) -> Registry:
    services = ProviderServices(
        pool=pool,
        secrets=Secrets(None),
        credentials=lambda: Credentials("AKID", "shh", "token"),
        aws_region="us-east-1",
        google_file=None,
        clock=SystemClock(),
        job_bucket=bucket,
    )
    return Registry(services)


def job_bucket(objects: S3Objects, jobs_url: str) -> JobBucket:
    return JobBucket(
        objects=objects,
        name=BUCKET,
        url=objects.url,
        region="us-east-1",
        role=ROLE,
        jobs_url=jobs_url,
    )


@pytest.fixture
async def bedrock(upstream: FakeUpstream, moto_url: str) -> AsyncIterator[Bedrock]:
    identity = fixed(Credentials("test", "test"))
    signer = Signer("s3", "us-east-1", identity, SystemClock())
    objects = S3Objects(BUCKET, "us-east-1", signer, endpoint_url=moto_url)
    pool = HttpPool()
    load = registry(pool, job_bucket(objects, upstream.url)).provider(row()).batches
    assert load is not None
    s3 = boto3.client(
        "s3",
        "us-east-1",
        endpoint_url=moto_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    for found in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        s3.delete_object(Bucket=BUCKET, Key=found["Key"])
    yield Bedrock(load(), upstream, s3)
    s3.close()
    await pool.close()
    await objects.close()


def request(number: int, **more: Any) -> BatchedRequest:
    said = [{"role": "user", "content": [{"text": f"Say {number}."}]}]
    return BatchedRequest(
        custom_id=f"{NAME}-{number}",
        path="/model/us.amazon.nova-lite-v1%3A0/converse-stream",
        body={"messages": said, **more},
        headers={},
    )


def job(status: str, **more: Any) -> Script:
    place = {"s3OutputDataConfig": {"s3Uri": OUT}}
    return ok({"jobArn": ARN, "jobName": JOB, "status": status, "outputDataConfig": place, **more})


async def test_c83_bedrocks_form_writes_a_file_and_creates_a_job_over_it(
    bedrock: Bedrock,
) -> None:
    bedrock.jobs.enqueue(ok({"jobArn": ARN}))
    point = {"cachePoint": {"type": "default"}}
    cached = request(
        1,
        system=[{"text": "Be brief."}, point],
        messages=[{"role": "user", "content": [{"text": "Say it."}, point]}],
        serviceTier={"type": "default"},
        inferenceConfig={"maxTokens": 9},
    )
    sent = [request(0), cached]
    assert await bedrock.batches.submit(NAME, sent, folder=FOLDER) == ID
    # Record ids have eleven digits, and no mark of the cache remains.
    assert bedrock.read(f"{FOLDER}input.jsonl") == [
        {"recordId": "00000000000", "modelInput": request(0).body},
        {
            "recordId": "00000000001",
            "modelInput": {
                "messages": [{"role": "user", "content": [{"text": "Say it."}]}],
                "system": [{"text": "Be brief."}],
                "inferenceConfig": {"maxTokens": 9},
            },
        },
    ]
    [create] = bedrock.jobs.received
    assert (create.method, create.path) == ("POST", "/model-invocation-job")
    scope = create.headers["authorization"].partition("Credential=")[2].partition(",")[0]
    assert scope.endswith("/us-east-1/bedrock/aws4_request")
    uri = f"s3://{BUCKET}/{FOLDER}input.jsonl"
    assert create.json == {
        "jobName": JOB,
        "clientRequestToken": JOB,
        "roleArn": ROLE,
        "modelId": "us.amazon.nova-lite-v1:0",
        "modelInvocationType": "Converse",
        "inputDataConfig": {"s3InputDataConfig": {"s3InputFormat": "JSONL", "s3Uri": uri}},
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": OUT}},
        "timeoutDurationInHours": 24,
    }


async def test_c83_bedrocks_form_reads_answers_errors_and_lines_that_did_not_run(
    bedrock: Bedrock,
) -> None:
    folder = f"{FOLDER}output/{ID}/"
    bedrock.write(
        f"{folder}input.jsonl.out",
        {"recordId": "00000000002", "modelInput": {}, "modelOutput": SAID},
        {"recordId": "00000000002", "modelInput": {}, "modelOutput": SAID},
        {"recordId": "00000000000", "error": {"errorCode": 400, "errorMessage": "Too long."}},
        {"recordId": "00000000001", "error": {"errorCode": "Internal", "errorMessage": None}},
        {"recordId": "00000000003", "modelInput": {}},
        {"recordId": "ours?", "modelOutput": SAID},
        {"recordId": "9" * 5_000, "modelOutput": SAID},
    )
    bedrock.write(f"{folder}manifest.json.out", {"totalRecordCount": 9})
    bedrock.write(f"{FOLDER}input.jsonl", {"recordId": "00000000009", "modelOutput": SAID})
    bedrock.jobs.enqueue(job("PartiallyCompleted"))
    found = await answers(bedrock.batches, ID)
    assert [(each.custom_id, each.status) for each in found] == [
        (f"{NAME}-2", 200),
        (f"{NAME}-2", 200),
        (f"{NAME}-0", 400),
        (f"{NAME}-1", 500),
        (f"{NAME}-3", None),
        ("ours?", 200),
        ("9" * 5_000, 200),
    ]
    assert json.loads(found[0].body) == SAID
    assert json.loads(found[2].body) == {"message": "Too long."}


async def test_c83_bedrocks_form_needs_no_manifest_and_reads_no_other_bucket(
    bedrock: Bedrock,
) -> None:
    bedrock.jobs.enqueue(job("Completed"))
    assert await answers(bedrock.batches, ID) == []
    elsewhere = {"s3OutputDataConfig": {"s3Uri": "s3://other/output/"}}
    bedrock.jobs.enqueue(job("Completed", outputDataConfig=elsewhere))
    with pytest.raises(UpstreamError):
        await answers(bedrock.batches, ID)
    # A corrupt line stays corrupt, so the answers around it count.
    said = {"recordId": "00000000001", "modelOutput": SAID}
    bedrock.write(f"{FOLDER}output/{ID}/input.jsonl.out", said, b'{"recordId": "0000', b"[1]", said)
    bedrock.jobs.enqueue(job("Completed"))
    assert [each.status for each in await answers(bedrock.batches, ID)] == [200, 200]


async def test_c83_bedrocks_states_tell_what_has_run(bedrock: Bedrock) -> None:
    running = ("Submitted", "Validating", "Scheduled", "InProgress", "Stopping", "Later")
    ended = ("Completed", "PartiallyCompleted", "Stopped")
    states = {**dict.fromkeys(running, "running"), **dict.fromkeys(ended, "ended")}
    states |= dict.fromkeys(("Failed", "Expired"), "refused")
    for status, state in states.items():
        bedrock.jobs.enqueue(job(status, processedRecordCount=0))
        assert await bedrock.batches.get_state(ID) == state
    for status in ("Failed", "Expired"):
        bedrock.jobs.enqueue(job(status, processedRecordCount=3))
        assert await bedrock.batches.get_state(ID) == "ended"
    assert {each.path for each in bedrock.jobs.received} == {f"/model-invocation-job/{ID}"}


async def test_c83_bedrocks_form_finds_a_job_by_its_name_and_stops_it(bedrock: Bedrock) -> None:
    def page(name: str, **more: str) -> Script:
        return ok({"invocationJobSummaries": [{"jobArn": ARN, "jobName": name}], **more})

    bedrock.jobs.enqueue(page(f"{JOB}0", nextToken="a/b"), page(JOB))
    assert await bedrock.batches.find(NAME, since_s=0, count=2) == ID
    query = f"nameContains={JOB}&maxResults=100"
    assert [each.path for each in bedrock.jobs.received] == [
        f"/model-invocation-jobs?{query}",
        f"/model-invocation-jobs?{query}&nextToken=a%2Fb",
    ]
    bedrock.jobs.enqueue(page("other"))
    assert await bedrock.batches.find(NAME, since_s=0, count=2) is None
    ended = {"message": "The job has ended."}
    bedrock.jobs.enqueue(Script(chunks=[]), Script.json(409, ended), Script.json(500, ended))
    await bedrock.batches.cancel(ID)
    await bedrock.batches.cancel(ID)
    with pytest.raises(UpstreamError):
        await bedrock.batches.cancel(ID)
    stop = bedrock.jobs.received[-1]
    assert (stop.method, stop.path) == ("POST", f"/model-invocation-job/{ID}/stop")


async def test_c83_bedrocks_form_tells_refusals_from_unknown_outcomes(bedrock: Bedrock) -> None:
    refusal = {"message": "The model does not support batch inference."}
    bedrock.jobs.enqueue(Script.json(400, refusal), Script.json(503, refusal))
    with pytest.raises(NotAccepted):
        await bedrock.batches.submit(NAME, [request(0)], folder=FOLDER)
    with pytest.raises(UpstreamError):
        await bedrock.batches.submit(NAME, [request(0)], folder=FOLDER)
    other = BatchedRequest(custom_id=f"{NAME}-0", path="/model/m/invoke", body={}, headers={})
    with pytest.raises(NotAccepted):
        await bedrock.batches.submit(NAME, [other], folder=FOLDER)
    assert len(bedrock.jobs.received) == 2


async def test_c83_no_job_is_created_over_a_file_that_could_not_be_written(
    upstream: FakeUpstream, moto_url: str
) -> None:
    signer = Signer("s3", "us-east-1", fixed(Credentials("test", "test")), SystemClock())
    objects, pool = S3Objects("missing", "us-east-1", signer, endpoint_url=moto_url), HttpPool()
    load = registry(pool, job_bucket(objects, upstream.url)).provider(row()).batches
    assert load is not None
    with pytest.raises(NotAccepted):
        await load().submit(NAME, [request(0)], folder=FOLDER)
    assert not upstream.received
    await pool.close()
    await objects.close()


async def test_c83_a_row_has_batches_only_where_its_jobs_can_use_the_bucket(
    upstream: FakeUpstream, moto_url: str
) -> None:
    signer = Signer("s3", "us-east-1", fixed(Credentials("test", "test")), SystemClock())
    objects, pool = S3Objects(BUCKET, "us-east-1", signer, endpoint_url=moto_url), HttpPool()
    bucket = job_bucket(objects, upstream.url)
    assert registry(pool, None).provider(row()).batches is None
    assert registry(pool, bucket).provider(row("eu-west-1")).batches is None
    assert registry(pool, bucket).provider(row()).batches is not None
    await pool.close()
    await objects.close()


async def test_c83_the_batch_function_may_send_these_calls_and_no_other_function(
    bedrock: Bedrock,
) -> None:
    listed = ok({"invocationJobSummaries": []})
    bedrock.jobs.enqueue(ok({"jobArn": ARN}), listed, job("InProgress"), Script(chunks=[]))
    await bedrock.batches.submit(NAME, [request(0)], folder=FOLDER)
    await bedrock.batches.find(NAME, since_s=0, count=1)
    await bedrock.batches.get_state(ID)
    await bedrock.batches.cancel(ID)
    settings = Settings(objects_bucket=BUCKET)
    roles = function_statements(template_stack(), Resources(settings=settings))
    needed = set[Access]()
    for sent in bedrock.jobs.received:
        path, _, query = sent.path.partition("?")
        call = Call(
            method=sent.method, path=path, query=query, headers=sent.headers, body=sent.body
        )
        needed.update(read_accesses(call, read_signature(call)))
    assert len(needed) == 7
    for access in needed:
        allowed = {name for name, role in roles.items() if decide(role, access).grants}
        assert allowed == {"batch"}, access
