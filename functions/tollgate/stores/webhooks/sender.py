"""Sends an event to a webhook, signed with each secret in force."""

from tollgate.core.clock import Clock
from tollgate.core.webhooks import Webhook
from tollgate.http1.egress import Egress
from tollgate.stores.webhooks.posting import (
    SIGNATURE_HEADER,
    post_event,
    sign,
    standard_headers,
)


class EventSender:
    """Sends events to webhooks; `egress` decides which addresses are allowed."""

    def __init__(self, clock: Clock, egress: Egress) -> None:
        self._clock = clock
        self._egress = egress

    async def send(self, webhook: Webhook, event_id: str, event: bytes) -> int:
        """Post an event and return the HTTP status of success; raise DeliveryFailed otherwise."""
        sent_s = int(self._clock.now_s())
        secrets = webhook.secrets(sent_s)
        headers = {
            SIGNATURE_HEADER: sign(secrets[0], event, sent_s),
            **standard_headers(secrets, event_id, event, sent_s),
        }
        return await post_event(webhook.url, event, headers, self._egress)
