"""Send an event to a webhook, signed by each of its secrets that is in force."""

from typing import TYPE_CHECKING

from tollgate.core.clock import Clock
from tollgate.core.webhooks import Webhook

if TYPE_CHECKING:
    from tollgate.stores.webhooks.posting import Connector


class EventSender:
    """Sends events to webhooks, at public addresses only unless a connector says otherwise."""

    def __init__(self, clock: Clock, connector: "Connector | None" = None) -> None:
        self._clock = clock
        self._connector = connector

    async def send(self, webhook: Webhook, event_id: str, event: bytes) -> int:
        """Post an event and return the HTTP status of success; raise DeliveryFailed otherwise."""
        # Imported with the first event: the api function makes a sender, and rarely sends.
        from tollgate.stores.webhooks.posting import (
            SIGNATURE_HEADER,
            post_event,
            sign,
            standard_headers,
        )

        sent_s = int(self._clock.now_s())
        secrets = webhook.secrets(sent_s)
        headers = {
            SIGNATURE_HEADER: sign(secrets[0], event, sent_s),
            **standard_headers(secrets, event_id, event, sent_s),
        }
        return await post_event(webhook.url, event, headers, self._connector)
