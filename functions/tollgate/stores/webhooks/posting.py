"""Signed events for webhooks, which are posted only to external addresses."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from tollgate.core.addresses import is_address
from tollgate.core.clock import Clock
from tollgate.core.webhooks import SECRET_PREFIX, DeliveryFailed, Webhook
from tollgate.http1.egress import Egress
from tollgate.http1.errors import HttpError
from tollgate.http1.exchange import Connect, connect_anywhere, send_alone
from tollgate.http1.request import Request
from tollgate.stores.webhooks.sealing import SecretSealer

_TIMEOUT_S: Final = 5.0
SIGNATURE_HEADER: Final = "x-tollgate-signature"


class EventSender:
    """Sends events to webhooks; `egress` decides which addresses are allowed."""

    def __init__(self, clock: Clock, egress: Egress, sealer: SecretSealer) -> None:
        self._clock = clock
        self._egress = egress
        self._sealer = sealer

    async def send(self, webhook: Webhook, event_id: str, event: bytes) -> int:
        """Post an event and return the HTTP status; raise DeliveryFailed unless it is 2xx."""
        sent_s = int(self._clock.now_s())
        secrets = [await self._sealer.unseal(stored, webhook) for stored in webhook.secrets(sent_s)]
        headers = {
            SIGNATURE_HEADER: sign(secrets[0], event, sent_s),
            **standard_headers(secrets, event_id, event, sent_s),
        }
        return await post_event(webhook.url, event, headers, self._egress)


def check_address(url: str) -> None:
    """Raise ValueError unless a text is an https URL with a host name and without a user."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
        raise ValueError("a webhook needs an https address without a user name")
    if is_address(parts.hostname):
        raise ValueError("a webhook needs a host name, not an IP address")


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


async def post_event(url: str, event: bytes, headers: Mapping[str, str], egress: Egress) -> int:
    """Post an event and return the HTTP status; raise DeliveryFailed unless it is 2xx.

    The reply's body is not read, and redirects are not followed.
    """
    content = {"content-type": "application/json", "user-agent": "tollgate-webhooks/1"}
    address, _, _ = url.partition("#")
    return await post(address, event, {**content, **headers}, connect=egress.connect)


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, connect: Connect = connect_anywhere
) -> int:
    """Post a body and return the HTTP status; raise DeliveryFailed unless it is 2xx."""
    request = Request(method="POST", url=url, headers=headers, body=(body,))
    try:
        async with send_alone(request, timeout_s=_TIMEOUT_S, connect=connect) as reply:
            status = reply.status
    except HttpError as failed:
        raise DeliveryFailed(type(failed).__name__) from failed
    if not 200 <= status < 300:
        raise DeliveryFailed(f"HTTP {status}")
    return status


def _key_of(secret: str) -> bytes:
    """Return the key in a secret `whsec_<base64>`; any other secret is the key itself."""
    if secret.startswith(SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()
