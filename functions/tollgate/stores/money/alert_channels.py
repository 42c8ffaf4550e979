"""Channels of budget alerts: an SNS topic and a signed webhook, which only the operator sets."""

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override
from yarl import URL

from tollgate.aws.sigv4 import Signer
from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.secret import SecretReference
from tollgate.stores.base import SecretStore
from tollgate.stores.money.budgets import DeliveryFailed

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)
_SNS_VERSION: Final = "2010-03-31"
SIGNATURE_HEADER: Final = "x-tollgate-signature"


class SnsTopic:
    """Publishes to one topic by a signed form.

    "Publish" in the Amazon SNS API reference (seen 2026-11-21).
    """

    name = "sns"

    def __init__(self, topic_arn: str, signer: Signer, endpoint_url: str) -> None:
        self._topic_arn = topic_arn
        self._signer = signer
        self._url = endpoint_url.rstrip("/") + "/"

    async def send(self, event: bytes) -> None:
        """Publish one event."""
        form = {
            "Action": "Publish",
            "Version": _SNS_VERSION,
            "TopicArn": self._topic_arn,
            "Message": event.decode(),
        }
        body = urlencode(form).encode()
        content = {"content-type": "application/x-www-form-urlencoded"}
        headers = self._signer.sign("POST", self._url, content, body)
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            await _post(session, self._url, body, headers)


class Webhook:
    """Posts to one public https address, signed against forgery and against replay.

    The header is `t=<Unix seconds>,v1=<hex>`: the HMAC-SHA256, by the shared secret, of the
    seconds, a dot and the raw body.
    """

    name = "webhook"

    def __init__(
        self,
        url: str,
        secret: SecretReference,
        secrets: SecretStore,
        *,
        clock: Clock,
        connector: Callable[[], aiohttp.TCPConnector] | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
            raise ValueError("a webhook needs an https address without a user in it")
        if _is_address(parts.hostname):
            raise ValueError("a webhook needs a name, not an address")
        self._url = url
        self._secret = secret
        self._secrets = secrets
        self._clock = clock
        self._connector = connector or _guarded_connector

    async def send(self, event: bytes) -> None:
        """Post one event; redirects are not followed."""
        try:
            secret = await self._secrets.read(self._secret)
        except GatewayError as unread:
            raise DeliveryFailed("the webhook's secret cannot be read") from unread
        if secret is None:
            raise DeliveryFailed(f"the webhook's secret is not set: {self._secret.describe()}")
        sent_s = int(self._clock.now_s())
        signature = hmac.new(secret.encode(), b"%d.%s" % (sent_s, event), hashlib.sha256)
        headers = {
            "content-type": "application/json",
            SIGNATURE_HEADER: f"t={sent_s},v1={signature.hexdigest()}",
        }
        async with aiohttp.ClientSession(
            timeout=_TIMEOUT, connector=self._connector(), cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            await _post(session, self._url, event, headers)


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
        if not found or not all(ipaddress.ip_address(it["host"]).is_global for it in found):
            raise OSError(f"{host} has no public address")
        return found

    @override
    async def close(self) -> None:
        await self._resolver.close()


def _guarded_connector() -> aiohttp.TCPConnector:
    return aiohttp.TCPConnector(resolver=PublicResolver(aiohttp.ThreadedResolver()))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _post(
    session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]
) -> None:
    try:
        async with session.post(
            URL(url, encoded=True), data=body, headers=headers, allow_redirects=False
        ) as response:
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError) as failed:
        raise DeliveryFailed(type(failed).__name__) from failed
    if not 200 <= status < 300:
        raise DeliveryFailed(f"HTTP {status}")
