"""Rounds of webhook delivery, which find new events and send the due ones.

The audit log is the outbox: a change and its audit log entry are written in one transaction, so no
event is lost or invented. Entry ids are not strictly in the order of writing, so each round starts
to read some minutes before the end of the last round. A delivery has the id of its event, so that
the overlap does not create a second delivery. Events are sent at least once.

A round is bounded in time, and events that it does not reach wait for the next one. Reading takes
turns by workspace. Sending is parallel, with few places for each workspace, and a free place goes
to the delivery that has waited longest: slow receivers delay mostly their own workspace.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, json
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
from tollgate.stores.aws.record_items import JobEventItem
from tollgate.stores.aws.row_ranges import all_rows, pages_between
from tollgate.stores.aws.tables import (
    WORKSPACE_NAMES,
    Tables,
    delivery_key,
    get_item,
    query_rows,
    try_update,
    webhook_key,
)
from tollgate.stores.batches.keys import batch_partition, job_event_row
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
# Limits per webhook and round: the number of attempts, and the number of failures in a row after
# which other events wait. The latter is also the number of concurrent attempts.
_SENT_MAX: Final = 50
_FAILURES_MAX: Final = 3
# Interval between rounds, and the distance between the workspaces with which two rounds begin.
_EVERY_S: Final = 300
_STRIDE: Final = 997
_READ_AT_ONCE: Final = 16
_QUEUED_AT_ONCE: Final = 4
_SENT_AT_ONCE: Final = 64
_SENT_AT_ONCE_BY_WORKSPACE: Final = 4
# Time from the start of a round after which no workspace is read, and after which nothing is sent.
# One attempt takes 5 seconds, and the function that runs the round has a timeout of 240.
_READ_WITHIN_S: Final = 60.0
_SENT_WITHIN_S: Final = 90.0
# Maximum time for which the events of a webhook are queued, and its deliveries read.
_QUEUED_WITHIN_S: Final = 15.0


class _Line(Struct, frozen=True):
    """The due deliveries of one webhook."""

    stored: StoredWebhook
    due: Sequence[StoredDelivery]


class _Places(Struct, frozen=True):
    """The places in which deliveries are sent, and the monotonic time at which sending ends."""

    of_all: asyncio.Semaphore
    of_workspace: asyncio.Semaphore
    until_s: float


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
        self._audit_log = DynamoAuditLog(client, tables, clock)
        self._operator_workspace = operator_workspace
        self._clock = clock

    async def run(self) -> WebhookReport:
        """Visit every workspace once, and return the numbers of sent and failed deliveries."""
        with refusing_when_unavailable():
            names = await all_rows(self._client, self._table, WORKSPACE_NAMES, "W#")
        begun_s = self._clock.monotonic_s()
        reading, sending = asyncio.Semaphore(_READ_AT_ONCE), asyncio.Semaphore(_SENT_AT_ONCE)
        until_s = begun_s + _SENT_WITHIN_S

        async def visit(name: Item) -> WebhookReport:
            workspace_id = read_text(name, AnyItem.SORT).removeprefix("W#")
            places = _Places(sending, asyncio.Semaphore(_SENT_AT_ONCE_BY_WORKSPACE), until_s)
            try:
                async with reading:
                    if self._clock.monotonic_s() > begun_s + _READ_WITHIN_S:
                        return WebhookReport(waiting=1)
                    lines = await self._read(workspace_id)
                reports = await asyncio.gather(*(self._send_line(line, places) for line in lines))
            except (StoreUnavailable, LedgerError) as unavailable:
                _log.warning(
                    "webhooks of %s wait for the next round: %s", workspace_id, unavailable
                )
                return WebhookReport(waiting=1)
            report = sum(reports, start=WebhookReport())
            return replace(report, waiting=min(report.waiting, 1))

        # Each round begins with a different workspace, so that it is not always the same workspaces
        # that wait.
        first = int(self._clock.now_s()) // _EVERY_S * _STRIDE % max(1, len(names))
        visits = map(visit, [*names[first:], *names[:first]])
        return sum(await asyncio.gather(*visits), start=WebhookReport())

    async def _read(self, workspace_id: str) -> Sequence[_Line]:
        """Queue the new events of a workspace, and return the due deliveries by webhook."""
        webhooks = await self._endpoints.read_all(workspace_id)
        enabled = [stored for stored in webhooks if stored.webhook.enabled]
        return await asyncio.gather(*map(self._read_line, enabled))

    async def _read_line(self, stored: StoredWebhook) -> _Line:
        await self._queue(stored)
        return _Line(stored, await self._due(stored.webhook))

    async def _queue(self, stored: StoredWebhook) -> None:
        """Create deliveries for the events since the last round, then move the cursor.

        The oldest events come first, so that the cursor can be moved even when time runs out.
        """
        webhook, now_s = stored.webhook, int(self._clock.now_s())
        ends_s = self._clock.monotonic_s() + _QUEUED_WITHIN_S
        since_s = max(stored.cursor_ms // 1_000 - _OVERLAP_S, webhook.created_s)
        until_s = min(stored.cursor_ms // 1_000 + _WINDOW_S, now_s + 1)
        found = self._events(webhook.workspace_id, since_s, until_s)
        events = sorted(
            [event async for event in found if webhook.wants(event.type)],
            key=lambda event: event.created_at,
        )
        cursor_ms = min(until_s, now_s) * 1_000
        for group in _groups(events, _QUEUED_AT_ONCE):
            if self._clock.monotonic_s() > ends_s:
                cursor_ms = int(datetime.fromisoformat(group[0].created_at).timestamp()) * 1_000
                break
            await asyncio.gather(
                *(self._put(webhook, new_delivery(event, now_s)) for event in group)
            )
        values = {":cur": number(cursor_ms)}
        await self._update(webhook_key(webhook.workspace_id, stored.place), WEBHOOK_CURSOR, values)

    async def _events(
        self, workspace_id: str, since_s: int, until_s: int
    ) -> AsyncIterator[WebhookEvent]:
        scopes: Sequence[str | None] = (workspace_id,)
        if workspace_id == self._operator_workspace:
            # Catalog changes do not belong to a workspace, so they go to the operator's webhooks.
            scopes = (workspace_id, None)
        for scope in scopes:
            before: str | None = None
            entry_filter = AuditFilter(since_s=since_s, until_s=until_s, kind="change")
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
        async for rows in pages_between(
            self._client,
            self._table,
            batch_partition(workspace_id),
            low=job_event_row(since_s * 1_000),
            high=job_event_row(until_s * 1_000),
        ):
            for event in decode_items(_read_job_event, rows)[0]:
                yield event

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

    async def _due(self, webhook: Webhook) -> Sequence[StoredDelivery]:
        """Return the oldest due deliveries of a webhook."""
        now_s, ends_s = int(self._clock.now_s()), self._clock.monotonic_s() + _QUEUED_WITHIN_S
        partition, prefix = delivery_rows(webhook, pending=True)
        due: list[StoredDelivery] = []
        start: Item | None = None
        while True:
            rows, start = await query_rows(
                self._client, self._table, partition, prefix, after=start, limit=_ENTRIES
            )
            for pending in decode_items(read_delivery, rows)[0]:
                next_s = pending.delivery.next_s
                if next_s is not None and next_s <= now_s:
                    due.append(pending)
            is_late = self._clock.monotonic_s() > ends_s
            if start is None or is_late or len(due) >= _SENT_MAX:
                return due[:_SENT_MAX]

    async def _send_line(self, line: _Line, places: _Places) -> WebhookReport:
        """Send the due deliveries of a webhook, a few at a time, until too many fail in a row."""
        due, sent, failed, in_a_row = list(line.due), 0, 0, 0
        while due and in_a_row < _FAILURES_MAX:
            group, due = due[: _FAILURES_MAX - in_a_row], due[_FAILURES_MAX - in_a_row :]
            for accepted in await asyncio.gather(
                *(self._send_one(line.stored, pending, places) for pending in group)
            ):
                match accepted:
                    case True:
                        sent, in_a_row = sent + 1, 0
                    case False:
                        failed, in_a_row = failed + 1, in_a_row + 1
                    case None if self._clock.monotonic_s() > places.until_s:
                        return WebhookReport(sent=sent, failed=failed, waiting=1)
                    case _:
                        pass
        return WebhookReport(sent=sent, failed=failed)

    async def _send_one(
        self, stored: StoredWebhook, pending: StoredDelivery, places: _Places
    ) -> bool | None:
        """Send a delivery once a place is free, and return whether the webhook accepted it.

        Returns None if time has run out, or if another process has claimed the delivery.
        """
        async with places.of_workspace, places.of_all:
            if self._clock.monotonic_s() > places.until_s:
                return None
            claimed = await self._claim(stored.webhook, pending)
            return None if claimed is None else await self._send(stored, claimed)

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
        """Replace a pending delivery with an ended one; after a crash in between, the event is sent
        again.
        """
        item = encode_delivery(webhook, ended)
        await self._client.call("PutItem", {"TableName": self._table, "Item": item})
        event_id = ended.delivery.event_id
        key = delivery_key(webhook.workspace_id, webhook.id, event_id, pending=True)
        await self._client.call("DeleteItem", {"TableName": self._table, "Key": key})

    async def _update(self, key: Item, write: ConditionalUpdate, values: Item) -> bool:
        return await try_update(self._client, write.build(self._table, key, values))


def _groups(events: Sequence[WebhookEvent], size: int) -> Iterator[Sequence[WebhookEvent]]:
    for start in range(0, len(events), size):
        yield events[start : start + size]


@reads_an_item
def _read_job_event(item: Item) -> WebhookEvent:
    return json.decode(read_text(item, JobEventItem.EVENT), type=WebhookEvent)


@reads_an_item
def _read_alert(item: Item) -> BudgetAlert:
    return json.decode(read_text(item, BudgetAlertItem.EVENT), type=BudgetAlert)
