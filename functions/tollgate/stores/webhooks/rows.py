"""Items of webhooks and deliveries, encoded for DynamoDB and decoded."""

from typing import Final

from msgspec import Struct, json

from tollgate.aws.attributes import Item, number, string
from tollgate.core.clock import DAY_S
from tollgate.core.webhooks import EventDelivery, ShownWebhook, Webhook, WebhookEvent, WebhookHealth
from tollgate.stores.aws.decoding import read_number, read_optional_number, read_text, reads_an_item
from tollgate.stores.aws.items import AnyItem, DeliveryItem, WebhookItem
from tollgate.stores.aws.tables import delivery_key, webhook_partition

WEBHOOK_ROWS: Final = "E#"
_KEPT_S: Final = 30 * DAY_S


class StoredWebhook(Struct, frozen=True, kw_only=True):
    """A webhook, with those attributes of its item that changes and rounds need."""

    webhook: Webhook
    place: int
    """Number of the slot that the webhook occupies, which is part of the item's key."""
    revision: int
    cursor_ms: int
    """Unix millisecond up to which events were read from the audit log."""
    health: WebhookHealth

    @property
    def shown(self) -> ShownWebhook:
        """The webhook and its health."""
        return ShownWebhook(webhook=self.webhook, health=self.health)


class StoredDelivery(Struct, frozen=True, kw_only=True):
    """A delivery and the body of its event."""

    delivery: EventDelivery
    event: bytes


def encode_webhook(webhook: Webhook) -> str:
    """Encode a webhook as JSON."""
    return json.encode(webhook).decode()


@reads_an_item
def read_webhook(item: Item) -> StoredWebhook:
    """Decode a webhook; raise CorruptItem if the item is invalid."""
    return StoredWebhook(
        webhook=json.decode(read_text(item, WebhookItem.WEBHOOK), type=Webhook),
        place=int(read_text(item, AnyItem.SORT).removeprefix(WEBHOOK_ROWS)),
        revision=read_number(item, WebhookItem.REVISION),
        cursor_ms=read_number(item, WebhookItem.CURSOR),
        health=WebhookHealth(
            delivered_s=read_optional_number(item, WebhookItem.DELIVERED),
            failing_since_s=read_optional_number(item, WebhookItem.FAILING),
        ),
    )


def encode_delivery(webhook: Webhook, stored: StoredDelivery) -> Item:
    """Encode a delivery; a pending delivery has another key prefix than an ended one."""
    delivery = stored.delivery
    pending = delivery.next_s is not None
    item: Item = {
        **delivery_key(webhook.workspace_id, webhook.id, delivery.event_id, pending=pending),
        DeliveryItem.EVENT: string(stored.event.decode()),
        DeliveryItem.DELIVERY: string(encode_way(delivery)),
        DeliveryItem.DELETE_AT: number(delivery.queued_s + _KEPT_S),
    }
    if delivery.next_s is not None:
        item[DeliveryItem.NEXT] = number(delivery.next_s)
    return item


def encode_way(delivery: EventDelivery) -> str:
    """Encode a delivery's state as JSON."""
    return json.encode(delivery).decode()


@reads_an_item
def read_delivery(item: Item) -> StoredDelivery:
    """Decode a delivery; raise CorruptItem if the item is invalid."""
    return StoredDelivery(
        delivery=json.decode(read_text(item, DeliveryItem.DELIVERY), type=EventDelivery),
        event=read_text(item, DeliveryItem.EVENT).encode(),
    )


def delivery_rows(webhook: Webhook, *, pending: bool) -> tuple[str, str]:
    """Return the partition of a webhook's deliveries, and the prefix of their sort keys."""
    return webhook_partition(webhook.workspace_id), f"{'P' if pending else 'D'}#{webhook.id}#"


def new_delivery(event: WebhookEvent, now_s: int) -> StoredDelivery:
    """Return a new delivery of an event, which is due now."""
    return StoredDelivery(
        delivery=EventDelivery(
            event_id=event.id,
            type=event.type,
            status="pending",
            queued_s=now_s,
            next_s=now_s,
        ),
        event=json.encode(event),
    )
