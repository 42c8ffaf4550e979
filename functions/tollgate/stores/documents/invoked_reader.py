"""A document reader that invokes a Lambda function for each batch of pages.

The request and the reply of an invocation are limited to 6 MB ("Lambda quotas", AWS Lambda
developer guide, 2026-11). A larger document is uploaded to the bucket, passed by its key, and
deleted afterwards.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final

import msgspec
from msgspec.structs import replace

from tollgate.aws.failures import StoreError
from tollgate.aws.objects import ObjectStore
from tollgate.aws.sigv4 import Signer
from tollgate.core.clock import Clock
from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentPage,
    ReadBatch,
    ReadDocument,
    ReaderUnavailable,
    ReadFault,
    ReadingReply,
    ReadingRequest,
    ReadingShare,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.http1.errors import ConnectTimedOut, HttpError
from tollgate.http1.pool import Pool
from tollgate.http1.request import Request

# As base64 in JSON, a document of this size is smaller than 6 MB.
INLINE_BYTES_MAX: Final = 4_300_000
BATCH_BYTES_MAX: Final = 5_500_000
# Longer than the function's own timeout for a batch of pages.
_INVOKE_SECONDS_MAX: Final = 45.0
_READ_SECONDS_MAX: Final = 90.0
_CONNECT_SECONDS_MAX: Final = 1.0
_CONNECTIONS_MAX: Final = 100
# More than Lambda's own limit of 6 MB.
_REPLY_BYTES_MAX: Final = 8 * 1024 * 1024
_ATTEMPTS_MAX: Final = 2
_PREFIX: Final = "reading/"
_FUNCTION_ERROR: Final = "x-amz-function-error"
# https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation-invoke.html (2026-11-27)
_TENANT: Final = "x-amz-tenant-id"
_THROTTLED: Final = 429
# Pauses before repeating an invocation that Lambda throttled; meanwhile, other documents finish.
_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0)
# Texts that show a timeout: the message "Task timed out after 30.00 seconds", and the error type
# since 2023.
_TIMED_OUT: Final = (b"Task timed out", b"Sandbox.Timedout")


class InvokedReader:
    """A reader that invokes a Lambda function; `new_id` makes names for documents in the bucket.

    With `isolates_tenants`, Lambda uses each environment of the function for a single workspace.
    """

    def __init__(
        self,
        function: str,
        region: str,
        signer: Signer,
        *,
        objects: ObjectStore | None,
        new_id: Callable[[], str],
        clock: Clock,
        endpoint_url: str | None = None,
        isolates_tenants: bool = False,
    ) -> None:
        host = endpoint_url or f"https://lambda.{region}.amazonaws.com"
        self._url = f"{host.rstrip('/')}/2015-03-31/functions/{function}/invocations"
        self._signer = signer
        self._objects = objects
        self._new_id = new_id
        self._isolates_tenants = isolates_tenants
        self._clock = clock
        self._pool = Pool(_CONNECTIONS_MAX)

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        """Return the pages of a document; raise UnreadableDocument or ReaderUnavailable."""
        request = ReadingRequest(
            media_type=media_type,
            task=task,
            bytes_max=BATCH_BYTES_MAX,
            cpu_seconds_max=share.cpu_seconds_max,
        )
        try:
            async with asyncio.timeout(_READ_SECONDS_MAX):
                tenant = {_TENANT: share.workspace_id} if self._isolates_tenants else {}
                if len(content) <= INLINE_BYTES_MAX:
                    return await self._read_batches(replace(request, content=content), tenant)
                return await self._read_uploaded(request, content, tenant)
        except TimeoutError as late:
            raise UnreadableDocument(DocumentFault.TOO_SLOW) from late
        except StoreError as away:
            raise ReaderUnavailable("the bucket cannot be reached") from away

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def _read_uploaded(
        self, request: ReadingRequest, content: bytes, tenant: Mapping[str, str]
    ) -> ReadDocument:
        """Upload the document under a temporary key, have it read, and delete it."""
        if self._objects is None:
            raise UnreadableDocument(
                DocumentFault.TOO_MANY_BYTES, amount=len(content), most=INLINE_BYTES_MAX
            )
        key = f"{_PREFIX}{self._new_id()}"
        await self._objects.put(key, content)
        try:
            return await self._read_batches(replace(request, key=key), tenant)
        finally:
            # If the deletion fails, the bucket's lifecycle rule deletes the document after a day.
            await self._objects.delete(key)

    async def _read_batches(
        self, request: ReadingRequest, tenant: Mapping[str, str]
    ) -> ReadDocument:
        pages: list[DocumentPage] = []
        first: int | None = request.first
        title, pages_total, cpu_seconds = "", 0, 0.0
        while first is not None:
            room = request.cpu_seconds_max - cpu_seconds
            if room <= 0:
                raise UnreadableDocument(DocumentFault.TOO_SLOW)
            part = replace(request, first=first, cpu_seconds_max=room)
            batch = await self._invoke(part, tenant)
            pages += batch.pages
            cpu_seconds += batch.cpu_seconds
            title, pages_total = batch.title, batch.pages_total
            if batch.next_page is not None and batch.next_page <= first:
                raise UnreadableDocument(DocumentFault.CRASHED)
            first = batch.next_page
        return ReadDocument(
            pages=tuple(pages), pages_total=pages_total, title=title, cpu_seconds=cpu_seconds
        )

    async def _invoke(self, request: ReadingRequest, tenant: Mapping[str, str]) -> ReadBatch:
        body = msgspec.json.encode(request)
        for pause_s in _PAUSES_S:
            status, failed, content = await self._send_twice(body, tenant)
            if status != _THROTTLED:
                break
            await self._clock.sleep(pause_s)
        else:
            status, failed, content = await self._send_twice(body, tenant)
        return _read_reply(status, content, failed=failed)

    async def _send_twice(self, body: bytes, tenant: Mapping[str, str]) -> tuple[int, bool, bytes]:
        """Send an invocation, and once more if the connection fails before a reply."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                return await self._send(body, tenant)
            except (HttpError, TimeoutError) as away:
                # A retry is safe because reading is idempotent; Lambda may have closed the reused
                # connection.
                if attempt == _ATTEMPTS_MAX or isinstance(away, TimeoutError | ConnectTimedOut):
                    raise ReaderUnavailable(type(away).__name__) from away
        raise AssertionError("there is at least one attempt")

    async def _send(self, body: bytes, tenant: Mapping[str, str]) -> tuple[int, bool, bytes]:
        """Invoke the function; return the status, whether the function failed, and the body."""
        stated = {"content-type": "application/json", **tenant}
        headers = self._signer.sign("POST", self._url, stated, body)
        request = Request(method="POST", url=self._url, headers=headers, body=(body,))
        async with asyncio.timeout(_INVOKE_SECONDS_MAX):
            with closing(await self._pool.send(request, connect_s=_CONNECT_SECONDS_MAX)) as reply:
                content = await reply.read_all(_REPLY_BYTES_MAX)
                return reply.status, _FUNCTION_ERROR in reply.headers, content


def _read_reply(status: int, content: bytes, *, failed: bool) -> ReadBatch:
    if status != 200:
        raise ReaderUnavailable(f"HTTP {status}")
    if failed:
        slow = any(words in content for words in _TIMED_OUT)
        raise UnreadableDocument(DocumentFault.TOO_SLOW if slow else DocumentFault.CRASHED)
    try:
        reply: ReadingReply = msgspec.json.decode(content, type=ReadingReply)
    except msgspec.MsgspecError as broken:
        raise UnreadableDocument(DocumentFault.CRASHED) from broken
    if isinstance(reply, ReadFault):
        raise reply.error
    return reply
