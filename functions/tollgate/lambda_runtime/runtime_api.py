"""The client of the Lambda Runtime API.

Endpoints, headers and trailers: AWS Lambda developer guide, "Using the Lambda runtime API for
custom runtimes", "Building a custom runtime" and "Implementing SnapStart hooks for container
images" (seen 2026-11-21).
"""

import base64
import logging
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from pydantic_core import to_json

from tollgate.http1.connecting import connect, make_buffer
from tollgate.http1.connection import Connection
from tollgate.http1.errors import ConnectionLost, HttpError
from tollgate.http1.reply import Reply
from tollgate.http1.request import Origin, encode_head, parse_url

_ROOT: Final = "/2018-06-01/runtime"
# This limit is far above the 6 MB to which Lambda limits an event (quotas page, seen 2026-11-21).
INVOCATION_BYTES_MAX: Final = 16 * 1024 * 1024
_ACKNOWLEDGEMENT_BYTES_MAX: Final = 64 * 1024
_ERROR_TYPE: Final = "Lambda-Runtime-Function-Error-Type"
_ERROR_BODY: Final = "Lambda-Runtime-Function-Error-Body"
_INVOCATION_ID: Final = "Lambda-Runtime-Invocation-Id"
_CHUNKED: Final = "Transfer-Encoding: chunked\r\n"
_LOGGER: Final = logging.getLogger(__name__)


class RuntimeApiError(Exception):
    """Raised if the Runtime API cannot be reached or breaks its protocol, so that the process
    cannot go on.
    """


class FunctionError(Struct, frozen=True, kw_only=True):
    """A failure that is reported to Lambda; the caller may see `message`."""

    type: str
    message: str

    def encode(self) -> bytes:
        """Return the failure in Lambda's JSON format."""
        return to_json({"errorType": self.type, "errorMessage": self.message, "stackTrace": []})


class Invocation(Struct, frozen=True, kw_only=True):
    """An event that the function must answer."""

    request_id: str
    deadline_ms: int
    """The Unix time at which Lambda kills the process."""
    event_bytes: bytes
    invocation_id: str | None = None
    """Id that the response must repeat; None if Lambda sent no such id."""
    trace_id: str | None = None

    def log_fields(self) -> dict[str, str | None]:
        """Return the fields that identify this invocation in a log line."""
        return {"request_id": self.request_id, "trace_id": self.trace_id}


class RuntimeApi:
    """The client of one poller: polls reuse a connection, and each response opens a new one."""

    def __init__(self, runtime_api: str) -> None:
        self._origin, _ = parse_url(f"http://{runtime_api}")
        self._host = runtime_api
        self._buffer = make_buffer()
        self._polling: Connection | None = None

    async def next_invocation(self) -> Invocation:
        """Wait for an event without a time limit; Lambda may freeze the process meanwhile."""
        try:
            reply, event = await self._poll()
        except HttpError as error:
            raise RuntimeApiError(f"no invocation: {error}") from error
        if reply.status != 200:
            raise RuntimeApiError(f"no invocation: HTTP {reply.status}")
        request_id = reply.headers.get("lambda-runtime-aws-request-id", "")
        deadline_ms = reply.headers.get("lambda-runtime-deadline-ms", "")
        if not request_id or not (deadline_ms.isascii() and deadline_ms.isdigit()):
            raise RuntimeApiError("an invocation has no id or no deadline")
        return Invocation(
            request_id=request_id,
            deadline_ms=int(deadline_ms),
            event_bytes=event,
            invocation_id=reply.headers.get(_INVOCATION_ID.lower()),
            trace_id=reply.headers.get("lambda-runtime-trace-id"),
        )

    def make_response(self, invocation: Invocation) -> "ResponseStream":
        """Return the object that streams the response to an invocation; nothing is sent yet."""
        headers = {
            "Host": self._host,
            "Lambda-Runtime-Function-Response-Mode": "streaming",
            "Content-Type": "application/vnd.awslambda.http-integration-response",
            "Trailer": f"{_ERROR_TYPE}, {_ERROR_BODY}",
        }
        path = f"{_invocation_path(invocation)}/response"
        head = encode_head("POST", path, headers | _echoed(invocation), _CHUNKED)
        return ResponseStream(self._origin, self._buffer, head, invocation)

    async def fail_invocation(self, invocation: Invocation, error: FunctionError) -> None:
        """Report that an invocation failed before its response began."""
        await self._report(f"{_invocation_path(invocation)}/error", error, _echoed(invocation))

    async def fail_init(self, error: FunctionError) -> None:
        """Report that the function could not start; the process must then end."""
        await self._report(f"{_ROOT}/init/error", error, {})

    async def wait_restored(self) -> None:
        """Tell Lambda to take a snapshot, and return in a process restored from the snapshot."""
        head = encode_head("GET", f"{_ROOT}/restore/next", {"Host": self._host}, "")
        try:
            status = await self._call_once(head)
        except HttpError as error:
            raise RuntimeApiError(f"not restored: {error}") from error
        if status != 200:
            raise RuntimeApiError(f"not restored: HTTP {status}")

    async def fail_restore(self, error: FunctionError) -> None:
        """Report that a restored function cannot continue; the process must then end."""
        await self._report(f"{_ROOT}/restore/error", error, {})

    def close(self) -> None:
        """Close the connection for polling."""
        if self._polling is not None:
            self._polling.close()
            self._polling = None

    async def _poll(self) -> tuple[Reply, bytes]:
        """Return the reply with the next invocation, and the reply's body."""
        if self._polling is not None and self._polling.is_open:
            # Lambda may have closed the connection while the process was frozen.
            try:
                return await self._get_next(self._polling)
            except ConnectionLost:
                self.close()
        self._polling = await connect(self._origin, self._buffer)
        return await self._get_next(self._polling)

    async def _get_next(self, connection: Connection) -> tuple[Reply, bytes]:
        path = f"{_ROOT}/invocation/next"
        await connection.send(encode_head("GET", path, {"Host": self._host}, ""))
        return await _receive(connection, INVOCATION_BYTES_MAX)

    async def _report(self, path: str, error: FunctionError, headers: dict[str, str]) -> None:
        body = error.encode()
        own_headers = {
            "Host": self._host,
            "Content-Type": "application/json",
            _ERROR_TYPE: error.type,
        }
        length = f"Content-Length: {len(body)}\r\n"
        try:
            head = encode_head("POST", path, own_headers | headers, length)
            status = await self._call_once(head + body)
        except HttpError as failure:
            raise RuntimeApiError(f"error not reported: {failure}") from failure
        if status != 202:
            raise RuntimeApiError(f"error not reported: HTTP {status}")

    async def _call_once(self, request: bytes) -> int:
        """Send a request on a new connection, and return the status of the reply."""
        connection = await connect(self._origin, self._buffer)
        try:
            await connection.send(request)
            reply, _ = await _receive(connection, _ACKNOWLEDGEMENT_BYTES_MAX)
        finally:
            connection.close()
        return reply.status


