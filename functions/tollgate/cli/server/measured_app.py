"""An ASGI app that serves `GET /metrics` and counts the replies of the whole app."""

import asyncio
import hmac
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

import pydantic_core
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tollgate.cli.server.metrics import ServerMetrics
from tollgate.core.errors import ErrorCode
from tollgate.web.http.paths import STREAMING_PATHS, canonical_path
from tollgate.web.http.source_address import is_forwarded

PATH: Final = "/metrics"
# Label for unmetered routes and unknown paths.
_API: Final = "api"
# Maximum number of bytes to read from an error body to find its code.
_ERROR_BYTES_MAX: Final = 65_536
_CODES: Final = frozenset(code.value for code in ErrorCode)


class MetricsAccess(Struct, frozen=True, kw_only=True):
    """The clients that may read the metrics; none by default."""

    token: str | None = None
    """A bearer token that may read the metrics."""
    loopback: bool = False
    """True if all programs on this machine may read the metrics, but not through a proxy."""

    @property
    def is_open(self) -> bool:
        """True if any client may read the metrics."""
        return self.loopback or self.token is not None

    def admits(self, scope: Scope) -> bool:
        """Return whether a request may read the metrics."""
        headers = Headers(scope=scope)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if self.token is not None and scheme.lower() == "bearer":
            return hmac.compare_digest(token.strip().encode(), self.token.encode())
        client = scope.get("client")
        direct = not is_forwarded(headers)
        return self.loopback and direct and client is not None and _is_of_this_machine(client[0])


class MeasuredApp:
    """An ASGI app that serves `GET /metrics`, and counts the replies of an inner app."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, access: MetricsAccess) -> None:
        self._app = app
        self._metrics = metrics
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = canonical_path(scope["path"])
        if path == PATH and self._access.is_open:
            await self._reply(scope)(scope, receive, send)
            return
        await self._count(path, scope, receive, send)

    def _reply(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return _refuse(HTTPStatus.METHOD_NOT_ALLOWED, allow="GET, HEAD")
        if not self._access.admits(scope):
            return _refuse(HTTPStatus.UNAUTHORIZED, **{"www-authenticate": "Bearer"})
        self._metrics.note_tasks(len(asyncio.all_tasks()))
        return Response(self._metrics.render(), media_type=CONTENT_TYPE_LATEST)

    async def _count(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        metered = path in STREAMING_PATHS and scope["method"] == "POST"
        route, status = path if metered else _API, "none"
        refusal: bytearray | None = None

        async def send_counted(message: Message) -> None:
            nonlocal status, refusal
            if message["type"] == "http.response.start":
                status = str(message["status"])
                refusal = bytearray() if message["status"] >= HTTPStatus.BAD_REQUEST else None
            elif refusal is not None and len(refusal) < _ERROR_BYTES_MAX:
                refusal += message.get("body", b"")
            await send(message)

        if metered:
            self._metrics.begin_request()
        try:
            await self._app(scope, receive, send_counted)
        finally:
            if metered:
                self._metrics.end_request()
            self._metrics.count_reply(route, status)
            if refusal is not None:
                self._metrics.count_refusal(route, _code_of(bytes(refusal)))


def _is_of_this_machine(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _code_of(body: bytes) -> str:
    """Return the error code in a reply's body; "" if the body has no known code."""
    try:
        decoded = pydantic_core.from_json(body)
    except ValueError:
        return ""
    error = decoded.get("error") if isinstance(decoded, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and code in _CODES else ""


def _refuse(status: HTTPStatus, **headers: str) -> Response:
    return PlainTextResponse(f"{status.phrase}\n", status, headers)
