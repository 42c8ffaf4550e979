"""A statement as JSON and as the rows of a CSV table."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, Field

from tollgate.core.money.amounts import usd, usd_text
from tollgate.core.money.statement import Statement, StatementLine
from tollgate.core.principal import GenerationSource
from tollgate.web.shapes import Usd, moment

# Scripts select columns by position, so a new column must be the last.
# `amount` is a row's change to the balance. In the last row, it is the closing balance, which is
# the sum of the rows above.
STATEMENT_COLUMNS: Final = (
    "type",
    "team",
    "member",
    "model",
    "provider",
    "requests",
    "failed",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    "refunded",
    "amount",
    "source",
)


class StatementLineObject(BaseModel):
    """The usage of one team, member, model, provider and source in the month."""

    team: str | None
    member: str | None
    model: str | None
    provider_name: str | None
    source: GenerationSource | None = Field(
        description="`playground` for the console's playground, `api` for all other requests"
    )
    requests: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: Usd
    refunded: Usd = Field(description="refunds that were entered in the month")
    net: Usd

    @classmethod
    def of(cls, line: StatementLine) -> "StatementLineObject":
        """Build the object from a line."""
        return cls(
            team=line.group.team,
            member=line.group.member,
            model=line.group.model,
            provider_name=line.group.provider,
            source=line.group.source,
            requests=line.requests,
            failed=line.failed,
            prompt_tokens=line.input_tokens,
            completion_tokens=line.output_tokens,
            cost=usd(line.cost_nano_usd),
            refunded=usd(line.refunded_nano_usd),
            net=usd(line.net_nano_usd),
        )


class StatementObject(BaseModel):
    """A workspace's money in one UTC month, in USD.

    closing_balance = opening_balance + grants + payments + refunds + adjustments + expiries -
    usage.

    Balances do not include the credit limit: a negative balance is owed.
    """

    workspace_id: str
    month: str
    since: datetime
    until: datetime
    status: Literal["final", "open"] = Field(
        description="open while a day of the month is not closed: figures may still change"
    )
    made_at: datetime
    opening_balance: Usd
    grants: Usd
    payments: Usd
    refunds: Usd
    adjustments: Usd
    expiries: Usd = Field(description="credit that expired; 0 or negative")
    usage: Usd = Field(description="cost of the generations that began in the month")
    closing_balance: Usd = Field(description="at the end of the month, or now")
    credit_limit: Usd = Field(description="credit limit at the end of the month, or now")
    lines: list[StatementLineObject]
    summed: list[str] = Field(description="fields over which too many lines were summed")
    live_days: list[str] = Field(description="days that are counted from their records")
    partial_days: list[str] = Field(description="live days on which some records are not counted")
    missing_days: list[str] = Field(description="days without any figures")

    @classmethod
    def of(cls, statement: Statement) -> "StatementObject":
        """Build the object from a statement."""
        entries = statement.entries_nano_usd
        return cls(
            workspace_id=statement.workspace_id,
            month=statement.month,
            since=moment(statement.since_s),
            until=moment(statement.until_s),
            status="final" if statement.final else "open",
            made_at=moment(statement.made_s),
            opening_balance=usd(statement.opening_nano_usd),
            grants=usd(entries.get("grant", 0)),
            payments=usd(entries.get("payment", 0)),
            refunds=usd(entries.get("refund", 0)),
            adjustments=usd(entries.get("adjustment", 0)),
            expiries=usd(entries.get("expiry", 0)),
            usage=usd(statement.usage_nano_usd),
            closing_balance=usd(statement.closing_nano_usd),
            credit_limit=usd(statement.credit_limit_nano_usd),
            lines=[StatementLineObject.of(line) for line in statement.lines],
            summed=list(statement.summed),
            live_days=list(statement.live_days),
            partial_days=list(statement.partial_days),
            missing_days=list(statement.missing_days),
        )


class StatementReply(BaseModel):
    """The statement of one month."""

    data: StatementObject


def statement_rows(statement: Statement) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a statement's CSV table, from the opening to the closing balance."""

    def amount(type_: str, amount_nano_usd: int) -> dict[str, str]:
        return dict.fromkeys(STATEMENT_COLUMNS, "") | {
            "type": type_,
            "amount": usd_text(amount_nano_usd),
        }

    yield amount("opening_balance", statement.opening_nano_usd)
    unassigned = statement.entries_nano_usd.get("refund", 0)
    for kind, sum_nano_usd in sorted(statement.entries_nano_usd.items()):
        if kind != "refund":
            yield amount(kind, sum_nano_usd)
    for line in statement.lines:
        unassigned -= line.refunded_nano_usd
        yield amount("usage", -line.net_nano_usd) | {
            "team": line.group.team or "",
            "member": line.group.member or "",
            "model": line.group.model or "",
            "provider": line.group.provider or "",
            "source": line.group.source or "",
            "requests": str(line.requests),
            "failed": str(line.failed),
            "prompt_tokens": str(line.input_tokens),
            "completion_tokens": str(line.output_tokens),
            "cost": usd_text(line.cost_nano_usd),
            "refunded": usd_text(line.refunded_nano_usd),
        }
    if unassigned:
        yield amount("refund", unassigned)
    closing = "closing_balance" if statement.final else "closing_balance_open"
    yield amount(closing, statement.closing_nano_usd)
