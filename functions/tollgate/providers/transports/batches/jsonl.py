"""Files of requests and results in OpenAI's form, which other providers have adopted.

https://platform.openai.com/docs/guides/batch (2026-11-27). Groq and DashScope have the same form:
https://console.groq.com/docs/batch,
https://www.alibabacloud.com/help/en/model-studio/openai-compatible-batch-file-input (2026-11-28).
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

import pydantic_core
from msgspec import MsgspecError, Raw, Struct, field, json

from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.base import FormPart, UpstreamRefused
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    NotAccepted,
)
from tollgate.providers.transports.batches.calls import ProviderCalls

# The status for a failed request if the provider states neither a status nor whose fault it was.
FAILED: Final = 500
# The codes of requests that did not run.
_NOT_RUN: Final = frozenset({"batch_expired", "batch_cancelled"})
_STREAM_FIELDS: Final = frozenset({"stream", "stream_options"})


class _File(Struct):
    id: str


class _Response(Struct):
    status_code: int = 0
    body: Raw = field(default_factory=lambda: Raw(b"null"))


class _Error(Struct):
    code: object = None


class _Line(Struct):
    custom_id: str
    response: _Response | None = None
    error: Raw = field(default_factory=lambda: Raw(b"null"))


_LINES: Final = json.Decoder(_Line)


def route_of(request: BatchedRequest) -> str:
    """Return the route of a request as files and batches name it."""
    return f"/v1{request.path}"


def plain_body(request: BatchedRequest) -> Mapping[str, object]:
    """Return the body of a request without the fields of streams."""
    return {name: value for name, value in request.body.items() if name not in _STREAM_FIELDS}


def batch_line(request: BatchedRequest) -> Mapping[str, object]:
    """Return a request as a line of a batch's file in OpenAI's form."""
    return {
        "custom_id": request.custom_id,
        "method": "POST",
        "url": route_of(request),
        "body": plain_body(request),
    }


async def upload_lines(
    calls: ProviderCalls, name: str, lines: Sequence[Mapping[str, object]]
) -> str:
    """Upload a file of lines and return its id; raise NotAccepted on any failure."""
    content = b"".join(pydantic_core.to_json(line) + b"\n" for line in lines)
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
        file = await calls.call(_File, "POST", "/files", form=form)
    except (UpstreamRefused, UpstreamError) as failure:
        raise NotAccepted from failure
    return file.id


async def read_files(
    calls: ProviderCalls, file_ids: Sequence[str | None]
) -> AsyncGenerator[BatchedAnswer, None]:
    """Yield the answers in files of results, of which some may be absent."""
    for file_id in filter(None, file_ids):
        path = f"/files/{file_id}/content"
        try:
            async with aclosing(calls.read_lines(path)) as lines:
                async for line in lines:
                    yield _answer(calls, line, path)
        except UpstreamRefused as refused:
            raise calls.as_failure(refused) from refused


def _answer(calls: ProviderCalls, line: bytes, path: str) -> BatchedAnswer:
    try:
        found = _LINES.decode(line)
        error = json.decode(found.error, type=_Error | str | None)
    except MsgspecError as invalid:
        raise calls.malformed(path) from invalid
    response = found.response
    if response is not None and response.status_code:
        return BatchedAnswer(
            custom_id=found.custom_id, status=response.status_code, body=bytes(response.body)
        )
    if error is None or (isinstance(error, _Error) and str(error.code) in _NOT_RUN):
        return BatchedAnswer(custom_id=found.custom_id, status=None)
    body = b'{"error":' + bytes(found.error) + b"}"
    return BatchedAnswer(custom_id=found.custom_id, status=FAILED, body=body)
