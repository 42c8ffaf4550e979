"""Batches in Bedrock's form: a job over a file of requests in the gateway's bucket.

https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html and
batch-inference-results.html, `CreateModelInvocationJob`, `GetModelInvocationJob`,
`ListModelInvocationJobs` and `StopModelInvocationJob` in the Bedrock API reference, and their
shapes in botocore 1.44.8 (2026-11-28). A job also writes a manifest with totals, which is not read,
because only the answers are billed.
"""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final
from urllib.parse import unquote

import pydantic_core
from msgspec import MsgspecError, Raw, Struct, field, json
from msgspec.structs import replace

from tollgate.aws.failures import StoreError
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import ProviderRow, UpstreamRefused
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    NotAccepted,
    ProviderBatches,
)
from tollgate.providers.transports.authorization import AwsSignature, JobBucket, ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls

_log = logging.getLogger(__name__)

_PATH: Final = "/model-invocation-job"
_MODEL: Final = "/model/"
_CHAT: Final = "/converse-stream"
_INPUT: Final = "input.jsonl"
_OUTPUT: Final = "output/"
_ANSWERS: Final = ".jsonl.out"
_PAGE: Final = 100
_HOURS: Final = 24
# Length of record ids in the user guide's examples.
_DIGITS: Final = 11
_STATES: Final[Mapping[str, BatchState]] = {
    "Completed": "ended",
    "PartiallyCompleted": "ended",
    "Stopped": "ended",
    "Failed": "refused",
    "Expired": "refused",
}
# Fields that only interactive requests may have; a batch has no service tier.
_INTERACTIVE: Final = frozenset({"serviceTier"})
_CACHE_POINT: Final = "cachePoint"
_OK: Final = 200
_CLIENT_ERROR: Final = 400
_SERVER_ERROR: Final = 500
_STATUS_MAX: Final = 599


class _Place(Struct, rename={"uri": "s3Uri"}):
    uri: str = ""


class _Output(Struct, rename={"place": "s3OutputDataConfig"}):
    place: _Place = field(default_factory=_Place)


class _Job(Struct, rename="camel"):
    job_arn: str
    job_name: str = ""
    status: str = ""
    processed_record_count: int | None = None
    output_data_config: _Output = field(default_factory=_Output)

    @property
    def id(self) -> str:
        return self.job_arn.rpartition("/")[2]


class _Page(Struct, rename="camel"):
    invocation_job_summaries: list[_Job] = field(default_factory=list)
    next_token: str | None = None


class _Error(Struct, rename="camel"):
    error_code: int | str | None = None
    error_message: str | None = None

    @property
    def status(self) -> int:
        code = self.error_code
        if isinstance(code, int) and _CLIENT_ERROR <= code <= _STATUS_MAX:
            return code
        return _SERVER_ERROR


class _Line(Struct, rename="camel"):
    record_id: str
    model_output: Raw = field(default_factory=lambda: Raw(b"null"))
    error: _Error | None = None


_LINES: Final = json.Decoder(_Line)


