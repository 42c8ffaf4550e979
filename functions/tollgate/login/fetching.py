"""Requests to the issuer, bounded in time and size, that follow no redirect."""

from collections.abc import Mapping
from typing import Final

import aiohttp

from tollgate.login.issuer import IssuerReply, IssuerUnavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)
_REPLY_BYTES_MAX: Final = 512 * 1024


async def fetch_from_issuer(
    url: str, *, form: bytes | None = None, headers: Mapping[str, str] | None = None
) -> IssuerReply:
    """Return the reply to a GET, or to a POST of a form; raise IssuerUnavailable."""
    sent = {"accept": "application/json", **(headers or {})}
    if form is not None:
        sent["content-type"] = "application/x-www-form-urlencoded"
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.request(
                "GET" if form is None else "POST",
                url,
                data=form,
                headers=sent,
                allow_redirects=False,
            ) as response,
        ):
            body = bytearray()
            async for chunk in response.content.iter_chunked(64 * 1024):
                body += chunk
                if len(body) > _REPLY_BYTES_MAX:
                    raise IssuerUnavailable("a reply that is too large")
            return IssuerReply(response.status, bytes(body))
    except (aiohttp.ClientError, OSError, TimeoutError) as failed:
        raise IssuerUnavailable(type(failed).__name__) from failed
