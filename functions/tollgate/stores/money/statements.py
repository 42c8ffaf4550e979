"""Statements of workspaces, computed from credit entries, closed days and activity in DynamoDB.

The cost of a day covers the generations that began on that day, so a closed day never changes.
"""

import asyncio
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import first_id_of
from tollgate.core.money.statement import Month, Statement, too_many_rows
from tollgate.core.records.activity import ROWS_READ_MAX, Activity, day_of, days_within
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.record_items import ClosedDayItem
from tollgate.stores.aws.row_ranges import rows_between
from tollgate.stores.aws.tables import Tables, workspace_partition
from tollgate.stores.money.credit_items import read_entry
from tollgate.stores.ports.administration import ActivityStore, WorkspaceStore
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.rules.periods import day_name
from tollgate.stores.rules.statements import Spending, make_statement, sum_by_group

# Maximum difference between the clock behind an entry's sort key and the one behind its date.
_CLOCKS_DIFFER_S: Final = 3600
# Maximum number of open days, before the month, whose activity is counted; older open days are
# reported as missing.
_OPEN_DAYS_MAX: Final = 31
_DAYS_AT_ONCE: Final = 4


class DynamoStatementStore(Struct, frozen=True):
    """Implements `stores.ports.administration.StatementStore`."""

    client: AwsCaller
    tables: Tables
    workspaces: WorkspaceStore
    activity: ActivityStore
    clock: Clock

    async def statement(self, workspace_id: str, month: Month) -> Statement:
        """Return the statement for a month that has begun; all zero for an unknown workspace."""
        now_s = int(self.clock.now_s())
        workspace = await self.workspaces.get(workspace_id)
        # The clock that created the ids may be behind the clock that dated the workspace.
        first_s = (now_s if workspace is None else workspace.created_s) - DAY_S
        entries, before, activity = await asyncio.gather(
            self._entries(workspace_id, month),
            self._spending_before(workspace_id, first_s, month.since_s),
            self._usage(workspace_id, month, max(first_s, month.since_s), now_s),
        )
        return make_statement(
            workspace_id, month, entries=entries, before=before, activity=activity, now_s=now_s
        )

    async def _entries(self, workspace_id: str, month: Month) -> list[CreditEntry]:
        """Return the entries up to the end of a month; raise an error that names any
        corrupt entry.
        """
        with refusing_when_unavailable():
            rows = await rows_between(
                self.client,
                self.tables.core,
                workspace_partition(workspace_id),
                low="L#",
                high=f"L#{first_id_of(month.until_s + _CLOCKS_DIFFER_S)}",
                consistent=True,
            )
            return [read_entry(row) for row in rows]

    async def _usage(self, workspace_id: str, month: Month, since_s: int, now_s: int) -> Activity:
        """Return the activity in a month, read a few days at a time to limit memory."""
        until_s = min(month.until_s, now_s + 1)
        parts: list[Activity] = []
        count = 0
        for start_s in range(since_s // DAY_S * DAY_S, until_s, _DAYS_AT_ONCE * DAY_S):
            end_s = min(start_s + _DAYS_AT_ONCE * DAY_S, until_s)
            part = await self.activity.activity(workspace_id, start_s, end_s)
            count += len(part.rows)
            if count > ROWS_READ_MAX:
                raise too_many_rows(month)
            parts.append(replace(part, rows=sum_by_group(part.rows)))
        return Activity(
            rows=tuple(row for part in parts for row in part.rows),
            live_days=tuple(day for part in parts for day in part.live_days),
            partial_days=tuple(day for part in parts for day in part.partial_days),
            missing_days=tuple(day for part in parts for day in part.missing_days),
        )

    async def _spending_before(self, workspace_id: str, first_s: int, until_s: int) -> Spending:
        days = days_within(first_s, until_s)
        if not days:
            return Spending()
        with refusing_when_unavailable():
            rows = await rows_between(
                self.client,
                self.tables.core,
                workspace_partition(workspace_id),
                low=f"D#{day_name(days[0])}",
                high=f"D#{day_name(days[-1])}",
            )
            closed = {
                read_text(row, AnyItem.SORT).removeprefix("D#"): read_number(
                    row, ClosedDayItem.COST
                )
                for row in rows
            }
        still_open = [day_s for day_s in days if day_name(day_s) not in closed]
        counts = [
            await self.activity.activity(workspace_id, day_s, day_s + DAY_S)
            for day_s in still_open[-_OPEN_DAYS_MAX:]
        ]
        unknown = tuple(day_of(day_s) for day_s in still_open[:-_OPEN_DAYS_MAX])
        return Spending(
            cost_nano_usd=sum(closed.values())
            + sum(row.cost_nano_usd for count in counts for row in count.rows),
            live_days=tuple(day for count in counts for day in count.live_days),
            partial_days=tuple(day for count in counts for day in count.partial_days),
            missing_days=(*unknown, *(day for count in counts for day in count.missing_days)),
        )
