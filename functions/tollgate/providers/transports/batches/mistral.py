"""Batches in Mistral's form: a job over a file of requests for one model, and files of results.

https://docs.mistral.ai/studio-api/batch-processing, and `BatchJobIn`, `BatchJobOut` and
`BatchJobStatus` of github.com/mistralai/client-python (2026-11-28)
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import count as numbers_from
from typing import Final

from msgspec import Struct, field, json

from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import ProviderRow
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    ProviderBatches,
)
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls, make_calls
from tollgate.providers.transports.batches.jsonl import (
    plain_body,
    read_files,
    route_of,
    upload_lines,
)

_PATH: Final = "/batch/jobs"
_ENDED: Final = frozenset({"SUCCESS", "TIMEOUT_EXCEEDED", "CANCELLED"})
_FAILED: Final = "FAILED"
# The metadata field with our name for a job, by which the job is found again.
_NAME: Final = "tollgate"
_PAGE: Final = 100
# Tolerance between the clocks of provider and gateway.
_CLOCK_S: Final = 300.0


class _Job(Struct):
    id: str
    status: str = ""
    output_file: str | None = None
    error_file: str | None = None
    succeeded_requests: int = 0
    metadata: dict[str, JsonValue] | None = None


class _Page(Struct):
    data: list[_Job] = field(default_factory=list)


class MistralBatches:
    """Implements `ProviderBatches` in Mistral's form."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        file_id = await upload_lines(self._calls, name, [_line(each) for each in requests])
        body = {
            "input_files": [file_id],
            "endpoint": route_of(requests[0]),
            "model": requests[0].body["model"],
            "timeout_hours": 24,
            "metadata": {_NAME: name},
        }
        return (await self._calls.create(_Job, _PATH, json.encode(body))).id

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        after = datetime.fromtimestamp(since_s - _CLOCK_S, UTC)
        query = {"page": 0, "page_size": _PAGE, "created_after": after.isoformat()}
        numbers = numbers_from(1)

        def next_of(page: _Page) -> Mapping[str, object] | None:
            return {"page": next(numbers)} if len(page.data) >= _PAGE else None

        async with aclosing(self._calls.pages(_Page, _PATH, query, next_of)) as pages:
            async for page in pages:
                for job in page.data:
                    if (job.metadata or {}).get(_NAME) == name:
                        return job.id
        return None

    async def get_state(self, batch_id: str) -> BatchState:
        job = await self._calls.get(_Job, f"{_PATH}/{batch_id}")
        if job.status == _FAILED:
            return "ended" if job.succeeded_requests else "refused"
        return "ended" if job.status in _ENDED else "running"

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        job = await self._calls.get(_Job, f"{_PATH}/{batch_id}")
        async with aclosing(read_files(self._calls, (job.output_file, job.error_file))) as answers:
            async for answer in answers:
                yield answer

    async def cancel(self, batch_id: str) -> None:
        await self._calls.cancel(f"{_PATH}/{batch_id}/cancel")


def make_mistral_batches(row: ProviderRow, services: ProviderServices) -> ProviderBatches:
    """Return the batches of a row."""
    return MistralBatches(make_calls(row, services))


def _line(request: BatchedRequest) -> Mapping[str, object]:
    return {"custom_id": request.custom_id, "body": plain_body(request)}
