"""Ids that the platform of a request gave it, with which its own logs are searched."""

from typing import Final

from msgspec import Struct

# `scope["extensions"][PLATFORM_IDS_EXTENSION]` of an ASGI request has the fields of `PlatformIds`.
PLATFORM_IDS_EXTENSION: Final = "tollgate.platform_ids"


class PlatformIds(Struct, frozen=True, kw_only=True):
    """The ids of one request; all are None where no such platform serves it."""

    api_gateway_request_id: str | None = None
    """In API Gateway's access log, and in `x-amzn-requestid` of the reply."""
    lambda_request_id: str | None = None
    """In the lines that Lambda itself logs of the invocation."""
