"""Monthly budgets of workspaces, with alerts and pauses.

Spending is computed from the states of keys, so there is no counter that needs a reset. An alert is
an item that is written once. Delivery is retried until every channel has accepted the alert, and a
lease ensures that only one process sends at a time. If a process dies after sending an alert and
before recording that, the alert is delivered again under the same id.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

from msgspec import Struct
from pydantic_core import to_json

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import IdSource
from tollgate.core.money.amounts import usd_text
from tollgate.core.webhooks import DeliveryFailed
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.expressions import ALERT_LEASE, ALERT_SENT, IF_ABSENT, ConditionalUpdate
from tollgate.stores.aws.items import AnyItem, BudgetAlertItem, KeyPointerItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import Tables, alert_key, get_items, key_state_key
from tollgate.stores.keys.rows import is_gone, month_used_nano_usd
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.ports.administration import Workspace
from tollgate.stores.rules.periods import bucket_names

_log = logging.getLogger(__name__)

PERCENTS: Final = (50, 75, 90, 100)
KEPT_S: Final = 400 * DAY_S
# Alerts that are older than this are stale and no longer sent.
_SENT_WITHIN_S: Final = 3 * DAY_S
# The lease is longer than a channel's timeout, and shorter than the five minutes between rounds.
_LEASE_S: Final = 120


class AlertChannel(Protocol):
    """A channel that delivers alerts."""

    name: str
    """A name that never changes, because it is part of the name of a stored attribute."""

    async def send(self, event: bytes) -> None:
        """Deliver an event in JSON; raise DeliveryFailed if the channel does not accept it."""


class Budgets(Struct, frozen=True):
    """The budgets of all workspaces."""

    client: AwsCaller
    tables: Tables
    workspaces: Workspaces
    channels: Sequence[AlertChannel]
    ids: IdSource
    clock: Clock

    async def check(self, workspace_id: str) -> int:
        """Create and send alerts that are due, pause or resume workspaces; return the number of new
        alerts.
        """
        workspace = await self.workspaces.read(workspace_id)
        if workspace is None:
            return 0
        budget = workspace.settings.budget_nano_usd
        alerts = 0
        spent = 0 if budget is None else await self.month_nano_usd(workspace_id)
        if budget is not None:
            for percent in PERCENTS:
                if spent * 100 >= budget * percent:
                    alerts += await self._make(workspace, spent, percent)
        over = budget is not None and spent >= budget and workspace.settings.pause_at_budget
        if over != workspace.paused:
            await self.workspaces.set_paused(workspace_id, paused=over)
        await self._deliver(workspace_id)
        return alerts

    async def month_nano_usd(self, workspace_id: str) -> int:
        """Return a workspace's spending in this UTC month."""
        second = int(self.clock.now_s())
        pointers = await self.workspaces.key_pointers(workspace_id)
        deleted = [pointer for pointer in pointers if is_gone(pointer)]
        spent = sum(
            read_number(pointer, KeyPointerItem.MONTH_SPENT)
            for pointer in deleted
            if read_text(pointer, KeyPointerItem.MONTH) == bucket_names(second)[2]
        )
        keys = [
            key_state_key(read_text(pointer, KeyPointerItem.KEY))
            for pointer in pointers
            if not is_gone(pointer)
        ]
        for state in await get_items(self.client, self.tables.ledger, keys):
            spent += month_used_nano_usd(state, second)
        return spent

    async def _make(self, workspace: Workspace, spent_nano_usd: int, percent: int) -> bool:
        """Write an alert; return False if it already exists."""
        budget = workspace.settings.budget_nano_usd or 0
        now_s = int(self.clock.now_s())
        month = bucket_names(now_s)[2].removeprefix("b_")
        event = {
            "id": f"evt_{self.ids.new_id()}",
            "type": "workspace.budget_alert",
            "workspace_id": workspace.id,
            "created_at": datetime.fromtimestamp(now_s, UTC).isoformat(),
            "data": {
                "month": f"{month[:4]}-{month[4:]}",
                "percent": percent,
                "budget_usd": usd_text(budget),
                "spent_usd": usd_text(spent_nano_usd),
                "pauses": percent == PERCENTS[-1] and workspace.settings.pause_at_budget,
            },
        }
        item: Item = {
            **alert_key(workspace.id, month, budget, percent),
            BudgetAlertItem.EVENT: string(to_json(event).decode()),
            BudgetAlertItem.DELETE_AT: number(now_s + KEPT_S),
        }
        try:
            await self.client.call(
                "PutItem",
                {
                    "TableName": self.tables.core,
                    "Item": item,
                    "ConditionExpression": IF_ABSENT,
                },
            )
        except ConditionFailed:
            return False
        return True

    async def _deliver(self, workspace_id: str) -> None:
        since_s = self.clock.now_s() - _SENT_WITHIN_S
        for row in await all_rows(self.client, self.tables.core, f"W#{workspace_id}", "E#"):
            if read_number(row, BudgetAlertItem.DELETE_AT) - KEPT_S < since_s:
                continue
            for channel in self.channels:
                if _sent_name(channel) not in row and await self._take_lease(row, channel):
                    await self._send(row, channel)

    async def _take_lease(self, row: Item, channel: AlertChannel) -> bool:
        """Return True if this process now holds the lease for sending an alert."""
        now_s = int(self.clock.now_s())
        names = {
            "#at": _sent_name(channel),
            "#lease": f"{BudgetAlertItem.LEASED_FOR}{channel.name}",
        }
        values = {":now": number(now_s), ":until": number(now_s + _LEASE_S)}
        try:
            await self._note(row, ALERT_LEASE, names, values)
        except ConditionFailed:
            return False
        return True

    async def _send(self, row: Item, channel: AlertChannel) -> None:
        try:
            await channel.send(read_text(row, BudgetAlertItem.EVENT).encode())
        except DeliveryFailed as failed:
            _log.error("the channel %s did not deliver an alert: %s", channel.name, failed)
            return
        values = {":now": number(int(self.clock.now_s()))}
        await self._note(row, ALERT_SENT, {"#at": _sent_name(channel)}, values)

    async def _note(
        self, row: Item, write: ConditionalUpdate, names: Mapping[str, str], values: Item
    ) -> None:
        key = {name: row[name] for name in (AnyItem.PARTITION, AnyItem.SORT)}
        request = write.build(self.tables.core, key, values, names)
        await self.client.call("UpdateItem", request)


def _sent_name(channel: AlertChannel) -> str:
    return f"{BudgetAlertItem.SENT_FOR}{channel.name}"
