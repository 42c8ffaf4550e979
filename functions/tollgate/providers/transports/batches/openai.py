"""Batches in OpenAI's form: a file of requests, a batch over it, and files of results.

https://platform.openai.com/docs/guides/batch, https://platform.openai.com/docs/api-reference/batch
(2026-11-27)
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from msgspec import Struct, json

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
    batch_line,
    read_files,
    route_of,
    upload_lines,
)

_STATES: Final[Mapping[str, BatchState]] = {
    "completed": "ended",
    "expired": "ended",
    "cancelled": "ended",
    "failed": "refused",
}
# The name of a batch in its metadata, by which a batch is found again.
_NAME: Final = "tollgate"
_PAGE: Final = 100
# Tolerance between the clocks of provider and gateway.
_CLOCK_S: Final = 300.0


class _Batch(Struct):
    id: str
    status: str = ""
    output_file_id: str | None = None
    error_file_id: str | None = None
    created_at: float = 0
    metadata: dict[str, str] | None = None


class _Page(Struct):
    data: list[_Batch]
    has_more: bool = False


class OpenAIBatches:
    """Implements `ProviderBatches` in OpenAI's form."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        file_id = await upload_lines(self._calls, name, [batch_line(each) for each in requests])
        body = {
            "input_file_id": file_id,
            "endpoint": route_of(requests[0]),
            "completion_window": "24h",
            "metadata": {_NAME: name},
        }
        return (await self._calls.create(_Batch, "/batches", json.encode(body))).id

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        def next_of(page: _Page) -> Mapping[str, object] | None:
            if not (page.has_more and page.data):
                return None
            last = page.data[-1]
            return None if last.created_at < since_s - _CLOCK_S else {"after": last.id}

        listed = self._calls.pages(_Page, "/batches", {"limit": _PAGE}, next_of)
        async with aclosing(listed) as pages:
            async for page in pages:
                for batch in page.data:
                    if (batch.metadata or {}).get(_NAME) == name:
                        return batch.id
        return None

    async def get_state(self, batch_id: str) -> BatchState:
        batch = await self._calls.get(_Batch, f"/batches/{batch_id}")
        return _STATES.get(batch.status, "running")

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        batch = await self._calls.get(_Batch, f"/batches/{batch_id}")
        file_ids = (batch.output_file_id, batch.error_file_id)
        async with aclosing(read_files(self._calls, file_ids)) as answers:
            async for answer in answers:
                yield answer

    async def cancel(self, batch_id: str) -> None:
        await self._calls.cancel(f"/batches/{batch_id}/cancel")


def make_openai_batches(row: ProviderRow, services: ProviderServices) -> ProviderBatches:
    """Return the batches of a row."""
    return OpenAIBatches(make_calls(row, services))
