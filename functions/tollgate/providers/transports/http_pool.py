"""One pool of connections for every provider, and public errors for network failures."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Final, Literal

import aiohttp
from msgspec import Struct
from yarl import URL

from tollgate.core import tracing
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.base import FormPart, UpstreamRefused

KEEPALIVE_S: Final = 30.0
CONNECTIONS_MAX: Final = 1000
ERROR_BODY_BYTES_MAX: Final = 64 * 1024
# Exceptions that sending or reading may raise.
NETWORK_FAILURES: Final = (aiohttp.ClientError, OSError)


class HttpCall(Struct, frozen=True, kw_only=True):
    """A request ready to be sent; `url` is escaped already."""

    provider: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    connect_s: float
    method: Literal["GET", "POST"] = "POST"
    # Sent as multipart/form-data in place of `body`, if there are any parts.
    form: tuple[FormPart, ...] = ()


class HttpPool:
    """Connections that are kept alive between calls; belongs to the event loop of the first call.

    Sessions are made with the first call, so that a pool can be built before there is a loop and
    before a snapshot is taken. aiohttp shares one TLS context and sets TCP_NODELAY.
    """

    def __init__(self) -> None:
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(self, call: HttpCall) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a call and yield its reply, whose body is still to be read.

        Raises UpstreamRefused for every status but 200, redirects included (they would carry the
        key elsewhere), and UpstreamError for network failures. Leaving the context before the
        body has ended closes the connection.
        """
        try:
            response = await self._sent(call)
        except NETWORK_FAILURES as failure:
            raise network_error(call.provider, failure) from failure
        try:
            if response.status != 200:
                headers = {name.lower(): value for name, value in response.headers.items()}
                try:
                    body = await _read_at_most(response, ERROR_BODY_BYTES_MAX)
                except NETWORK_FAILURES as failure:
                    raise network_error(call.provider, failure) from failure
                raise UpstreamRefused(response.status, headers, body)
            yield response
        finally:
            response.close()

    async def close(self) -> None:
        """Close every connection; the next call opens new ones."""
        sessions, self._kept, self._fresh = (self._kept, self._fresh), None, None
        for session in sessions:
            if session is not None:
                await session.close()

    async def _sent(self, call: HttpCall) -> aiohttp.ClientResponse:
        connection = SimpleNamespace(reused=False)
        if self._kept is None:
            self._kept = _session(force_close=False)
        try:
            return await _send(self._kept, call, connection)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            # A kept connection may have died unnoticed, above all while Lambda was frozen. On a
            # fresh one the provider may have begun to answer, so that nothing is sent again.
            if not connection.reused:
                raise
        if self._fresh is None:
            self._fresh = _session(force_close=True)
        return await _send(self._fresh, call, connection)


def _session(*, force_close: bool) -> aiohttp.ClientSession:
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(_mark_reused)
    connector = (
        aiohttp.TCPConnector(limit=CONNECTIONS_MAX, force_close=True)
        if force_close
        else aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=KEEPALIVE_S)
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"user-agent": "tollgate", "accept-encoding": "identity"},
        trace_configs=[tracing],
    )


async def _mark_reused(
    session: aiohttp.ClientSession,
    context: SimpleNamespace,
    params: aiohttp.TraceConnectionReuseconnParams,
) -> None:
    context.trace_request_ctx.reused = True


async def _send(
    session: aiohttp.ClientSession, call: HttpCall, connection: SimpleNamespace
) -> aiohttp.ClientResponse:
    return await session.request(
        call.method,
        URL(call.url, encoded=True),
        data=_form(call.form) if call.form else call.body,
        headers=_traced(call.headers),
        allow_redirects=False,
        timeout=aiohttp.ClientTimeout(
            total=None, connect=call.connect_s, sock_connect=call.connect_s
        ),
        trace_request_ctx=connection,
    )


def _form(parts: Iterable[FormPart]) -> aiohttp.FormData:
    """Return the body of a form, which is encoded while it is sent: a recording is not copied."""
    form = aiohttp.FormData()
    for part in parts:
        if part.file_name is None:
            form.add_field(part.name, part.content.decode())
        else:
            content = BytesIO(part.content)
            form.add_field(
                part.name, content, filename=part.file_name, content_type=part.media_type
            )
    return form


def _traced(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers with the current span as `traceparent`, which no signature covers."""
    span = tracing.current()
    return headers if span is None else {**headers, "traceparent": span.traceparent()}


async def _read_at_most(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    body = b""
    while len(body) < limit_bytes and (chunk := await response.content.readany()):
        body += chunk
    return body[:limit_bytes]


def network_error(provider: str, failure: Exception) -> UpstreamError:
    """Return the public error of one of NETWORK_FAILURES; its text names no address."""
    match failure:
        case aiohttp.ServerTimeoutError():
            return UpstreamError(
                ErrorCode.PROVIDER_TIMEOUT, f"The provider {provider} did not accept a connection."
            )
        case aiohttp.ClientConnectorError():
            return UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE, f"The provider {provider} cannot be reached."
            )
        case _:
            return UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"The connection to the provider {provider} broke before the end of its answer.",
            )
