"""Browsers may call the API from the allowed origins."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

_EXPOSED_HEADERS: Final = (
    "retry-after",
    "x-client-request-id",
    "x-credits-used",
    "x-fallback-depth",
    "x-fallback-from",
    "x-generation-id",
    "x-model-used",
    "x-provider-used",
    "x-ratelimit-limit-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-request-id",
    "x-tollgate-adapted",
)


class WebLimits(Struct, frozen=True, kw_only=True):
    """What a host allows: origins of browsers, bytes of a request, seconds of a stream."""

    allowed_origins: Sequence[str] = ("*",)
    body_bytes_max: int = 50_000_000
    stream_total_s: float = 885.0


def cors(limits: WebLimits) -> Middleware:
    """The middleware that answers preflights and marks replies."""
    return Middleware(
        CORSMiddleware,
        allow_origins=list(limits.allowed_origins),
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=list(_EXPOSED_HEADERS),
        max_age=86_400,
    )
