"""Rounds of webhook delivery, which find new events and send the due ones.

The audit log is the outbox: a change and its audit log entry are written in one transaction, so no
event is lost or invented. Entries are not written strictly in the order of their ids, so each round
starts to read a few minutes before the end of the last round. A delivery has the id of its event,
so that the overlap does not create a second delivery. Events are sent at least once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import json
from msgspec.structs import replace

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable, refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import LedgerError
from tollgate.core.records.audit import SWEEPER, AuditFilter
from tollgate.core.webhooks import DeliveryFailed, EventDelivery, Webhook, WebhookEvent
from tollgate.stores.aws.decoding import decode_items, read_text, reads_an_item
from tollgate.stores.aws.expressions import (
    DELIVERY_CLAIM,
    DELIVERY_NOTE,
    IF_ABSENT,
    WEBHOOK_CURSOR,
    WEBHOOK_FAILS,
    WEBHOOK_TAKES,
    ConditionalUpdate,
)
from tollgate.stores.aws.items import AnyItem, BudgetAlertItem
from tollgate.stores.aws.tables import (
    WORKSPACE_NAMES,
    Tables,
    all_rows,
    delivery_key,
    get_item,
    try_update,
    webhook_key,
)
from tollgate.stores.records.audit_log import DynamoAuditLog
from tollgate.stores.rules.reports import WebhookReport
from tollgate.stores.rules.webhook_events import (
    TRIED_FOR_S,
    BudgetAlert,
    event_of_alert,
    event_of_entry,
    next_try_s,
)
from tollgate.stores.webhooks.endpoints import DynamoWebhookStore
from tollgate.stores.webhooks.posting import EventSender
from tollgate.stores.webhooks.rows import (
    StoredDelivery,
    StoredWebhook,
    delivery_rows,
    encode_delivery,
    encode_way,
    new_delivery,
    read_delivery,
)

_log = logging.getLogger(__name__)

# This overlap is longer than the time for which a transaction is retried, plus the clock skew.
_OVERLAP_S: Final = 600
# Maximum time span of the entries that one round reads, so that even a round after a long pause
# ends in time.
_WINDOW_S: Final = DAY_S
_ENTRIES: Final = 500
# Limits for a webhook in one round: the number of attempts, and the number of consecutive failures
# after which its other events wait.
_SENT_MAX: Final = 50
_FAILURES_MAX: Final = 3
_WORKSPACES_AT_ONCE: Final = 16
# No workspace is visited later than this, because the function that runs the round has a timeout.
_BEGUN_WITHIN_S: Final = 60.0


class WebhookRounds:
    """Sends the events of all workspaces; concurrent rounds are safe."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        endpoints: DynamoWebhookStore,
        sender: EventSender,
        *,
        operator_workspace: str,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._endpoints = endpoints
        self._sender = sender
        self._audit_log = DynamoAuditLog(client, tables)
        self._operator_workspace = operator_workspace
        self._clock = clock

    async def run(self) -> WebhookReport:
        """Visit every workspace once, and return the numbers of sent and failed deliveries."""
        with refusing_when_unavailable():
            names = await all_rows(self._client, self._table, WORKSPACE_NAMES, "W#")
        until_s = self._clock.monotonic_s() + _BEGUN_WITHIN_S
        slots = asyncio.Semaphore(_WORKSPACES_AT_ONCE)

        async def visit(name: Item) -> WebhookReport:
            workspace_id = read_text(name, AnyItem.SORT).removeprefix("W#")
            async with slots:
                if self._clock.monotonic_s() > until_s:
                    return WebhookReport(waiting=1)
                try:
                    return await self._visit(workspace_id)
                except (StoreUnavailable, LedgerError) as unavailable:
                    _log.warning(
                        "webhooks of %s wait for the next round: %s", workspace_id, unavailable
                    )
                    return WebhookReport(waiting=1)

        return sum(await asyncio.gather(*map(visit, names)), start=WebhookReport())

    async def _visit(self, workspace_id: str) -> WebhookReport:
        webhooks = await self._endpoints.read_all(workspace_id)
        rounds = [self._serve(stored) for stored in webhooks if stored.webhook.enabled]
        return sum(await asyncio.gather(*rounds), start=WebhookReport())

    async def _serve(self, stored: StoredWebhook) -> WebhookReport:
        await self._queue(stored)
        return await self._send_due(stored)

    async def _queue(self, stored: StoredWebhook) -> None:
        """Create deliveries for the events since the last round, then move the cursor."""
        webhook, now_s = stored.webhook, int(self._clock.now_s())
        since_s = max(stored.cursor_ms // 1_000 - _OVERLAP_S, webhook.created_s)
        until_s = min(stored.cursor_ms // 1_000 + _WINDOW_S, now_s + 1)
        async for event in self._events(webhook.workspace_id, since_s, until_s):
            if webhook.wants(event.type):
                await self._put(webhook, new_delivery(event, now_s))
        values = {":cur": number(min(until_s, now_s) * 1_000)}
        await self._update(webhook_key(webhook.workspace_id, stored.place), WEBHOOK_CURSOR, values)

    async def _events(
        self, workspace_id: str, since_s: int, until_s: int
    ) -> AsyncIterator[WebhookEvent]:
        scopes: Sequence[str | None] = (workspace_id,)
        if workspace_id == self._operator_workspace:
            # Changes of the catalog do not belong to a workspace; the operator's webhooks get them.
            scopes = (workspace_id, None)
        for scope in scopes:
            before: str | None = None
            entry_filter = AuditFilter(since_s=since_s, until_s=until_s)
            while True:
                page = await self._audit_log.page(
                    scope, entry_filter, limit=_ENTRIES, before=before
                )
                for entry in page.found:
                    if entry.workspace_id == scope:
                        yield event_of_entry(entry, workspace_id)
                before = page.next
                if before is None:
                    break
        rows = await all_rows(self._client, self._table, f"W#{workspace_id}", "E#")
        for alert in decode_items(_read_alert, rows)[0]:
            created_s = int(datetime.fromisoformat(alert.created_at).timestamp())
            if since_s <= created_s < until_s:
                yield event_of_alert(alert, created_s)

    async def _put(self, webhook: Webhook, pending: StoredDelivery) -> None:
        """Store a pending delivery, unless the event already has a delivery."""
        event_id = pending.delivery.event_id
        ended = delivery_key(webhook.workspace_id, webhook.id, event_id, pending=False)
        if await get_item(self._client, self._table, ended) is not None:
            return
        put = {
            "TableName": self._table,
            "Item": encode_delivery(webhook, pending),
            "ConditionExpression": IF_ABSENT,
        }
        try:
            await self._client.call("PutItem", put)
        except ConditionFailed:
            return

    async def _send_due(self, stored: StoredWebhook) -> WebhookReport:
        webhook, now_s = stored.webhook, int(self._clock.now_s())
        partition, prefix = delivery_rows(webhook, pending=True)
        rows = await all_rows(self._client, self._table, partition, prefix)
        sent = failed = in_a_row = 0
        for pending in decode_items(read_delivery, rows)[0]:
            due_s = pending.delivery.next_s
            if due_s is None or due_s > now_s:
                continue
            if sent + failed == _SENT_MAX or in_a_row == _FAILURES_MAX:
                break
            claimed = await self._claim(webhook, pending)
            if claimed is None:
                continue
            if await self._send(stored, claimed):
                sent, in_a_row = sent + 1, 0
            else:
                failed, in_a_row = failed + 1, in_a_row + 1
        return WebhookReport(sent=sent, failed=failed)

    async def _claim(self, webhook: Webhook, pending: StoredDelivery) -> StoredDelivery | None:
        """Claim a delivery by setting its next attempt; return None if another process did."""
        now_s = int(self._clock.now_s())
        old, attempts = pending.delivery, pending.delivery.attempts + 1
        claimed = replace(
            old, attempts=attempts, attempted_s=now_s, next_s=next_try_s(attempts, now_s)
        )
        values = {
            ":was": number(old.next_s or 0),
            ":next": number(claimed.next_s or 0),
            ":way": string(encode_way(claimed)),
        }
        key = delivery_key(webhook.workspace_id, webhook.id, old.event_id, pending=True)
        if not await self._update(key, DELIVERY_CLAIM, values):
            return None
        return replace(pending, delivery=claimed)

    async def _send(self, stored: StoredWebhook, claimed: StoredDelivery) -> bool:
        """Send a delivery and record the result; return whether the webhook accepted it."""
        webhook, delivery = stored.webhook, claimed.delivery
        key = webhook_key(webhook.workspace_id, stored.place)
        now = {":now": number(int(self._clock.now_s()))}
        try:
            status = await self._sender.send(webhook, delivery.event_id, claimed.event)
        except DeliveryFailed as refused:
            _log.warning("webhook %s did not accept %s: %s", webhook.id, delivery.event_id, refused)
            await self._update(key, WEBHOOK_FAILS, now)
            await self._give_up_or_wait(stored, replace(delivery, answer=str(refused)), claimed)
            return False
        await self._update(key, WEBHOOK_TAKES, now)
        done = replace(delivery, status="delivered", next_s=None, answer=f"HTTP {status}")
        await self._end(webhook, replace(claimed, delivery=done))
        return True

    async def _give_up_or_wait(
        self, stored: StoredWebhook, delivery: EventDelivery, claimed: StoredDelivery
    ) -> None:
        webhook, now_s = stored.webhook, int(self._clock.now_s())
        if delivery.queued_s + TRIED_FOR_S > now_s:
            values = {":was": number(delivery.next_s or 0), ":way": string(encode_way(delivery))}
            key = delivery_key(webhook.workspace_id, webhook.id, delivery.event_id, pending=True)
            await self._update(key, DELIVERY_NOTE, values)
            return
        failed = replace(delivery, status="failed", next_s=None)
        await self._end(webhook, replace(claimed, delivery=failed))
        since_s = stored.health.failing_since_s
        if since_s is not None and since_s + TRIED_FOR_S <= now_s:
            reason = f"It accepted no event for {TRIED_FOR_S // DAY_S} days: {delivery.answer}."
            await self._endpoints.disable(webhook, reason, by=SWEEPER)

    async def _end(self, webhook: Webhook, ended: StoredDelivery) -> None:
        """Replace a pending delivery by an ended one; a crash in between sends the event again."""
        item = encode_delivery(webhook, ended)
        await self._client.call("PutItem", {"TableName": self._table, "Item": item})
        event_id = ended.delivery.event_id
        key = delivery_key(webhook.workspace_id, webhook.id, event_id, pending=True)
        await self._client.call("DeleteItem", {"TableName": self._table, "Key": key})

    async def _update(self, key: Item, write: ConditionalUpdate, values: Item) -> bool:
        return await try_update(self._client, write.build(self._table, key, values))


@reads_an_item
def _read_alert(item: Item) -> BudgetAlert:
    return json.decode(read_text(item, BudgetAlertItem.EVENT), type=BudgetAlert)
