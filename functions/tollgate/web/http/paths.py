"""Middleware that maps every spelling of a path, and HEAD, to the declared routes."""

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tollgate.core.errors import ErrorCode, MethodNotAllowed, RequestError, not_found
from tollgate.ingress.formats import FORMATS

OPENAPI: Final = "/v1/openapi.json"
SCIM: Final = "/v1/scim/v2"
SCIM_JSON: Final = "application/scim+json"
METERED_PATHS: Final = frozenset(
    {*(each.path for each in FORMATS), *(each.alias.path for each in FORMATS if each.alias)}
)
COUNTING_PATHS: Final = frozenset(each.counting.path for each in FORMATS if each.counting)
# Paths of the streaming function, which has access to provider keys; the buffered function serves
# all other paths.
STREAMING_PATHS: Final = METERED_PATHS | COUNTING_PATHS
METERED_METHODS: Final = ("OPTIONS", "POST")
_HANDSHAKE: Final = b"sec-websocket-key"
_MOUNT: Final = "/api"
_SENT_PATH: Final = "tollgate.sent_path"

_PROVIDER: Final = "use the provider's own API"
# Alternatives to unsupported routes of OpenAI and other gateways, keyed by the path's first
# segment.
_INSTEAD: Final[Mapping[str, str]] = {
    "audio": _PROVIDER,
    "images": _PROVIDER,
}
_SLASHES: Final = re.compile("/{2,}")
# A repeated version, because some clients add it to a base URL that already contains it.
_VERSION_AGAIN: Final = re.compile(r"(?<=^/v1)(/api)?/v1(?=/)")


def refuse_method(scope: Scope) -> RequestError:
    """Return the error for a method other than POST on a path of the streaming function.

    A WebSocket handshake gets 426, and Codex then switches to HTTP immediately. After any other
    status, Codex repeats the handshake (github.com/openai/codex/issues/43353, 2026-09-07). A
    handshake is recognized by its key, because proxies remove the `upgrade` header.
    """
    if any(name == _HANDSHAKE for name, _ in scope["headers"]):
        return RequestError(
            ErrorCode.WEBSOCKET_NOT_SERVED, "WebSockets are not served; use POST over HTTP."
        )
    return MethodNotAllowed(f"{scope['method']} is not served here; use POST.", METERED_METHODS)


class CanonicalPath:
    """Makes `/api/v1/…`, `/v1/…`, and paths with trailing or doubled slashes reach the same route.

    API Gateway strips the stage `api` from the path; other hosts do not.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = canonical_path(scope["path"])
            if path != scope["path"]:
                sent = scope["path"]
                scope = {**scope, "path": path, "raw_path": path.encode(), _SENT_PATH: sent}
        await self._app(scope, receive, send)


class HeadAsGet:
    """Answers HEAD like GET, but without the body, because routes declare only GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"}, receive, send_without_body)


def has_slash_at_end(scope: Scope) -> bool:
    """Return whether the path that the client sent ends in a slash."""
    return str(scope.get(_SENT_PATH, scope["path"])).endswith("/")


def no_route(method: str, path: str) -> RequestError:
    """Return the not_found error for an unknown path, with a hint.

    A path outside /v1/ usually means that the version is missing from the client's base URL; a path
    with two versions means that the client adds the version itself, as Anthropic's SDKs do.
    """
    hint = f"GET {OPENAPI} lists all routes"
    once = _VERSION_AGAIN.sub("", path)
    if f"/v1{path}" in STREAMING_PATHS:
        hint = "add /v1 to the client's base URL"
    elif not path.startswith("/v1/"):
        hint = f"a client's base URL ends in /api/v1, and {hint}"
    elif path not in STREAMING_PATHS and (instead := _INSTEAD.get(once.split("/")[2])):
        hint = instead
    elif once != path:
        hint = "the path has the version twice: remove /v1 from the client's base URL"
    return not_found(f"There is no {method} {path}; {hint}.")


def wrong_function(path: str) -> RequestError:
    """Return the not_found error for a POST to a streaming path that reached the buffered function.

    API Gateway sends only the declared spelling to the streaming function.
    """
    return not_found(
        f"POST {path} is served only without doubled or trailing slashes; a client's base"
        " URL ends in /api/v1, without a slash."
    )


def canonical_path(path: str) -> str:
    """Return a path as declared by its route: without `/api` and without doubled or trailing
    slashes.
    """
    path = _SLASHES.sub("/", path)
    if path.startswith(f"{_MOUNT}/"):
        path = path.removeprefix(_MOUNT)
    return path.rstrip("/") or "/"
