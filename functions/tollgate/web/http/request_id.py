"""The request id of each reply."""

from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tollgate.core.ids import IdSource
from tollgate.core.tracing import PLATFORM_IDS_EXTENSION, PlatformIds

_REQUEST_ID: Final = "x-request-id"
_RAW_REQUEST_ID: Final = _REQUEST_ID.encode()
_RAW_CLIENT_REQUEST_ID: Final = b"x-client-request-id"
_CLIENT_REQUEST_ID_LENGTH_MAX: Final = 128
_SCOPE_KEY: Final = "tollgate.request_id"


def request_id_of(scope: Scope) -> str:
    """Return the id that `RequestIds` assigned to this request."""
    request_id: str = scope[_SCOPE_KEY]
    return request_id


def platform_ids_of(scope: Scope) -> PlatformIds:
    """Return the ids that the platform gave to a request."""
    extensions = scope.get("extensions") or {}
    return PlatformIds(**extensions.get(PLATFORM_IDS_EXTENSION, {}))


def client_request_id(headers: Mapping[str, str]) -> str | None:
    """Return the caller's own `x-request-id`; None if it is too long or not printable ASCII."""
    return _printable(headers.get(_REQUEST_ID))


def _printable(value: str | None) -> str | None:
    if value and len(value) <= _CLIENT_REQUEST_ID_LENGTH_MAX and value.isascii():
        return value if value.isprintable() else None
    return None


class RequestIds:
    """Assigns each request an id before any other middleware runs, and adds the id to the reply.

    A reply that already has the header keeps its value.
    """

    def __init__(self, app: ASGIApp, *, ids: IdSource) -> None:
        self._app = app
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._ids.new_id()
        sent_id = next((value for name, value in scope["headers"] if name == _RAW_REQUEST_ID), None)
        client_id = None if sent_id is None else _printable(sent_id.decode("latin-1"))

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Starlette's headers are avoided, because every look-up searches all of them as
                # strings.
                headers = [*message["headers"]]
                if not any(name == _RAW_REQUEST_ID for name, _ in headers):
                    headers.append((_RAW_REQUEST_ID, request_id.encode()))
                if client_id is not None:
                    headers.append((_RAW_CLIENT_REQUEST_ID, client_id.encode()))
                message = {**message, "headers": headers}
            await send(message)

        await self._app({**scope, _SCOPE_KEY: request_id}, receive, send_named)
