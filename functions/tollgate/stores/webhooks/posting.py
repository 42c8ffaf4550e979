"""Post signed events to addresses of others, without being turned inwards."""

import base64
import binascii
import hashlib
import hmac
import socket
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override
from yarl import URL

from tollgate.core.addresses import is_address, is_public
from tollgate.core.webhooks import SECRET_PREFIX, DeliveryFailed

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)
SIGNATURE_HEADER: Final = "x-tollgate-signature"

Connector = Callable[[], aiohttp.TCPConnector]


def check_address(url: str) -> None:
    """Raise ValueError unless a text is an https address of a name, without a user in it."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
        raise ValueError("a webhook needs an https address without a user in it")
    if is_address(parts.hostname):
        raise ValueError("a webhook needs a name, not an address")


def sign(secret: str, event: bytes, sent_s: int) -> str:
    """Return `t=<Unix seconds>,v1=<hex>`: the HMAC-SHA256 of the seconds, a dot and the body."""
    digest = hmac.new(secret.encode(), b"%d.%s" % (sent_s, event), hashlib.sha256)
    return f"t={sent_s},v1={digest.hexdigest()}"


def standard_headers(
    secrets: Sequence[str], event_id: str, event: bytes, sent_s: int
) -> dict[str, str]:
    """Return the headers of Standard Webhooks (standardwebhooks.com, 2026-11-22)."""
    signed = b"%s.%d.%s" % (event_id.encode(), sent_s, event)
    digests = (hmac.new(_key_of(secret), signed, hashlib.sha256).digest() for secret in secrets)
    signatures = (f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(sent_s),
        "webhook-signature": " ".join(signatures),
    }


async def post_event(
    url: str, event: bytes, headers: dict[str, str], connector: Connector | None = None
) -> int:
    """Post an event and return the HTTP status of success; raise DeliveryFailed for any other.

    The reply's body is not read, and redirects are not followed.
    """
    async with aiohttp.ClientSession(
        timeout=_TIMEOUT,
        connector=(connector or guarded_connector)(),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        content = {"content-type": "application/json", "user-agent": "tollgate-webhooks/1"}
        return await post(session, url, event, {**content, **headers})


async def post(
    session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]
) -> int:
    """Post a body and return the HTTP status of success; raise DeliveryFailed for any other."""
    try:
        async with session.post(
            URL(url, encoded=True), data=body, headers=headers, allow_redirects=False
        ) as response:
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failed:
        raise DeliveryFailed(type(failed).__name__) from failed
    if not 200 <= status < 300:
        raise DeliveryFailed(f"HTTP {status}")
    return status


class PublicResolver(AbstractResolver):
    """Resolves names to public addresses only.

    The connector connects to the very addresses that are checked here.
    """

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if not found or not all(is_public(it["host"]) for it in found):
            raise OSError(f"{host} has no public address")
        return found

    @override
    async def close(self) -> None:
        await self._resolver.close()


def guarded_connector() -> aiohttp.TCPConnector:
    """Return a connector that reaches public addresses only."""
    return aiohttp.TCPConnector(resolver=PublicResolver(aiohttp.ThreadedResolver()))


def _key_of(secret: str) -> bytes:
    """Return the key that a secret `whsec_<base64>` stands for; another is its own key."""
    if secret.startswith(SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()
