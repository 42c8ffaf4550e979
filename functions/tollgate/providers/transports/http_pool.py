"""The connection pool for all providers, and public errors for network failures."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from msgspec import Struct

from tollgate.core import tracing
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.ids import new_boundary
from tollgate.http1.errors import CannotConnect, ConnectTimedOut, HttpError
from tollgate.http1.pool import Pool, Reservation
from tollgate.http1.reply import Reply
from tollgate.http1.request import USUAL_HEADERS, Request
from tollgate.providers.ports.base import FormPart, UpstreamRefused

# High, because each stream needs a connection, and `tollgate serve` may have thousands of streams.
CONNECTIONS_MAX: Final = 4000
# uvicorn, Node and Apache close a connection that has been idle for 5 s, and a call that is sent at
# that moment is lost.
_KEPT_S: Final = 4.0
ERROR_BODY_BYTES_MAX: Final = 64 * 1024


class HttpCall(Struct, frozen=True, kw_only=True):
    """A request that is ready to send, with an escaped `url`."""

    provider: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    connect_s: float
    method: Literal["GET", "POST", "DELETE"] = "POST"
    form: tuple[FormPart, ...] = ()
    """Fields to send as multipart/form-data; if there are any, `body` is not sent."""


class ReservedCall(Struct, frozen=True):
    """A call and its reserved connection."""

    call: HttpCall
    reserved: Reservation


class HttpPool:
    """Connections that stay open between calls, in the event loop of the first call.

    A pool can be created without an event loop, and before a Lambda snapshot.
    """

    def __init__(self) -> None:
        self._pool = Pool(CONNECTIONS_MAX, kept_s=_KEPT_S)

    async def reserve(self, call: HttpCall) -> ReservedCall:
        """Return a call with a connection reserved for it; raise UpstreamError on failure."""
        try:
            reserved = await self._pool.reserve(_request(call), connect_s=call.connect_s)
        except HttpError as failure:
            raise network_error(call.provider, failure) from failure
        return ReservedCall(call, reserved)

    @asynccontextmanager
    async def send(self, ready: HttpCall | ReservedCall) -> AsyncIterator[Reply]:
        """Send a call and yield its reply, whose body is still unread.

        The call is sent only once, because a provider may bill a call that it has read. Raises
        UpstreamError for network failures, and UpstreamRefused for every status except 200. That
        includes redirects, because following one would send the key elsewhere. Leaving the context
        before the end of the body closes the connection.
        """
        call, reserved = (
            (ready, None) if isinstance(ready, HttpCall) else (ready.call, ready.reserved)
        )
        try:
            reply = await (
                self._pool.send(_request(call), connect_s=call.connect_s)
                if reserved is None
                else self._pool.send_reserved(reserved, connect_s=call.connect_s)
            )
        except HttpError as failure:
            raise network_error(call.provider, failure) from failure
        try:
            if reply.status != 200:
                try:
                    body = await _read_at_most(reply, ERROR_BODY_BYTES_MAX)
                except HttpError as failure:
                    raise network_error(call.provider, failure) from failure
                raise UpstreamRefused(reply.status, reply.headers, body)
            yield reply
        finally:
            reply.close()

    async def close(self) -> None:
        """Close every idle connection; the next call opens new ones."""
        await self._pool.close()


def _request(call: HttpCall) -> Request:
    headers = {**USUAL_HEADERS, **call.headers}
    span = tracing.current()
    if span is not None:
        # The header may be added after signing, because signatures do not include it.
        headers["traceparent"] = span.traceparent()
    body: Sequence[bytes] = (call.body,) if call.body else ()
    if call.form:
        headers["content-type"], body = encode_form(call.form)
    return Request(method=call.method, url=call.url, headers=headers, body=body)


async def _read_at_most(reply: Reply, limit_bytes: int) -> bytes:
    body = b""
    while len(body) < limit_bytes and (part := await reply.read()):
        body += part
    return body[:limit_bytes]


def network_error(provider: str, failure: HttpError) -> UpstreamError:
    """Return the public error for a network failure; the message has no address."""
    match failure:
        case ConnectTimedOut():
            return UpstreamError(
                ErrorCode.PROVIDER_TIMEOUT, f"The provider {provider} did not accept a connection."
            )
        case CannotConnect():
            return UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE, f"The provider {provider} cannot be reached."
            )
        case _:
            return UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"The connection to the provider {provider} broke before the end of its answer.",
            )


def encode_form(parts: Iterable[FormPart]) -> tuple[str, Sequence[bytes]]:
    """Return a form's media type with its boundary, and the parts of its body.

    The parts stay separate, so a recording is sent without being copied. Names are escaped as
    browsers escape them:
    https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data.
    """
    boundary = new_boundary()
    body: list[bytes] = []
    for part in parts:
        body += (f"--{boundary}\r\n{_head(part)}\r\n\r\n".encode(), part.content, b"\r\n")
    body.append(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", body


def _head(part: FormPart) -> str:
    head = f'content-disposition: form-data; name="{_escape(part.name)}"'
    if part.file_name is None:
        return head
    media_type = _escape(part.media_type or "application/octet-stream")
    return f'{head}; filename="{_escape(part.file_name)}"\r\ncontent-type: {media_type}'


def _escape(text: str) -> str:
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
