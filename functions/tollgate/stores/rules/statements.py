"""Pure rules that compute statements from credit entries and activity."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.money.statement import Month, Statement, StatementLine, UsageGroup
from tollgate.core.records.activity import Activity, ActivityRow
from tollgate.stores.ports.credit import CreditEntry

# Maximum number of lines, which fit into the 6 MB of an unstreamed reply from Lambda.
LINES_MAX: Final = 4_000
# Parts of a line's group. While there are too many lines, lines that differ only in the next of
# these parts are merged.
_SUMMED: Final = ("member", "provider", "team", "source")
_LENT: Final = "credit_line"


class Spending(Struct, frozen=True, kw_only=True):
    """The cost of the days before a month, and the days whose cost is not final."""

    cost_nano_usd: int = 0
    live_days: tuple[str, ...] = ()
    partial_days: tuple[str, ...] = ()
    missing_days: tuple[str, ...] = ()


def sum_by_group(rows: Iterable[ActivityRow]) -> tuple[ActivityRow, ...]:
    """Merge the activity rows that become one line of a statement."""
    sums: dict[UsageGroup, ActivityRow] = {}
    for row in rows:
        group = _group_of(row)
        sum_so_far = sums.get(group)
        sums[group] = (
            row
            if sum_so_far is None
            else replace(
                sum_so_far,
                requests=sum_so_far.requests + row.requests,
                failed=sum_so_far.failed + row.failed,
                cost_nano_usd=sum_so_far.cost_nano_usd + row.cost_nano_usd,
                usage=sum_so_far.usage.plus(row.usage),
            )
        )
    return tuple(sums.values())


def make_statement(
    workspace_id: str,
    month: Month,
    *,
    entries: Iterable[CreditEntry],
    before: Spending,
    activity: Activity,
    now_s: float,
) -> Statement:
    """Return a month's statement from the entries until its end and the activity in the month."""
    opening, lent = -before.cost_nano_usd, 0
    sums: dict[str, int] = {}
    lines: dict[UsageGroup, StatementLine] = {}
    for entry in entries:
        if entry.created_s >= month.until_s:
            continue
        if entry.kind == _LENT:
            lent += entry.amount_nano_usd
        elif entry.created_s < month.since_s:
            opening += entry.amount_nano_usd
        else:
            sums[entry.kind] = sums.get(entry.kind, 0) + entry.amount_nano_usd
            if entry.refunded is not None:
                _add(
                    lines,
                    StatementLine(group=entry.refunded, refunded_nano_usd=entry.amount_nano_usd),
                )
    for row in activity.rows:
        _add(
            lines,
            StatementLine(
                group=_group_of(row),
                requests=row.requests,
                failed=row.failed,
                input_tokens=row.usage.input_tokens,
                output_tokens=row.usage.output_tokens or 0,
                cost_nano_usd=row.cost_nano_usd,
            ),
        )
    summed, shown_lines = _fit(list(lines.values()))
    unsettled = {
        name: (*getattr(before, name), *getattr(activity, name))
        for name in ("live_days", "partial_days", "missing_days")
    }
    return Statement(
        workspace_id=workspace_id,
        month=month.name,
        since_s=month.since_s,
        until_s=month.until_s,
        final=month.until_s <= now_s and not any(unsettled.values()),
        opening_nano_usd=opening,
        entries_nano_usd=sums,
        lines=tuple(sorted(shown_lines, key=_dearest_first)),
        credit_limit_nano_usd=lent,
        summed=summed,
        made_s=int(now_s),
        **unsettled,
    )


def _group_of(row: ActivityRow) -> UsageGroup:
    return UsageGroup.of(row.labels, row.model, row.provider, caller_labels=row.caller_labels)


def _add(lines: dict[UsageGroup, StatementLine], line: StatementLine) -> None:
    sum_so_far = lines.get(line.group)
    lines[line.group] = line if sum_so_far is None else sum_so_far.plus(line, line.group)


def _fit(lines: Sequence[StatementLine]) -> tuple[tuple[str, ...], Sequence[StatementLine]]:
    """Merge lines until they are few enough; return the merged parts of groups, and the lines."""
    summed: tuple[str, ...] = ()
    for part in _SUMMED:
        if len(lines) <= LINES_MAX:
            break
        summed = (*summed, part)
        fewer: dict[UsageGroup, StatementLine] = {}
        for line in lines:
            group = replace(line.group, **{part: None})
            _add(fewer, replace(line, group=group))
        lines = list(fewer.values())
    return summed, lines


def _dearest_first(line: StatementLine) -> tuple[int, tuple[str, ...]]:
    group = line.group
    names = (group.team, group.member, group.model, group.provider, group.source)
    return -line.net_nano_usd, tuple(name or "" for name in names)
