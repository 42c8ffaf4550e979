"""Webhooks in this process's memory, whose sender sends nothing."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tests.memory.books import MemoryBooks
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.core.webhooks import (
    EventDelivery,
    ShownWebhook,
    Webhook,
    WebhookHealth,
    WebhookSettings,
)


class MemoryWebhookStore:
    """Implements `core.webhooks.WebhookStore`."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock) -> None:
        self._ids = ids
        self._clock = clock
        self._webhooks = books.webhooks
        self._ended = books.deliveries

    async def create(self, workspace_id: str, settings: WebhookSettings, *, by: Actor) -> Webhook:
        """Create a webhook."""
        webhook = Webhook(
            id=self._ids.new_id(),
            workspace_id=workspace_id,
            url=settings.url,
            events=settings.events,
            created_s=int(self._clock.now_s()),
            description=settings.description,
            enabled=settings.enabled,
            secret="whsec_Zmlyc3Q=",
        )
        self._webhooks[workspace_id, webhook.id] = webhook
        return webhook

    async def list(self, workspace_id: str) -> Sequence[ShownWebhook]:
        """Return the webhooks of a workspace."""
        return [_shown(it) for (whose, _), it in self._webhooks.items() if whose == workspace_id]

    async def get(self, workspace_id: str, webhook_id: str) -> ShownWebhook | None:
        """Return a webhook of this workspace."""
        webhook = self._webhooks.get((workspace_id, webhook_id))
        return None if webhook is None else _shown(webhook)

    async def change(
        self,
        workspace_id: str,
        webhook_id: str,
        edit: Callable[[WebhookSettings], WebhookSettings],
        *,
        by: Actor,
    ) -> ShownWebhook | None:
        """Replace the settings by what `edit` returns for them."""
        old = self._webhooks.get((workspace_id, webhook_id))
        if old is None:
            return None
        new = edit(
            WebhookSettings(
                url=old.url, events=old.events, description=old.description, enabled=old.enabled
            )
        )
        self._webhooks[workspace_id, webhook_id] = replace(
            old,
            url=new.url,
            events=new.events,
            description=new.description,
            enabled=new.enabled,
        )
        return await self.get(workspace_id, webhook_id)

    async def rotate(
        self, workspace_id: str, webhook_id: str, *, grace_s: int, by: Actor
    ) -> Webhook | None:
        """Make a new secret."""
        old = self._webhooks.get((workspace_id, webhook_id))
        if old is None:
            return None
        ends_s = int(self._clock.now_s()) + grace_s
        self._webhooks[workspace_id, webhook_id] = new = replace(
            old, secret="whsec_c2Vjb25k", old_secret=old.secret, old_secret_ends_s=ends_s
        )
        return new

    async def delete(self, workspace_id: str, webhook_id: str, *, by: Actor) -> bool:
        """Delete a webhook."""
        return self._webhooks.pop((workspace_id, webhook_id), None) is not None

    async def send_test(self, workspace_id: str, webhook_id: str) -> EventDelivery | None:
        """Return how a test would end."""
        if (workspace_id, webhook_id) not in self._webhooks:
            return None
        now_s = int(self._clock.now_s())
        delivery = EventDelivery(
            event_id="evt_test",
            type="webhook.test",
            status="delivered",
            queued_s=now_s,
            attempts=1,
            attempted_s=now_s,
            answer="HTTP 204",
        )
        self._ended[delivery.event_id] = delivery
        return delivery

    async def deliveries(
        self, workspace_id: str, webhook_id: str
    ) -> Sequence[EventDelivery] | None:
        """Return the deliveries of a webhook."""
        known = (workspace_id, webhook_id) in self._webhooks
        return list(self._ended.values()) if known else None

    async def redeliver(
        self, workspace_id: str, webhook_id: str, event_id: str
    ) -> EventDelivery | None:
        """Make an event due again."""
        if (workspace_id, webhook_id) not in self._webhooks or event_id not in self._ended:
            return None
        now_s = int(self._clock.now_s())
        self._ended[event_id] = again = replace(
            self._ended[event_id], status="pending", attempts=0, queued_s=now_s, next_s=now_s
        )
        return again


def _shown(webhook: Webhook) -> ShownWebhook:
    return ShownWebhook(webhook=webhook, health=WebhookHealth())
