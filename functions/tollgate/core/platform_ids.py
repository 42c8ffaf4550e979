"""Ids that the platform gave a request, for searching the platform's own logs."""

from typing import Final

from msgspec import Struct

# `scope["extensions"][PLATFORM_IDS_EXTENSION]` of an ASGI request has the fields of `PlatformIds`.
PLATFORM_IDS_EXTENSION: Final = "tollgate.platform_ids"


class PlatformIds(Struct, frozen=True, kw_only=True):
    """The platform's ids of one request; None on other platforms."""

    api_gateway_request_id: str | None = None
    """The id in API Gateway's access log, and in `x-amzn-requestid` of the reply."""
    lambda_request_id: str | None = None
    """The id in the lines that Lambda itself logs about the invocation."""
