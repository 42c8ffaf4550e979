"""Batches in xAI's form: a file of requests in OpenAI's form, counters, and pages of results.

https://docs.x.ai/developers/advanced-api-usage/batch-api,
https://docs.x.ai/developers/rest-api-reference/inference/batches, and `batch.proto` of
github.com/xai-org/xai-proto (2026-11-28). A batch has no status, only counts of requests. While it
counts none at all, xAI is still reading the file. When none is pending any more, it has ended.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from msgspec import Raw, Struct, field, json

from tollgate.providers.ports.base import ProviderRow
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    ProviderBatches,
)
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls, make_calls
from tollgate.providers.transports.batches.jsonl import FAILED, batch_line, upload_lines

_PATH: Final = "/batches"
_BATCHES_A_PAGE: Final = 100
# Each page is read as a whole, and 20 long answers are a few MB.
_RESULTS_A_PAGE: Final = 20
_PAGE_BYTES_MAX: Final = 64 * 1024 * 1024
_OK: Final = 200


class _Counts(Struct):
    num_requests: int = 0
    num_pending: int = 0
    num_success: int = 0
    num_error: int = 0


class _Batch(Struct):
    batch_id: str
    name: str = ""
    state: _Counts = field(default_factory=_Counts)
    cancel_time: str | None = None
    cancel_by_xai_message: str | None = None


class _Page(Struct):
    pagination_token: str | None = None


class _Batches(_Page):
    batches: list[_Batch] = field(default_factory=list)


class _Outcome(Struct):
    response: dict[str, Raw] | None = None
    """The answer, under the name of the method that produced it."""
    error: Raw = field(default_factory=Raw)


class _Result(Struct):
    batch_request_id: str
    batch_result: _Outcome = field(default_factory=_Outcome)


class _Results(_Page):
    results: list[_Result] = field(default_factory=list)


class XaiBatches:
    """Implements `ProviderBatches` in xAI's form."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        file_id = await upload_lines(self._calls, name, [batch_line(each) for each in requests])
        body = json.encode({"name": name, "input_file_id": file_id})
        return (await self._calls.create(_Batch, _PATH, body)).batch_id

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        query = {"limit": _BATCHES_A_PAGE}
        async with aclosing(self._calls.pages(_Batches, _PATH, query, _next_of)) as pages:
            async for page in pages:
                for batch in page.batches:
                    if batch.name == name:
                        return batch.batch_id
        return None

    async def get_state(self, batch_id: str) -> BatchState:
        """Return the state of a batch.

        A request that runs while its batch is cancelled may count as cancelled for some seconds,
        and then as successful. The counts are final when the worker reads them, because it
        cancels a batch in one poll and reads the state in a later one.
        """
        batch = await self._calls.get(_Batch, f"{_PATH}/{batch_id}")
        counts = batch.state
        if batch.cancel_by_xai_message is not None and not counts.num_success:
            return "refused"
        if counts.num_pending or not (counts.num_requests or batch.cancel_time):
            return "running"
        return "ended"

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        path = f"{_PATH}/{batch_id}"
        batch = await self._calls.get(_Batch, path)
        query = {"limit": _RESULTS_A_PAGE}
        results = self._calls.pages(
            _Results, f"{path}/results", query, _next_of, bytes_max=_PAGE_BYTES_MAX
        )
        async with aclosing(results) as pages:
            async for page in pages:
                for result in page.results:
                    yield _answer(result, is_cancelled=batch.cancel_time is not None)

    async def cancel(self, batch_id: str) -> None:
        await self._calls.cancel(f"{_PATH}/{batch_id}:cancel")


def make_xai_batches(row: ProviderRow, services: ProviderServices) -> ProviderBatches:
    """Return the batches of a row."""
    return XaiBatches(make_calls(row, services))


def _next_of(page: _Page) -> Mapping[str, object] | None:
    return {"pagination_token": page.pagination_token} if page.pagination_token else None


def _answer(result: _Result, *, is_cancelled: bool) -> BatchedAnswer:
    """Return an answer; in a cancelled batch, an error can mean that the request did not run."""
    answers: Mapping[str, Raw] = result.batch_result.response or {}
    for answer in answers.values():
        return BatchedAnswer(custom_id=result.batch_request_id, status=_OK, body=bytes(answer))
    error = bytes(result.batch_result.error)
    if is_cancelled or not error:
        return BatchedAnswer(custom_id=result.batch_request_id, status=None)
    return BatchedAnswer(
        custom_id=result.batch_request_id, status=FAILED, body=b'{"error":' + error + b"}"
    )
