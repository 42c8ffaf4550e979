"""Statements: a workspace's money in one UTC month, exact to the nano-dollar."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from tollgate.core.errors import RequestError, invalid_request
from tollgate.core.principal import GenerationSource, generation_source
from tollgate.core.records.activity import ROWS_READ_MAX

_MONTH: Final = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])", re.ASCII)


class Month(Struct, frozen=True, kw_only=True):
    """A UTC month."""

    name: str
    """The month as `2026-11`."""
    since_s: int
    """The first Unix second of the month."""
    until_s: int
    """The first Unix second after the month."""


class UsageGroup(Struct, frozen=True, kw_only=True):
    """The dimensions of a statement line; a dimension that is unknown or summed over is None."""

    team: str | None = None
    member: str | None = None
    model: str | None = None
    provider: str | None = None
    source: GenerationSource | None = "api"

    @classmethod
    def of(
        cls,
        labels: Mapping[str, str],
        model: str | None,
        provider: str | None,
        *,
        caller_labels: Mapping[str, str],
    ) -> "UsageGroup":
        """Return a generation's group. Only the source is taken from the caller's labels."""
        return cls(
            team=labels.get("team"),
            member=labels.get("member"),
            model=model,
            provider=provider,
            source=generation_source(caller_labels),
        )


class StatementLine(Struct, frozen=True, kw_only=True):
    """The usage of one group in a month, and the refunds that the group got in that month."""

    group: UsageGroup
    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nano_usd: int = 0
    refunded_nano_usd: int = 0

    @property
    def net_nano_usd(self) -> int:
        """The cost minus the refunds; negative if usage of an earlier month was refunded."""
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
    """A workspace's money in one month; `closing` is `opening` plus everything in between.

    Balances exclude the credit limit, so a negative balance is a debt.
    """

    workspace_id: str
    month: str
    """The month as `2026-11`."""
    since_s: int
    """The first Unix second of the month."""
    until_s: int
    """The first Unix second after the month."""
    final: bool
    """True if the statement can no longer change."""
    opening_nano_usd: int
    entries_nano_usd: Mapping[str, int]
    """The signed sums of the month's entries by kind, without changes to the credit limit."""
    lines: tuple[StatementLine, ...]
    credit_limit_nano_usd: int = 0
    """The credit limit at the end of the month, or now if the month has not ended."""
    live_days: tuple[str, ...] = ()
    """Days of the month whose usage is counted from generation records."""
    partial_days: tuple[str, ...] = ()
    """Live days on which some records could not be counted."""
    missing_days: tuple[str, ...] = ()
    """Days whose usage is unknown."""
    summed: tuple[str, ...] = ()
    """Fields summed over because there were too many lines: `member`, then `team`…"""
    made_s: int = 0
    """The Unix second at which the statement was created."""

    @property
    def usage_nano_usd(self) -> int:
        """The cost of the month's usage, before refunds."""
        return sum(line.cost_nano_usd for line in self.lines)

    @property
    def closing_nano_usd(self) -> int:
        """The balance at the end of the month, or now if the month has not ended."""
        return self.opening_nano_usd + sum(self.entries_nano_usd.values()) - self.usage_nano_usd


def read_month(text: str, now_s: float) -> Month:
    """Return the month with this name; raise RequestError for an invalid or future month."""
    named = _MONTH.fullmatch(text)
    if named is None:
        raise invalid_request("Write a month as 2026-11.", "month")
    year, month = int(named[1]), int(named[2])
    since = datetime(year, month, 1, tzinfo=UTC)
    until = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    if since.timestamp() > now_s:
        raise invalid_request(f"{text} has not begun in UTC.", "month")
    return Month(name=text, since_s=int(since.timestamp()), until_s=int(until.timestamp()))


def too_many_rows(month: Month) -> RequestError:
    """Return the refusal for a month that has too much activity for one statement."""
    return invalid_request(
        f"{month.name} has more than {ROWS_READ_MAX:,} rows of activity, too many for a statement. "
        "`tollgate spend --since --until` adds up a few days at a time.",
        "month",
    )
