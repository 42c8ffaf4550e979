"""Batches in Gemini's form: a file of requests, an operation over it, and a file of responses.

A file of requests, unlike a body with requests, is not limited to 20 MB, and its responses have the
keys of the requests. https://ai.google.dev/gemini-api/docs/batch-api, and the references of batches
and files, https://ai.google.dev/api/batch-api and https://ai.google.dev/api/files (2026-11-28)

Embeddings use another method, which embeds one text per line, although an interactive request can
have several texts: https://ai.google.dev/gemini-api/docs/embeddings, "Batch embeddings", and
`AsyncBatchEmbedContentRequest` of the API's discovery document (2026-11-28).
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

import pydantic_core
from msgspec import MsgspecError, Raw, Struct, field, json

from tollgate.core.errors import UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import ProviderRow, UpstreamRefused
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    NotAccepted,
    ProviderBatches,
)
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls, make_calls

_VERSION: Final = "/v1beta"
_UPLOAD: Final = "/upload/v1beta/files"
# The method that creates a batch, by the method of an interactive request.
_METHODS: Final[Mapping[str, str]] = {
    "streamGenerateContent": "batchGenerateContent",
    "batchEmbedContents": "asyncBatchEmbedContent",
}
_PAGE: Final = 100
# States are named `BATCH_STATE_…`, and `JOB_STATE_…` in older replies.
_STATES: Final[Mapping[str, BatchState]] = {
    "SUCCEEDED": "ended",
    "CANCELLED": "ended",
    "FAILED": "refused",
    "EXPIRED": "refused",
}
_OK: Final = 200
_SERVER_ERROR: Final = 500
# HTTP statuses by the codes of google.rpc.Code, https://cloud.google.com/apis/design/errors.
_STATUSES: Final[Mapping[int, int]] = {
    3: 400,
    4: 504,
    5: 404,
    7: 403,
    8: 429,
    9: 400,
    11: 400,
    12: 501,
    14: 503,
    16: 401,
}


class _Named(Struct):
    name: str


class _Uploaded(Struct):
    file: _Named


class _Output(Struct, rename="camel"):
    responses_file: str | None = None


class _Metadata(Struct, rename="camel"):
    state: str = ""
    display_name: str = ""
    output: _Output = field(default_factory=_Output)


class _Operation(Struct):
    name: str
    metadata: _Metadata = field(default_factory=_Metadata)
    response: _Output = field(default_factory=_Output)


class _Page(Struct, rename="camel"):
    operations: list[_Operation] = field(default_factory=list)
    next_page_token: str = ""


class _Status(Struct):
    code: int = 0


class _Embedding(Struct):
    embedding: Raw = field(default_factory=Raw)


class _Line(Struct):
    key: str
    response: Raw = field(default_factory=Raw)
    error: Raw = field(default_factory=Raw)


_LINES: Final = json.Decoder(_Line)


class GeminiBatches:
    """Implements `ProviderBatches` in Gemini's form."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        model, _, method = requests[0].path.partition("?")[0].rpartition(":")
        if method not in _METHODS:
            raise NotAccepted from ValueError(f"Gemini has no batches of {method}")
        file = await self._upload(name, requests)
        batch = {"displayName": name, "inputConfig": {"fileName": file}}
        path = f"{model}:{_METHODS[method]}"
        return (await self._calls.create(_Named, path, json.encode({"batch": batch}))).name

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        def next_of(page: _Page) -> Mapping[str, object] | None:
            return {"pageToken": page.next_page_token} if page.next_page_token else None

        listed = self._calls.pages(_Page, f"{_VERSION}/batches", {"pageSize": _PAGE}, next_of)
        async with aclosing(listed) as pages:
            async for page in pages:
                for operation in page.operations:
                    if operation.metadata.display_name == name:
                        return operation.name
        return None

    async def get_state(self, batch_id: str) -> BatchState:
        operation = await self._calls.get(_Operation, f"{_VERSION}/{batch_id}")
        return _STATES.get(operation.metadata.state.rpartition("STATE_")[2], "running")

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        operation = await self._calls.get(_Operation, f"{_VERSION}/{batch_id}")
        file = operation.response.responses_file or operation.metadata.output.responses_file
        if file is None:
            return
        path = f"/download{_VERSION}/{file}:download?alt=media"
        try:
            async with aclosing(self._calls.read_lines(path)) as lines:
                async for line in lines:
                    yield self._answer(line, path)
        except UpstreamRefused as refused:
            raise self._calls.as_failure(refused) from refused

    async def cancel(self, batch_id: str) -> None:
        await self._calls.cancel(f"{_VERSION}/{batch_id}:cancel")

    async def _upload(self, name: str, requests: Sequence[BatchedRequest]) -> str:
        """Upload the requests and return the name of the file; raise NotAccepted on failure."""
        lines = ({"key": each.custom_id, "request": _request(each)} for each in requests)
        content = b"".join(pydantic_core.to_json(line) + b"\n" for line in lines)
        start = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(content)),
            "x-goog-upload-header-content-type": "application/jsonl",
        }
        finish = {
            "content-type": "application/jsonl",
            "x-goog-upload-offset": "0",
            "x-goog-upload-command": "upload, finalize",
        }
        body = json.encode({"file": {"displayName": name}})
        try:
            path = await self._calls.ask_for_path(_UPLOAD, "x-goog-upload-url", body, start)
            uploaded = await self._calls.call(_Uploaded, "POST", path, body=content, headers=finish)
        except (UpstreamRefused, UpstreamError) as failure:
            raise NotAccepted from failure
        return uploaded.file.name

    def _answer(self, line: bytes, path: str) -> BatchedAnswer:
        try:
            found = _LINES.decode(line)
            if bytes(found.response):
                body = _whole_answer(found.response)
                return BatchedAnswer(custom_id=found.key, status=_OK, body=body)
            if not bytes(found.error):
                return BatchedAnswer(custom_id=found.key, status=None)
            code = json.decode(found.error, type=_Status).code
        except MsgspecError as invalid:
            raise self._calls.malformed(path) from invalid
        return BatchedAnswer(
            custom_id=found.key,
            status=_STATUSES.get(code, _SERVER_ERROR),
            body=b'{"error":' + bytes(found.error) + b"}",
        )


def make_gemini_batches(row: ProviderRow, services: ProviderServices) -> ProviderBatches:
    """Return the batches of a row."""
    return GeminiBatches(make_calls(row, services))


def _request(request: BatchedRequest) -> JsonValue:
    """Return a request in the shape of a line of a batch's file."""
    texts = request.body.get("requests")
    if not isinstance(texts, list):
        return dict(request.body)
    if len(texts) != 1:
        raise NotAccepted from ValueError("Gemini's batches embed only one text per line")
    [text] = texts
    return text


def _whole_answer(response: Raw) -> bytes:
    """Return a line's answer in the shape of an interactive request's answer."""
    embedding = bytes(json.decode(response, type=_Embedding).embedding)
    return b'{"embeddings":[' + embedding + b"]}" if embedding else bytes(response)
