"""The Lambda Runtime API of one execution environment, version 2018-06-01, over raw connections.

An environment of Managed Instances works on several invocations at once. Which of them a /next ends
is told by the connection on which the invocation was handed out.

"Using the Lambda runtime API for custom runtimes" for the calls, "Building a custom runtime" for
the streamed response; statuses and error types of refusals as RIE gives them (see violations.py).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import uuid
from typing import Protocol

from tests.emulator.event import encode
from tests.emulator.http1 import (
    HeaderList,
    MalformedHttp,
    Request,
    Truncated,
    read_request,
    response_head,
)
from tests.emulator.integration import is_error_document
from tests.emulator.invocation import Invocation
from tests.emulator.listener import Listener
from tests.emulator.violations import Rule

ERROR_TYPE = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY = "Lambda-Runtime-Function-Error-Body"

# "Lambda quotas": 6 MB buffered (RIE: plus 100 bytes), 200 MB streamed.
BUFFERED_BYTES_MAX = 6 * 1024 * 1024 + 100
STREAMED_BYTES_MAX = 200 * 1024 * 1024

_PREFIX = "/2018-06-01/runtime"
_ANSWER_PATH = re.compile(re.escape(_PREFIX) + "/invocation/([^/]+)/(response|error)")


class Host(Protocol):
    """The execution environment, as its Runtime API needs it."""

    running: dict[int, Invocation]
    initialised: bool
    snapshots: int

    @property
    def snap_start(self) -> bool: ...
    @property
    def arn(self) -> str: ...
    @property
    def in_flight_max(self) -> int: ...
    @property
    def waiting(self) -> int: ...

    async def take(self, worker: int) -> Invocation: ...
    def finish(self, worker: int) -> None: ...
    def report(self, rule: Rule, detail: str) -> None: ...
    def init_failed(self, message: str) -> None: ...


class _Refusal(Exception):
    def __init__(self, status: int, error_type: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.document = {"errorMessage": message, "errorType": error_type}


class RuntimeApi:
    """Serves one process; whatever breaks a rule is reported to the host and refused."""

    def __init__(self, host: Host, failures: list[Exception]) -> None:
        self._host = host
        self._listener = Listener(self._connected, failures)
        self._streamed_open = 0

    async def start(self) -> str:
        """Listen; returns the value of AWS_LAMBDA_RUNTIME_API."""
        return await self._listener.start()

    async def close(self) -> None:
        """Read out what the dead process had still sent, then stop."""
        await self._listener.close(drain_s=5)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except MalformedHttp as error:
            self._host.report(Rule.MALFORMED_HTTP, str(error))
            document = {"errorMessage": str(error), "errorType": "BadRequest"}
            await _reply(writer, 400, document)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # An environment that runs one invocation may ask for the next one on a new connection.
        worker = id(writer) if self._host.in_flight_max > 1 else 0
        try:
            await self._serve_worker(worker, reader, writer)
        finally:
            if worker:
                self._host.finish(worker)

    async def _serve_worker(
        self, worker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while (request := await read_request(reader)) is not None:
            if (request.header("expect") or "").lower() == "100-continue":
                writer.write(response_head(100, []))
            self._report_cut_short()
            try:
                streamed = await self._dispatch(worker, request, writer)
            except _Refusal as refusal:
                async for _ in request.body():
                    pass
                await _reply(writer, refusal.status, refusal.document)
                continue
            if streamed:
                # "Building a custom runtime": the runtime closes the connection after the response.
                if await reader.read(1):
                    self._host.report(Rule.CONNECTION_KEPT, "another request follows on it")
                self._streamed_open -= 1
                return

    async def _dispatch(self, worker: int, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Whether the request was a streamed response, which ends its connection."""
        answer = _ANSWER_PATH.fullmatch(request.target)
        match request.method, request.target.removeprefix(_PREFIX):
            case "GET", "/invocation/next":
                await self._next(worker, writer)
            case "GET", "/restore/next" if self._host.snap_start:
                await self._restore(writer)
            case "POST", "/restore/error" if self._host.snap_start:
                await self._restore_error(request, writer)
            case "POST", "/init/error":
                await self._init_error(request, writer)
            case "POST", _ if answer and answer[2] == "response":
                return await self._response(request, answer[1], writer)
            case "POST", _ if answer:
                await self._error(request, answer[1], writer)
            case _:
                detail = f"{request.method} {request.target}"
                raise self._refuse(Rule.UNKNOWN_PATH, 404, "NotFound", detail)
        return False

    async def _next(self, worker: int, writer: asyncio.StreamWriter) -> None:
        current = self._host.running.get(worker)
        if self._host.snap_start and not self._host.snapshots:
            raise self._refuse(Rule.NEXT_BEFORE_RESTORE, 403, "InvalidStateTransition", "no copy")
        if self._host.waiting >= self._host.in_flight_max:
            detail = f"{self._host.waiting} wait"
            raise self._refuse(Rule.CONCURRENT_NEXT, 403, "InvalidStateTransition", detail)
        if current is not None and not current.answered:
            detail = f"{current.request_id} has no response"
            raise self._refuse(Rule.NEXT_BEFORE_RESPONSE, 403, "InvalidStateTransition", detail)
        invocation = await self._host.take(worker)
        payload = encode(invocation.event)
        trace = f"Root=1-{uuid.uuid4().hex[:8]}-{uuid.uuid4().hex[:24]};Sampled=0"
        headers: HeaderList = [
            ("Content-Type", "application/json"),
            ("Lambda-Runtime-Aws-Request-Id", invocation.request_id),
            ("Lambda-Runtime-Deadline-Ms", str(invocation.deadline_ms)),
            ("Lambda-Runtime-Invoked-Function-Arn", self._host.arn),
            ("Lambda-Runtime-Trace-Id", trace),
            ("Lambda-Runtime-Invocation-Id", invocation.invocation_id),
            ("Content-Length", str(len(payload))),
        ]
        writer.write(response_head(200, headers) + payload)
        await writer.drain()

    async def _response(
        self, request: Request, request_id: str, writer: asyncio.StreamWriter
    ) -> bool:
        invocation = self._addressed(request, request_id, after_start=Rule.SECOND_RESPONSE)
        mode = request.header("lambda-runtime-function-response-mode")
        if mode not in (None, "streaming"):
            invocation.fail("refused", f"response mode {mode}")
            raise self._refuse(Rule.RESPONSE_MODE, 400, "InvalidFunctionResponseMode", str(mode))
        streaming = mode == "streaming"
        if streaming:
            if not request.chunked:
                invocation.fail("refused", "a streamed response without chunks")
                raise self._refuse(Rule.NOT_CHUNKED, 400, "BadRequest", str(request.headers))
            if self._streamed_open >= self._host.in_flight_max:
                self._host.report(Rule.CONNECTION_KEPT, "open when the next response begins")
            self._streamed_open += 1
        invocation.open(streaming=streaming, content_type=request.header("content-type"))
        try:
            await self._receive(request, invocation, streaming=streaming)
        except Truncated as error:
            if not invocation.answered:
                invocation.cut_short = True
                invocation.fail("truncated", str(error))
            self._streamed_open -= streaming
            raise
        except MalformedHttp as error:
            invocation.fail("refused", str(error))
            raise
        await _reply(writer, 202, {"status": "OK"})
        return streaming

    async def _receive(self, request: Request, invocation: Invocation, *, streaming: bool) -> None:
        size_max = STREAMED_BYTES_MAX if streaming else BUFFERED_BYTES_MAX
        size = 0
        async for data in request.body():
            size += len(data)
            if size <= size_max:
                invocation.add(data)
        if size > size_max:
            message = f"Exceeded maximum allowed payload size ({size_max} bytes)."
            invocation.fail("refused", message)
            error_type = "RequestEntityTooLarge"
            raise self._refuse(Rule.RESPONSE_TOO_LARGE, 413, error_type, message)
        self._read_trailers(request, invocation)
        if not invocation.answered:
            invocation.complete()

    def _read_trailers(self, request: Request, invocation: Invocation) -> None:
        announced = {name.strip().lower() for name in (request.header("trailer") or "").split(",")}
        known = {ERROR_TYPE.lower(): ERROR_TYPE, ERROR_BODY.lower(): ERROR_BODY}
        for name, value in request.trailers:
            if name.lower() not in announced:
                self._host.report(Rule.TRAILER_UNANNOUNCED, name)
            if name.lower() not in known:
                self._host.report(Rule.TRAILER_UNKNOWN, name)
            else:
                invocation.trailers[known[name.lower()]] = value
        if not invocation.trailers:
            return
        invocation.error = invocation.trailers.get(ERROR_TYPE, "no error type")
        try:
            body = base64.b64decode(invocation.trailers.get(ERROR_BODY, ""), validate=True)
        except binascii.Error:
            body = b""
        has_body = ERROR_BODY in invocation.trailers
        if ERROR_TYPE not in invocation.trailers or (has_body and not is_error_document(body)):
            self._host.report(Rule.TRAILER_BODY, str(invocation.trailers))

    async def _error(self, request: Request, request_id: str, writer: asyncio.StreamWriter) -> None:
        invocation = self._addressed(request, request_id, after_start=Rule.ERROR_AFTER_START)
        invocation.fail("error", await self._error_text(request))
        await _reply(writer, 202, {"status": "OK"})

    async def _restore(self, writer: asyncio.StreamWriter) -> None:
        """The snapshot is taken and restored at once, in the same process."""
        if self._host.snapshots:
            raise self._refuse(Rule.RESTORED_TWICE, 403, "InvalidStateTransition", "again")
        self._host.snapshots += 1
        await _reply(writer, 200, {})

    async def _restore_error(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self._host.init_failed(await self._error_text(request))
        await _reply(writer, 202, {"status": "OK"})

    async def _init_error(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if self._host.initialised:
            detail = "after the first /next"
            raise self._refuse(Rule.INIT_ERROR_AFTER_INIT, 403, "InvalidStateTransition", detail)
        self._host.init_failed(await self._error_text(request))
        await _reply(writer, 202, {"status": "OK"})

    async def _error_text(self, request: Request) -> str:
        payload = b"".join([data async for data in request.body()])
        if not is_error_document(payload):
            self._host.report(Rule.ERROR_DOCUMENT, repr(payload[:200]))
            return request.header(ERROR_TYPE) or "error without a document"
        document = json.loads(payload)
        return f"{document['errorType']}: {document['errorMessage']}"

    def _addressed(self, request: Request, request_id: str, *, after_start: Rule) -> Invocation:
        running = self._host.running.values()
        invocation = next((it for it in running if it.request_id == request_id), None)
        if invocation is None:
            raise self._refuse(Rule.UNKNOWN_REQUEST_ID, 400, "InvalidRequestID", request_id)
        if invocation.opened or invocation.answered:
            raise self._refuse(after_start, 403, "InvalidStateTransition", request.target)
        echoed = request.header("lambda-runtime-invocation-id")
        if echoed not in (None, invocation.invocation_id):
            raise self._refuse(Rule.INVOCATION_ID, 400, "InvalidRequestID", str(echoed))
        return invocation

    def _refuse(self, rule: Rule, status: int, error_type: str, detail: str) -> _Refusal:
        self._host.report(rule, detail)
        return _Refusal(status, error_type, f"{rule.text}: {detail}")

    def _report_cut_short(self) -> None:
        """A half response is only then the process's death when it does not speak again."""
        for invocation in self._host.running.values():
            if invocation.cut_short:
                invocation.cut_short = False
                self._host.report(Rule.TRUNCATED, invocation.error or "")


async def _reply(writer: asyncio.StreamWriter, status: int, document: dict[str, str]) -> None:
    body = json.dumps(document).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    writer.write(response_head(status, headers) + body)
    await writer.drain()
