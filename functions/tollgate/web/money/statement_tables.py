"""The texts and tables of a printed statement, as a page or as PDF."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from tollgate.core.money.amounts import usd
from tollgate.core.money.statement import Statement, StatementLine

GROUPS: Final = ("Team", "Member", "Model", "Provider", "Source")
TOTAL: Final = ("Total", *[""] * (len(GROUPS) - 1))
FIGURES: Final = ("Requests", "Tokens in", "Tokens out", "Cost", "Refunded", "Net")
_MOVES: Final = (
    ("grant", "Credit granted"),
    ("payment", "Payments"),
    ("refund", "Refunds"),
    ("adjustment", "Adjustments"),
    ("expiry", "Credit expired"),
)
_Rows = list[tuple[str, str]]


def statement_title(statement: Statement) -> str:
    """Return the title with the month and the workspace."""
    return f"Statement {statement.month}, {statement.workspace_id}"


def statement_terms(statement: Statement) -> str:
    """Return a sentence with the units and the time of creation."""
    created = datetime.fromtimestamp(statement.made_s, UTC)
    return f"UTC month, amounts in USD, created {created:%Y-%m-%d %H:%M} UTC."


def statement_remarks(statement: Statement) -> list[str]:
    """Return remarks on figures that are not final or not complete."""
    remarks = []
    if not statement.final:
        remarks.append("This month is not closed: figures may still change.")
    if statement.partial_days:
        remarks.append(f"Some records are not counted on {', '.join(statement.partial_days)}.")
    if statement.missing_days:
        remarks.append(f"No figures are available for {', '.join(statement.missing_days)}.")
    if statement.summed:
        remarks.append(f"Too many lines, so they are summed over {', '.join(statement.summed)}.")
    return remarks


def opening_rows(statement: Statement) -> _Rows:
    """Return the opening balance and its changes, which add up to the closing balance."""
    rows = [("Opening balance", statement.opening_nano_usd)]
    rows += [
        (name, statement.entries_nano_usd[kind])
        for kind, name in _MOVES
        if kind in statement.entries_nano_usd
    ]
    rows.append(("Usage", -statement.usage_nano_usd))
    return [(name, _amount(amount)) for name, amount in rows]


def closing_rows(statement: Statement) -> _Rows:
    """Return the closing balance, and what is owed of a credit limit."""
    closing = "Closing balance" if statement.final else "Balance so far"
    rows = [(closing, _amount(statement.closing_nano_usd))]
    if statement.credit_limit_nano_usd:
        rows.append(("Owed", _amount(max(0, -statement.closing_nano_usd))))
        rows.append(("Credit limit", _amount(statement.credit_limit_nano_usd)))
    return rows


def line_names(line: StatementLine) -> tuple[str, ...]:
    """Return the cells of `GROUPS`; a dash stands for an unknown name."""
    group = line.group
    names = (group.team, group.member, group.model, group.provider, group.source)
    return tuple(name or "–" for name in names)


def line_figures(lines: Sequence[StatementLine]) -> tuple[str, ...]:
    """Return the cells of `FIGURES`: the sums of some lines."""
    return (
        f"{sum(line.requests for line in lines):,}",
        f"{sum(line.input_tokens for line in lines):,}",
        f"{sum(line.output_tokens for line in lines):,}",
        _amount(sum(line.cost_nano_usd for line in lines)),
        _amount(sum(line.refunded_nano_usd for line in lines)),
        _amount(sum(line.net_nano_usd for line in lines)),
    )


def _amount(amount_nano_usd: int) -> str:
    """Return an exact amount with at least two decimals, such as `1,234.50` or `0.000000001`."""
    whole, _, part = f"{usd(amount_nano_usd):,.9f}".partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"