class ResponseStream:
    """Streams the body of one response to Lambda, in one chunk for each write.

    A lost connection is logged once, and later writes do nothing: the application must go on until
    the generation is settled.
    """

    def __init__(
        self, origin: Origin, buffer: memoryview, head: bytes, invocation: Invocation
    ) -> None:
        self._origin = origin
        self._buffer = buffer
        self._unsent = head
        self._invocation = invocation
        self._connection: Connection | None = None
        self._lost = False

    async def open(self) -> None:
        """Connect; the first write also sends the response's head."""
        try:
            if not self._lost:
                self._connection = await connect(self._origin, self._buffer)
        except HttpError as error:
            self._lose(error)

    async def write(self, octets: bytes) -> None:
        """Send part of the body."""
        await self._send(encode_chunk(octets))

    async def end(self, octets: bytes = b"") -> None:
        """Send the last part and the end of the body in one write."""
        await self._send(encode_chunk(octets) + encode_last_chunk())

    async def fail(self, error: FunctionError) -> None:
        """End an incomplete body, with the error in its trailers."""
        encoded = base64.b64encode(error.encode()).decode()
        await self._send(encode_last_chunk({_ERROR_TYPE: error.type, _ERROR_BODY: encoded}))

    async def wait_acknowledged(self) -> None:
        """Wait until Lambda has acknowledged the ended response."""
        if self._connection is None or self._lost:
            return
        try:
            reply, _ = await _receive(self._connection, _ACKNOWLEDGEMENT_BYTES_MAX)
        except HttpError as error:
            self._lose(error)
            return
        if reply.status != 202:
            self._lose(RuntimeApiError(f"HTTP {reply.status}"))

    def close(self) -> None:
        """Close the connection, as Lambda requires after every streamed response."""
        if self._connection is not None:
            self._connection.close()

    async def _send(self, octets: bytes) -> None:
        if self._connection is None or self._lost:
            return
        octets, self._unsent = self._unsent + octets, b""
        try:
            await self._connection.send(octets)
        except HttpError as error:
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self._lost = True
        fields = {**self._invocation.log_fields(), "failure": f"{type(error).__name__}: {error}"}
        _LOGGER.error("response not delivered", extra={"fields": fields})


async def _receive(connection: Connection, body_bytes_max: int) -> tuple[Reply, bytes]:
    """Return the reply to the last request, and the reply's body."""
    await connection.receive()
    reply = Reply(connection, Connection.finish)
    try:
        return reply, await reply.read_all(body_bytes_max)
    finally:
        reply.close()


def encode_chunk(octets: bytes) -> bytes:
    """Return a chunk; return no bytes if there is no data, because an empty chunk would end the
    body.
    """
    return b"%x\r\n%b\r\n" % (len(octets), octets) if octets else b""


def encode_last_chunk(trailers: Mapping[str, str] | None = None) -> bytes:
    """Return the empty chunk and the trailers that end a chunked body."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in (trailers or {}).items())
    return b"0\r\n%b\r\n" % fields.encode("latin-1", errors="replace")


def _invocation_path(invocation: Invocation) -> str:
    return f"{_ROOT}/invocation/{quote(invocation.request_id, safe='')}"


def _echoed(invocation: Invocation) -> dict[str, str]:
    return {_INVOCATION_ID: invocation.invocation_id} if invocation.invocation_id else {}
