"""A statement as a printable page, without scripts or external resources."""

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from typing import Final

from tollgate.core.money.statement import Statement
from tollgate.web.money.statement_tables import (
    FIGURES,
    GROUPS,
    TOTAL,
    closing_rows,
    line_figures,
    line_names,
    opening_rows,
    statement_remarks,
    statement_terms,
    statement_title,
)

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


def statement_page(statement: Statement) -> str:
    """Return a statement as an HTML page."""
    title = statement_title(statement)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>"
        f"<p>{escape(statement_terms(statement))}</p>"
        f"{_remarks(statement)}{_balance_table(statement)}{_usage_table(statement)}</body></html>"
    )


def _remarks(statement: Statement) -> str:
    remarks = statement_remarks(statement)
    return "".join(f'<p class="open">{escape(remark)}</p>' for remark in remarks)


def _balance_table(statement: Statement) -> str:
    body = "".join(_row((name,), (amount,)) for name, amount in opening_rows(statement))
    foot = "".join(_row((name,), (amount,)) for name, amount in closing_rows(statement))
    return f'<table class="balance"><tbody>{body}</tbody><tfoot>{foot}</tfoot></table>'


def _usage_table(statement: Statement) -> str:
    if not statement.lines:
        return "<p>No usage.</p>"
    heads = "".join(f"<th>{name}</th>" for name in GROUPS)
    heads += "".join(f'<th class="n">{name}</th>' for name in FIGURES)
    body = "".join(_row(line_names(line), line_figures((line,))) for line in statement.lines)
    total = _row(TOTAL, line_figures(statement.lines))
    return (
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody><tfoot>{total}</tfoot></table>"
    )


def _row(texts: Iterable[str], figures: Iterable[str]) -> str:
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    cells += "".join(f'<td class="n">{escape(figure)}</td>' for figure in figures)
    return f"<tr>{cells}</tr>"
