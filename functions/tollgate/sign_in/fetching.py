"""Requests to the issuer, with limits on time and size; redirects are not followed."""

from collections.abc import Mapping
from typing import Final

from tollgate.http1.errors import HttpError
from tollgate.http1.exchange import send_alone
from tollgate.http1.request import USUAL_HEADERS, Request
from tollgate.sign_in.issuer import IssuerReply, IssuerUnavailable

_TIMEOUT_S: Final = 5.0
_REPLY_BYTES_MAX: Final = 512 * 1024


async def fetch_from_issuer(
    url: str, *, form: bytes | None = None, headers: Mapping[str, str] | None = None
) -> IssuerReply:
    """Return the reply to a GET, or to a POST of a form; raise IssuerUnavailable."""
    sent = {**USUAL_HEADERS, "accept": "application/json", **(headers or {})}
    if form is None:
        request = Request(method="GET", url=url, headers=sent)
    else:
        sent["content-type"] = "application/x-www-form-urlencoded"
        request = Request(method="POST", url=url, headers=sent, body=(form,))
    try:
        async with send_alone(request, timeout_s=_TIMEOUT_S) as reply:
            return IssuerReply(reply.status, await reply.read_all(_REPLY_BYTES_MAX))
    except HttpError as failed:
        raise IssuerUnavailable(type(failed).__name__) from failed
