"""The administration of webhooks in DynamoDB."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.core.webhooks import (
    DELIVERIES_MAX,
    SECRET_PREFIX,
    TEST_EVENT,
    WEBHOOKS_MAX,
    DeliveryFailed,
    EventDelivery,
    ShownWebhook,
    Webhook,
    WebhookEvent,
    WebhookSettings,
    iso_ms,
)
from tollgate.stores.aws.decoding import decode_items
from tollgate.stores.aws.expressions import SAME_REVISION, WEBHOOK_CHANGE, WEBHOOK_ENABLE
from tollgate.stores.aws.items import WebhookItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import (
    Tables,
    delivery_key,
    get_item,
    query_rows,
    webhook_key,
    webhook_partition,
)
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange
from tollgate.stores.rules.webhook_events import EVENT_PREFIX
from tollgate.stores.webhooks.posting import EventSender
from tollgate.stores.webhooks.rows import (
    WEBHOOK_ROWS,
    StoredWebhook,
    delivery_rows,
    encode_delivery,
    encode_webhook,
    new_delivery,
    read_delivery,
    read_webhook,
)
from tollgate.stores.webhooks.sealing import SecretSealer

_ROUNDS_MAX: Final = 5
_SECRET_BYTES: Final = 32


class WebhookChange(Struct, frozen=True, kw_only=True):
    """A webhook as shown in the audit log: only the host, because the path may contain a secret."""

    host: str
    events: tuple[str, ...]
    disabled: bool


class RotationChange(Struct, frozen=True, kw_only=True):
    """The rotation of a webhook's secret, as shown in the audit log."""

    old_secret_expires_s: int


