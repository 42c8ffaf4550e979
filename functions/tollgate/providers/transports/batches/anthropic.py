"""Batches in Anthropic's form: the requests in one body, and one stream of results.

https://platform.claude.com/docs/en/build-with-claude/batch-processing,
https://platform.claude.com/docs/en/api/creating-message-batches (2026-11-27)
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Final

import pydantic_core
from msgspec import MsgspecError, Raw, Struct, field, json

from tollgate.providers.ports.base import ProviderRow, UpstreamRefused
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    NotYetKnown,
    ProviderBatches,
)
from tollgate.providers.shared.anthropic_statuses import STATUS_OF_TYPE
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls, make_calls

_PATH: Final = "/messages/batches"
_ENDED: Final = "ended"
_HEADERS: Final = {"anthropic-version": "2023-06-01"}
_PAGE: Final = 100
# Tolerance between the clocks of provider and gateway.
_CLOCK_S: Final = 300.0
_OK: Final = 200
_SERVER_ERROR: Final = 500


class _Batch(Struct):
    id: str
    processing_status: str
    created_at: datetime
    request_counts: dict[str, int] = field(default_factory=dict)


class _Page(Struct):
    data: list[_Batch]
    has_more: bool = False


class _ErrorType(Struct):
    type: str = ""


class _ErrorBody(Struct):
    error: _ErrorType = field(default_factory=_ErrorType)


class _Result(Struct):
    type: str
    message: Raw = field(default_factory=lambda: Raw(b"null"))
    error: Raw = field(default_factory=lambda: Raw(b"{}"))


class _Line(Struct):
    custom_id: str
    result: _Result


_LINES: Final = json.Decoder(_Line)


class AnthropicBatches:
    """Implements `ProviderBatches` in Anthropic's form."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        body = pydantic_core.to_json({"requests": [_request(each) for each in requests]})
        headers = {**_HEADERS, **requests[0].headers}
        return (await self._calls.create(_Batch, _PATH, body, headers)).id

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        """Return the id of a batch whose results have the name.

        Anthropic stores no name with a batch, and shows a batch's `custom_id`s only in its results.
        """

        def is_old(batch: _Batch) -> bool:
            return batch.created_at.timestamp() < since_s - _CLOCK_S

        def next_of(page: _Page) -> Mapping[str, object] | None:
            is_last = not (page.has_more and page.data) or any(map(is_old, page.data))
            return None if is_last else {"after_id": page.data[-1].id}

        running = False
        listed = self._calls.pages(_Page, _PATH, {"limit": _PAGE}, next_of, headers=_HEADERS)
        async with aclosing(listed) as pages:
            async for page in pages:
                # Each batch of the same size costs a call, so longer pages are cut.
                for batch in page.data[:_PAGE]:
                    if is_old(batch) or sum(batch.request_counts.values()) != count:
                        continue
                    if batch.processing_status != _ENDED:
                        running = True
                    elif await self._has_name(batch.id, name):
                        return batch.id
        if running:
            raise NotYetKnown
        return None

    async def get_state(self, batch_id: str) -> BatchState:
        batch = await self._calls.get(_Batch, f"{_PATH}/{batch_id}", _HEADERS)
        return "ended" if batch.processing_status == _ENDED else "running"

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        path = f"{_PATH}/{batch_id}/results"
        try:
            async with aclosing(self._calls.read_lines(path, _HEADERS)) as lines:
                async for line in lines:
                    yield self._answer(line, path)
        except UpstreamRefused as refused:
            raise self._calls.as_failure(refused) from refused

    async def cancel(self, batch_id: str) -> None:
        await self._calls.cancel(f"{_PATH}/{batch_id}/cancel", _HEADERS)

    async def _has_name(self, batch_id: str, name: str) -> bool:
        """Return whether the first result belongs to the batch with this name."""
        async with aclosing(self.read_answers(batch_id)) as answers:
            async for answer in answers:
                return answer.custom_id.startswith(name)
        return False

    def _answer(self, line: bytes, path: str) -> BatchedAnswer:
        try:
            found = _LINES.decode(line)
            match found.result.type:
                case "succeeded":
                    status, body = _OK, found.result.message
                case "errored":
                    error = json.decode(found.result.error, type=_ErrorBody).error
                    status = STATUS_OF_TYPE.get(error.type, _SERVER_ERROR)
                    body = found.result.error
                case _:
                    return BatchedAnswer(custom_id=found.custom_id, status=None)
        except MsgspecError as invalid:
            raise self._calls.malformed(path) from invalid
        return BatchedAnswer(custom_id=found.custom_id, status=status, body=bytes(body))


def make_anthropic_batches(row: ProviderRow, services: ProviderServices) -> ProviderBatches:
    """Return the batches of a row."""
    return AnthropicBatches(make_calls(row, services))


def _request(request: BatchedRequest) -> dict[str, object]:
    params = {name: value for name, value in request.body.items() if name != "stream"}
    return {"custom_id": request.custom_id, "params": params}
