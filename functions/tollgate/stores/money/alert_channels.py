"""Channels for budget alerts: an SNS topic and a signed webhook, which the operator configures."""

from typing import Final
from urllib.parse import urlencode

from tollgate.aws.sigv4 import Signer
from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.secret import SecretReference
from tollgate.core.webhooks import DeliveryFailed
from tollgate.http1.egress import Egress
from tollgate.stores.ports.base import SecretStore
from tollgate.stores.webhooks.posting import (
    SIGNATURE_HEADER,
    check_address,
    post,
    post_event,
    sign,
)

_SNS_VERSION: Final = "2010-03-31"


class SnsTopic:
    """Publishes to an SNS topic ("Publish", Amazon SNS API reference, seen 2026-11-21)."""

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
        await post(self._url, body, headers)


class AlertWebhook:
    """Posts to a public https address, with a signature against forgery and replay.

    The header is `t=<Unix seconds>,v1=<hex>`, where `v1` is the HMAC-SHA256 of the seconds, a dot
    and the raw body, with a shared secret.
    """

    name = "webhook"

    def __init__(
        self,
        url: str,
        secret: SecretReference,
        secrets: SecretStore,
        *,
        clock: Clock,
        egress: Egress,
    ) -> None:
        check_address(url)
        self._url = url
        self._secret = secret
        self._secrets = secrets
        self._clock = clock
        self._egress = egress

    async def send(self, event: bytes) -> None:
        """Post one event, without following redirects."""
        try:
            secret = await self._secrets.read(self._secret)
        except GatewayError as unread:
            raise DeliveryFailed("the webhook's secret cannot be read") from unread
        if secret is None:
            raise DeliveryFailed(f"the webhook's secret is not set: {self._secret.describe()}")
        sent_s = int(self._clock.now_s())
        headers = {SIGNATURE_HEADER: sign(secret, event, sent_s)}
        await post_event(self._url, event, headers, self._egress)
