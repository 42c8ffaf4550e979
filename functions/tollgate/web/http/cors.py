"""Handles cross-origin requests from browsers, from the allowed origins."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

_EXPOSED_HEADERS: Final = (
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-limit",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
    "deprecation",
    "link",
    "request-id",
    "retry-after",
    "sunset",
    "x-client-request-id",
    "x-credits-used",
    "x-fallback-depth",
    "x-fallback-from",
    "x-files-limit",
    "x-files-used",
    "x-generation-id",
    "x-idempotent-replay",
    "x-model-used",
    "x-next-cursor",
    "x-provider-used",
    "x-ratelimit-limit-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-request-id",
    "x-should-retry",
    "x-storage-limit-bytes",
    "x-storage-used-bytes",
    "x-tollgate-adapted",
    "x-tollgate-bend",
    "x-tollgate-cache",
    "x-tollgate-limit-warning",
    "x-tollgate-token-count",
    "x-tollgate-token-count-failure",
    "x-unreadable",
)


class WebLimits(Struct, frozen=True, kw_only=True):
    """Limits configured by the host."""

    allowed_origins: Sequence[str] = ("*",)
    """Origins whose pages may call the API from a browser."""
    body_bytes_max: int = 50_000_000
    """Maximum size of a body, on metered routes."""
    trusted_proxies: Sequence[str] = ()
    """Networks of the proxies whose `X-Forwarded-For` is read."""
    unknown_caller_rpm: int = 0
    """Refusals per minute of callers without a valid key from one address; 0 for no limit."""
    stream_total_s: float = 885.0
    """Seconds from the start of a request to the end of its stream: Lambda's limit of 900, minus
    15.
    """


class Cors(CORSMiddleware):
    """Handles preflights; replies to any other OPTIONS request with the methods of its path."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["method"] == "OPTIONS":
            await super().__call__(scope, receive, _allowing(send))
        elif any(name == b"origin" for name, _ in scope["headers"]):
            await super().__call__(scope, receive, send)
        else:
            # Most requests do not come from a web page. For them, skipping Starlette's middleware
            # is faster and gives the same reply.
            await self.app(scope, receive, _varying(send))


def _varying(send: Send) -> Send:
    """Return a `send` that adds `vary: Origin`, because replies to requests with an origin differ
    in their headers.
    """

    async def send_varying(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=[*message["headers"]])
            if "vary" in headers:
                headers["vary"] = ", ".join([*headers.getlist("vary"), "Origin"])
            else:
                headers.append("vary", "Origin")
            message = {**message, "headers": headers.raw}
        await send(message)

    return send_varying


def _allowing(send: Send) -> Send:
    """Return a `send` that changes status 405 to 204 and keeps the `allow` header."""
    turned = False

    async def send_allowed(message: Message) -> None:
        nonlocal turned
        if message["type"] == "http.response.start" and message["status"] == 405:
            turned = True
            headers = MutableHeaders(raw=list(message["headers"]))
            for body_header in ("content-length", "content-type"):
                del headers[body_header]
            message = {**message, "status": 204, "headers": headers.raw}
        elif turned:
            message = {**message, "body": b""}
        await send(message)

    return send_allowed


def cors(limits: WebLimits) -> Middleware:
    """Return the middleware that handles preflights and adds CORS headers to replies."""
    return Middleware(
        Cors,
        allow_origins=list(limits.allowed_origins),
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=list(_EXPOSED_HEADERS),
        max_age=86_400,
    )