class DynamoWebhookStore:
    """Implements `core.webhooks.WebhookStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        sender: EventSender,
        sealer: SecretSealer,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._sender = sender
        self._sealer = sealer
        self._ids = ids
        self._clock = clock
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def create(self, workspace_id: str, settings: WebhookSettings, *, by: Actor) -> Webhook:
        now_s = self._clock.now_s()
        webhook = Webhook(
            id=self._ids.new_id(),
            workspace_id=workspace_id,
            url=settings.url,
            events=settings.events,
            description=settings.description,
            enabled=settings.enabled,
            created_s=int(now_s),
            secret=self._new_secret(),
        )
        item: Item = {
            WebhookItem.REVISION: number(1),
            WebhookItem.CURSOR: number(int(now_s * 1_000)),
        }
        with refusing_when_unavailable():
            item[WebhookItem.WEBHOOK] = string(encode_webhook(await self._sealed(webhook)))
            taken_slots = {stored.place for stored in await self.read_all(workspace_id)}
            for slot in range(WEBHOOKS_MAX):
                if slot in taken_slots:
                    continue
                row = {**webhook_key(workspace_id, slot), **item}
                entry = self._entry(by, "webhook.create", webhook, before=None, after=webhook)
                try:
                    put = put_if_absent(self._table, row)
                    await transact(self._client, self._ids, [put, *entry])
                except TransactionCancelled:
                    continue
                return webhook
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"A workspace has at most {WEBHOOKS_MAX} webhooks."
        )

    async def list(self, workspace_id: str) -> Sequence[ShownWebhook]:
        with refusing_when_unavailable():
            stored_webhooks = await self.read_all(workspace_id)
        return sorted(
            (stored.shown for stored in stored_webhooks), key=lambda shown: shown.webhook.id
        )

    async def get(self, workspace_id: str, webhook_id: str) -> ShownWebhook | None:
        with refusing_when_unavailable():
            stored = await self._find(workspace_id, webhook_id)
        return None if stored is None else stored.shown

    async def change(
        self,
        workspace_id: str,
        webhook_id: str,
        edit: Callable[[WebhookSettings], WebhookSettings],
        *,
        by: Actor,
    ) -> ShownWebhook | None:
        async def changed(webhook: Webhook) -> Webhook:
            new = edit(_settings_of(webhook))
            reason = None if new.enabled else webhook.disabled_reason
            return replace(
                await self._sealed(webhook),
                url=new.url,
                events=new.events,
                description=new.description,
                enabled=new.enabled,
                disabled_reason=reason,
            )

        await self._change(workspace_id, webhook_id, changed, "webhook.change", by=by)
        return await self.get(workspace_id, webhook_id)

    async def rotate(
        self, workspace_id: str, webhook_id: str, *, grace_s: int, by: Actor
    ) -> Webhook | None:
        ends_s = int(self._clock.now_s()) + grace_s
        secret = self._new_secret()

        async def rotated(webhook: Webhook) -> Webhook:
            old = webhook.secret if grace_s else None
            new = replace(webhook, secret=secret, old_secret=old, old_secret_ends_s=ends_s)
            return await self._sealed(new)

        new = await self._change(workspace_id, webhook_id, rotated, "webhook.rotate", by=by)
        return None if new is None else replace(new, secret=secret)

    async def disable(self, webhook: Webhook, reason: str, *, by: Actor) -> None:
        """Disable a webhook; lists show the reason."""

        async def disabled(webhook: Webhook) -> Webhook:
            return replace(webhook, enabled=False, disabled_reason=reason)

        await self._change(webhook.workspace_id, webhook.id, disabled, "webhook.disable", by=by)

    async def delete(self, workspace_id: str, webhook_id: str, *, by: Actor) -> bool:
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                stored = await self._find(workspace_id, webhook_id)
                if stored is None:
                    return False
                delete = {
                    "Delete": {
                        "TableName": self._table,
                        "Key": webhook_key(workspace_id, stored.place),
                        "ConditionExpression": SAME_REVISION,
                        "ExpressionAttributeValues": {":rev": number(stored.revision)},
                    }
                }
                entry = self._entry(
                    by, "webhook.delete", stored.webhook, before=stored.webhook, after=None
                )
                try:
                    await transact(self._client, self._ids, [delete, *entry])
                except TransactionCancelled:
                    continue
                return True
        raise self._keeps_changing(webhook_id)

    async def send_test(self, workspace_id: str, webhook_id: str) -> EventDelivery | None:
        with refusing_when_unavailable():
            stored = await self._find(workspace_id, webhook_id)
        if stored is None:
            return None
        at_ms = int(self._clock.now_s() * 1_000)
        event = WebhookEvent(
            id=f"{EVENT_PREFIX}{at_ms:013d}.{self._ids.new_id()}",
            type=TEST_EVENT,
            workspace_id=workspace_id,
            created_at=iso_ms(at_ms),
        )
        pending = new_delivery(event, at_ms // 1_000)
        tried = replace(
            pending.delivery, attempts=1, attempted_s=at_ms // 1_000, next_s=None, status="failed"
        )
        try:
            status = await self._sender.send(stored.webhook, event.id, pending.event)
        except DeliveryFailed as failed:
            return replace(tried, answer=str(failed))
        return replace(tried, status="delivered", answer=f"HTTP {status}")

    async def deliveries(
        self, workspace_id: str, webhook_id: str
    ) -> Sequence[EventDelivery] | None:
        with refusing_when_unavailable():
            stored = await self._find(workspace_id, webhook_id)
            if stored is None:
                return None
            latest: dict[str, EventDelivery] = {}
            # An event that is sent again has two deliveries; the pending one replaces the ended one
            # here.
            for pending in (False, True):
                partition, prefix = delivery_rows(stored.webhook, pending=pending)
                rows, _ = await query_rows(
                    self._client,
                    self._table,
                    partition,
                    prefix,
                    limit=DELIVERIES_MAX,
                    backwards=True,
                )
                deliveries = [stored.delivery for stored in decode_items(read_delivery, rows)[0]]
                latest |= {delivery.event_id: delivery for delivery in deliveries}
        return [latest[id_] for id_ in sorted(latest, reverse=True)][:DELIVERIES_MAX]

    async def redeliver(
        self, workspace_id: str, webhook_id: str, event_id: str
    ) -> EventDelivery | None:
        """Queue a delivered or abandoned event again under the same id; return None if missing."""
        with refusing_when_unavailable():
            stored = await self._find(workspace_id, webhook_id)
            if stored is None:
                return None
            key = delivery_key(workspace_id, webhook_id, event_id, pending=False)
            item = await get_item(self._client, self._table, key)
            if item is None:
                return None
            ended, now_s = read_delivery(item), int(self._clock.now_s())
            again = replace(
                ended,
                delivery=replace(
                    ended.delivery, status="pending", attempts=0, queued_s=now_s, next_s=now_s
                ),
            )
            row = encode_delivery(stored.webhook, again)
            await self._client.call("PutItem", {"TableName": self._table, "Item": row})
        return again.delivery

    async def read_all(self, workspace_id: str) -> Sequence[StoredWebhook]:
        """Return the webhooks of a workspace without corrupt ones."""
        rows = await all_rows(
            self._client, self._table, webhook_partition(workspace_id), WEBHOOK_ROWS
        )
        return decode_items(read_webhook, rows)[0]

    async def _find(self, workspace_id: str, webhook_id: str) -> StoredWebhook | None:
        webhooks = await self.read_all(workspace_id)
        return next((stored for stored in webhooks if stored.webhook.id == webhook_id), None)

    async def _change(
        self,
        workspace_id: str,
        webhook_id: str,
        edit: Callable[[Webhook], Awaitable[Webhook]],
        action: str,
        *,
        by: Actor,
    ) -> Webhook | None:
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                stored = await self._find(workspace_id, webhook_id)
                if stored is None:
                    return None
                old, new = stored.webhook, await edit(stored.webhook)
                if new == old:
                    return old
                entry = self._entry(by, action, new, before=old, after=new)
                try:
                    update = self._update_of(stored, new)
                    await transact(self._client, self._ids, [update, *entry])
                except TransactionCancelled:
                    continue
                return new
        raise self._keeps_changing(webhook_id)

    async def _sealed(self, webhook: Webhook) -> Webhook:
        """Return a webhook with encrypted secrets, for the table."""
        old = webhook.old_secret
        return replace(
            webhook,
            secret=await self._sealer.seal(webhook.secret, webhook),
            old_secret=None if old is None else await self._sealer.seal(old, webhook),
        )

    def _update_of(self, stored: StoredWebhook, new: Webhook) -> object:
        values: Item = {
            ":hook": string(encode_webhook(new)),
            ":rev": number(stored.revision),
            ":new": number(stored.revision + 1),
        }
        write = WEBHOOK_CHANGE
        if new.enabled and not stored.webhook.enabled:
            write = WEBHOOK_ENABLE
            values[":cur"] = number(int(self._clock.now_s() * 1_000))
        key = webhook_key(new.workspace_id, stored.place)
        return {"Update": write.build(self._table, key, values)}

    def _entry(
        self,
        by: Actor,
        action: str,
        webhook: Webhook,
        *,
        before: Webhook | None,
        after: Webhook | None,
    ) -> Sequence[object]:
        rotated = action == "webhook.rotate"
        ends = RotationChange(old_secret_expires_s=webhook.old_secret_ends_s)
        change = AuditedChange(
            action=action,
            target=webhook.id,
            workspace_id=webhook.workspace_id,
            before=None if rotated or before is None else _change_of(before),
            after=ends if rotated else None if after is None else _change_of(after),
        )
        return self._entries.puts(change, by)

    def _new_secret(self) -> str:
        secret = base64.b64encode(self._ids.random_bytes(_SECRET_BYTES))
        return SECRET_PREFIX + secret.decode()

    def _keeps_changing(self, webhook_id: str) -> StoreUnavailable:
        return StoreUnavailable(f"webhook {webhook_id} keeps changing", maybe_applied=False)


def _settings_of(webhook: Webhook) -> WebhookSettings:
    return WebhookSettings(
        url=webhook.url,
        events=webhook.events,
        description=webhook.description,
        enabled=webhook.enabled,
    )


def _change_of(webhook: Webhook) -> WebhookChange:
    host = urlsplit(webhook.url).hostname or ""
    return WebhookChange(host=host, events=webhook.events, disabled=not webhook.enabled)