class BedrockBatches:
    """Implements `ProviderBatches` in Bedrock's form, for requests to Converse."""

    def __init__(
        self, slug: str, bucket: JobBucket, *, jobs: ProviderCalls, files: ProviderCalls
    ) -> None:
        """Run jobs over files in a bucket; `files` reads the bucket's objects line by line."""
        self._slug = slug
        self._bucket = bucket
        self._jobs = jobs
        self._files = files

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        model, is_chat, _ = requests[0].path.removeprefix(_MODEL).rpartition(_CHAT)
        if not is_chat:
            raise NotAccepted from ValueError("Bedrock's batches run other work in other formats")
        lines = (
            {"recordId": _record_id(each.custom_id, name), "modelInput": _input(each.body)}
            for each in requests
        )
        content = b"".join(pydantic_core.to_json(line) + b"\n" for line in lines)
        try:
            await self._bucket.objects.put(f"{folder}{_INPUT}", content)
        except StoreError as failure:
            raise NotAccepted from failure
        uri = f"{self._bucket.uri}{folder}"
        body = {
            "jobName": _job_name(name),
            "clientRequestToken": _job_name(name),
            "roleArn": self._bucket.role,
            "modelId": unquote(model),
            "modelInvocationType": "Converse",
            "inputDataConfig": {
                "s3InputDataConfig": {"s3InputFormat": "JSONL", "s3Uri": f"{uri}{_INPUT}"}
            },
            "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"{uri}{_OUTPUT}"}},
            "timeoutDurationInHours": _HOURS,
        }
        return (await self._jobs.create(_Job, _PATH, json.encode(body))).id

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        def next_of(page: _Page) -> Mapping[str, object] | None:
            return {"nextToken": page.next_token} if page.next_token else None

        query = {"nameContains": _job_name(name), "maxResults": _PAGE}
        async with aclosing(self._jobs.pages(_Page, f"{_PATH}s", query, next_of)) as pages:
            async for page in pages:
                for job in page.invocation_job_summaries:
                    if job.job_name == _job_name(name):
                        return job.id
        return None

    async def get_state(self, batch_id: str) -> BatchState:
        job = await self._jobs.get(_Job, f"{_PATH}/{batch_id}")
        state = _STATES.get(job.status, "running")
        # A job that failed or expired may have answers, for which AWS charges.
        return "ended" if state == "refused" and job.processed_record_count else state

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        job = await self._jobs.get(_Job, f"{_PATH}/{batch_id}")
        name = _name_of(job.job_name)
        try:
            for key in await self._find_answers(job):
                async with aclosing(self._files.read_lines(f"/{key}")) as lines:
                    async for line in lines:
                        if (answer := _read_answer(line, name)) is not None:
                            yield answer
                        else:
                            _log.warning("%s has a line that cannot be read", key)
        except StoreError as failure:
            raise UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE, f"The answers of {self._slug} cannot be read."
            ) from failure
        except UpstreamRefused as refused:
            raise self._jobs.as_failure(refused) from refused

    async def cancel(self, batch_id: str) -> None:
        await self._jobs.cancel(f"{_PATH}/{batch_id}/stop")

    async def _find_answers(self, job: _Job) -> Sequence[str]:
        """Return the keys of the files with a job's answers."""
        uri = job.output_data_config.place.uri
        if not uri.startswith(self._bucket.uri):
            raise self._jobs.malformed(_PATH)
        groups = self._bucket.objects.list(uri.removeprefix(self._bucket.uri))
        return [it.key async for group in groups for it in group if it.key.endswith(_ANSWERS)]


def make_bedrock_batches(row: ProviderRow, services: ProviderServices) -> ProviderBatches:
    """Return the client for a provider's batches; raise ValueError without a bucket for jobs."""
    bucket = services.job_bucket
    if bucket is None:
        raise ValueError(f"provider {row.slug} has no bucket for its batches")
    jobs_url = bucket.jobs_url or f"https://bedrock.{row.region}.amazonaws.com"

    def make_calls(service: str, url: str) -> ProviderCalls:
        signature = AwsSignature(row, services, service=service)
        return ProviderCalls(replace(row, base_url=url), services.pool, signature)

    return BedrockBatches(
        row.slug,
        bucket,
        jobs=make_calls("bedrock", jobs_url),
        files=make_calls("s3", bucket.url),
    )


def _read_answer(line: bytes, name: str) -> BatchedAnswer | None:
    """Return the answer in a line; None for a corrupt line."""
    try:
        found = _LINES.decode(line)
    except MsgspecError:
        return None
    number = found.record_id
    is_ours = len(number) == _DIGITS and number.isdecimal()
    custom_id = f"{name}-{int(number)}" if is_ours else number
    if found.error is not None:
        body = json.encode({"message": found.error.error_message or ""})
        return BatchedAnswer(custom_id=custom_id, status=found.error.status, body=body)
    output = bytes(found.model_output)
    if output == b"null":
        return BatchedAnswer(custom_id=custom_id, status=None)
    return BatchedAnswer(custom_id=custom_id, status=_OK, body=output)


def _job_name(name: str) -> str:
    """Return a job's name: hexadecimal, because Bedrock allows fewer characters than our ids."""
    return f"tollgate-{name.encode().hex()}"


def _name_of(job_name: str) -> str:
    try:
        return bytes.fromhex(job_name.rpartition("-")[2]).decode()
    except ValueError:
        return ""


def _record_id(custom_id: str, name: str) -> str:
    return custom_id.removeprefix(f"{name}-").zfill(_DIGITS)


def _input(body: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a request's body without cache points, because batches have no prompt cache."""
    found = {name: _uncached(value) for name, value in body.items() if name not in _INTERACTIVE}
    return {name: value for name, value in found.items() if value}


def _uncached(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [
            _uncached(each)
            for each in value
            if not (isinstance(each, dict) and _CACHE_POINT in each)
        ]
    if isinstance(value, dict) and "content" in value:
        return {**value, "content": _uncached(value["content"])}
    return value
