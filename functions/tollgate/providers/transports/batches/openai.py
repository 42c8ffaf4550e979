"""Batches in OpenAI's form: a file of requests, a batch over it, and files of results.

https://platform.openai.com/docs/guides/batch, https://platform.openai.com/docs/api-reference/batch
(2026-11-27)
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

import pydantic_core
from msgspec import MsgspecError, Raw, Struct, field, json

from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.base import FormPart, ProviderRow, UpstreamRefused
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    NotAccepted,
    ProviderBatches,
)
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls, make_calls

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
_BAD_REQUEST: Final = 400
_SERVER_ERROR: Final = 500
_STREAM_FIELDS: Final = frozenset({"stream", "stream_options"})


class _File(Struct):
    id: str


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


class _Response(Struct):
    status_code: int = 0
    body: Raw = field(default_factory=lambda: Raw(b"null"))


class _Line(Struct):
    custom_id: str
    response: _Response | None = None


_LINES: Final = json.Decoder(_Line)
_Reply = TypeVar("_Reply", _Batch, _Page)


class OpenAIBatches:
    """Implements `ProviderBatches` in OpenAI's form."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(self, name: str, requests: Sequence[BatchedRequest]) -> str:
        first = requests[0]
        content = b"".join(map(_encode, requests))
        form = (
            FormPart(name="purpose", content=b"batch"),
            FormPart(
                name="file",
                content=content,
                file_name=f"{name}.jsonl",
                media_type="application/jsonl",
            ),
        )
        try:
            file = await self._calls.call(_File, "POST", "/files", form=form)
        except (UpstreamRefused, UpstreamError) as failure:
            raise NotAccepted from failure
        body = {
            "input_file_id": file.id,
            "endpoint": _route(first),
            "completion_window": "24h",
            "metadata": {_NAME: name},
        }
        try:
            batch = await self._calls.call(_Batch, "POST", "/batches", body=json.encode(body))
        except UpstreamRefused as refused:
            if refused.status < _SERVER_ERROR:
                raise NotAccepted from refused
            raise self._calls.as_failure(refused) from refused
        return batch.id

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        after = ""
        while True:
            page = await self._get(_Page, f"/batches?limit={_PAGE}{after}")
            for batch in page.data:
                if (batch.metadata or {}).get(_NAME) == name:
                    return batch.id
            if not (page.has_more and page.data):
                return None
            if page.data[-1].created_at < since_s - _CLOCK_S:
                return None
            after = f"&after={page.data[-1].id}"

    async def get_state(self, batch_id: str) -> BatchState:
        batch = await self._get(_Batch, f"/batches/{batch_id}")
        return _STATES.get(batch.status, "running")

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        batch = await self._get(_Batch, f"/batches/{batch_id}")
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            path = f"/files/{file_id}/content"
            try:
                async with aclosing(self._calls.read_lines(path)) as lines:
                    async for line in lines:
                        yield self._answer(line, path)
            except UpstreamRefused as refused:
                raise self._calls.as_failure(refused) from refused

    async def cancel(self, batch_id: str) -> None:
        try:
            await self._calls.call(_Batch, "POST", f"/batches/{batch_id}/cancel")
        except UpstreamRefused as refused:
            if not _BAD_REQUEST <= refused.status < _SERVER_ERROR:
                raise self._calls.as_failure(refused) from refused

    def _answer(self, line: bytes, path: str) -> BatchedAnswer:
        try:
            found = _LINES.decode(line)
        except MsgspecError as invalid:
            raise self._calls.malformed(path) from invalid
        response = found.response
        if response is None or not response.status_code:
            return BatchedAnswer(custom_id=found.custom_id, status=None)
        return BatchedAnswer(
            custom_id=found.custom_id, status=response.status_code, body=bytes(response.body)
        )

    async def _get(self, reply: type[_Reply], path: str) -> _Reply:
        try:
            return await self._calls.call(reply, "GET", path)
        except UpstreamRefused as refused:
            raise self._calls.as_failure(refused) from refused


def make_openai_batches(row: ProviderRow, services: ProviderServices) -> ProviderBatches:
    """Return the batches of a row."""
    return OpenAIBatches(make_calls(row, services))


def _encode(request: BatchedRequest) -> bytes:
    body = {name: value for name, value in request.body.items() if name not in _STREAM_FIELDS}
    line = {
        "custom_id": request.custom_id,
        "method": "POST",
        "url": _route(request),
        "body": body,
    }
    return pydantic_core.to_json(line) + b"\n"


def _route(request: BatchedRequest) -> str:
    return f"/v1{request.path}"
