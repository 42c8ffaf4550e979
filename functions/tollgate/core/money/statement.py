"""A statement: the money of a workspace in one UTC month, which adds up to the nano-dollar."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.records.activity import ROWS_READ_MAX

_MONTH: Final = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])", re.ASCII)


class Month(Struct, frozen=True, kw_only=True):
    """A UTC month."""

    # As `2026-11`.
    name: str
    # Unix seconds, [since_s, until_s).
    since_s: int
    until_s: int


class UsageGroup(Struct, frozen=True, kw_only=True):
    """The share of usage that a line of a statement is of; None where it is unknown or summed."""

    team: str | None = None
    member: str | None = None
    model: str | None = None
    provider: str | None = None

    @classmethod
    def of(cls, labels: Mapping[str, str], model: str | None, provider: str | None) -> "UsageGroup":
        """Return the group of a generation by the labels of its key, not those of its caller."""
        return cls(
            team=labels.get("team"), member=labels.get("member"), model=model, provider=provider
        )


class StatementLine(Struct, frozen=True, kw_only=True):
    """The usage of one group in the month, and what was refunded of such usage meanwhile."""

    group: UsageGroup
    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nano_usd: int = 0
    refunded_nano_usd: int = 0

    @property
    def net_nano_usd(self) -> int:
        """The cost less what was refunded; negative where that was the cost of an earlier month."""
        return self.cost_nano_usd - self.refunded_nano_usd

    def plus(self, other: "StatementLine", group: UsageGroup) -> "StatementLine":
        """Return the sum of two lines, as a line of `group`."""
        return StatementLine(
            group=group,
            requests=self.requests + other.requests,
            failed=self.failed + other.failed,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_nano_usd=self.cost_nano_usd + other.cost_nano_usd,
            refunded_nano_usd=self.refunded_nano_usd + other.refunded_nano_usd,
        )


class Statement(Struct, frozen=True, kw_only=True):
    """The money of a workspace in one month; `closing` is `opening` and everything between.

    A balance has no lent credit in it: below 0, it is owed.
    """

    workspace_id: str
    # As `2026-11`.
    month: str
    # The month in Unix seconds, [since_s, until_s).
    since_s: int
    until_s: int
    # Whether nothing of it can change any more.
    final: bool
    opening_nano_usd: int
    # Sums of the month's entries by kind, signed as they were entered; without the credit line.
    entries_nano_usd: Mapping[str, int]
    lines: tuple[StatementLine, ...]
    # What the operator lends at the end of the month, or now.
    credit_limit_nano_usd: int = 0
    # Days until the end of the month that are counted from their records.
    live_days: tuple[str, ...] = ()
    # Live days of which not every record is counted.
    partial_days: tuple[str, ...] = ()
    # Days of which nothing is known.
    missing_days: tuple[str, ...] = ()
    # Groups that are summed up, because there were too many lines: `member`, then `team`…
    summed: tuple[str, ...] = ()
    # Unix second at which it was made.
    made_s: int = 0

    @property
    def usage_nano_usd(self) -> int:
        """The cost of the month's usage, before refunds."""
        return sum(line.cost_nano_usd for line in self.lines)

    @property
    def closing_nano_usd(self) -> int:
        """The balance at the end of the month, or now."""
        return self.opening_nano_usd + sum(self.entries_nano_usd.values()) - self.usage_nano_usd


def read_month(text: str, now_s: float) -> Month:
    """Return the month that a text names; raise RequestError for no month, or one to come."""
    named = _MONTH.fullmatch(text)
    if named is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "Write a month as 2026-11.", param="month")
    year, month = int(named[1]), int(named[2])
    since = datetime(year, month, 1, tzinfo=UTC)
    until = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    if since.timestamp() > now_s:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{text} has not begun in UTC.", param="month"
        )
    return Month(name=text, since_s=int(since.timestamp()), until_s=int(until.timestamp()))


def too_many_rows(month: Month) -> RequestError:
    """Make the refusal of a month whose activity is too much for one statement."""
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"{month.name} has more than {ROWS_READ_MAX:,} rows of activity, too many for a statement. "
        "`tollgate spend --since --until` adds up some days at a time.",
        param="month",
    )
