"""A statement as a printable page, without scripts or external resources."""

import base64
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import Final

from tollgate.core.money.amounts import usd
from tollgate.core.money.statement import Statement, StatementLine

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 10.5pt/1.5 system-ui, sans-serif; color: #111; }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
p { color: #444; margin: .25rem 0 1rem; }
.open { border-left: 3px solid #b45309; padding-left: .75rem; color: #7c2d12; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 1.5rem; }
table { font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #ddd; }
th, td { text-align: left; vertical-align: top; }
th { font-weight: 600; }
.n { text-align: right; white-space: nowrap; }
tfoot td { border-top: 2px solid #111; font-weight: 600; }
.balance { max-width: 28rem; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
@page { margin: 15mm; }
@media print { body { margin: 0; max-width: none; padding: 0; } }
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# The page must not load anything; only its inline style is allowed.
STATEMENT_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_MOVES: Final = (
    ("grant", "Credit granted"),
    ("payment", "Payments"),
    ("refund", "Refunds"),
    ("adjustment", "Adjustments"),
    ("expiry", "Credit expired"),
)
_GROUPS: Final = ("Team", "Member", "Model", "Provider")
_FIGURES: Final = ("Requests", "Tokens in", "Tokens out", "Cost", "Refunded", "Net")


def statement_page(statement: Statement) -> str:
    """Return a statement as an HTML page."""
    created = datetime.fromtimestamp(statement.made_s, UTC)
    title = f"Statement {statement.month}, {statement.workspace_id}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>"
        f"<p>UTC month, amounts in USD, created {created:%Y-%m-%d %H:%M} UTC.</p>"
        f"{_remarks(statement)}{_balance_table(statement)}{_usage_table(statement)}</body></html>"
    )


def _remarks(statement: Statement) -> str:
    remarks = []
    if not statement.final:
        remarks.append("This month is not closed: figures may still change.")
    if statement.partial_days:
        remarks.append(f"Some records are not counted on {', '.join(statement.partial_days)}.")
    if statement.missing_days:
        remarks.append(f"No figures are available for {', '.join(statement.missing_days)}.")
    if statement.summed:
        remarks.append(f"Too many lines: summed over {', '.join(statement.summed)}.")
    return "".join(f'<p class="open">{escape(remark)}</p>' for remark in remarks)


def _balance_table(statement: Statement) -> str:
    rows = [("Opening balance", statement.opening_nano_usd)]
    rows += [
        (name, statement.entries_nano_usd[kind])
        for kind, name in _MOVES
        if kind in statement.entries_nano_usd
    ]
    rows.append(("Usage", -statement.usage_nano_usd))
    body = "".join(_row((name,), (_amount(amount),)) for name, amount in rows)
    closing = "Closing balance" if statement.final else "Balance so far"
    foot = _row((closing,), (_amount(statement.closing_nano_usd),))
    if statement.credit_limit_nano_usd:
        owed = max(0, -statement.closing_nano_usd)
        foot += _row(("Owed",), (_amount(owed),))
        foot += _row(("Credit limit",), (_amount(statement.credit_limit_nano_usd),))
    return f'<table class="balance"><tbody>{body}</tbody><tfoot>{foot}</tfoot></table>'


def _usage_table(statement: Statement) -> str:
    if not statement.lines:
        return "<p>No usage.</p>"
    heads = "".join(f"<th>{name}</th>" for name in _GROUPS)
    heads += "".join(f'<th class="n">{name}</th>' for name in _FIGURES)
    total = _figures(statement.lines)
    return (
        f"<table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(map(_line, statement.lines))}</tbody>"
        f"<tfoot>{_row(('Total', '', '', ''), total)}</tfoot></table>"
    )


def _line(line: StatementLine) -> str:
    group = line.group
    names = (group.team, group.member, group.model, group.provider)
    return _row(tuple(name or "–" for name in names), _figures((line,)))


def _figures(lines: Iterable[StatementLine]) -> tuple[str, ...]:
    found = list(lines)
    return (
        f"{sum(line.requests for line in found):,}",
        f"{sum(line.input_tokens for line in found):,}",
        f"{sum(line.output_tokens for line in found):,}",
        _amount(sum(line.cost_nano_usd for line in found)),
        _amount(sum(line.refunded_nano_usd for line in found)),
        _amount(sum(line.net_nano_usd for line in found)),
    )


def _row(texts: Iterable[str], figures: Iterable[str]) -> str:
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    cells += "".join(f'<td class="n">{escape(figure)}</td>' for figure in figures)
    return f"<tr>{cells}</tr>"


def _amount(amount_nano_usd: int) -> str:
    """Return an exact amount with at least two decimals, such as `1,234.50` or `0.000000001`."""
    whole, _, part = f"{usd(amount_nano_usd):,.9f}".partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"
