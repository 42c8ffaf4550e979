"""Lines about tokens in AWS's Cost and Usage Report 2.0, as CSV.

Columns as in docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2-line-item.html, usage
types as in docs.aws.amazon.com/bedrock/latest/userguide/cost-mgmt-understanding-cur-data.html (seen
2026-11-22). Times are UTC; a usage type names a model, a region and a class of tokens.
"""

import csv
from collections.abc import Iterator
from typing import Final, TextIO

from tollgate.cli.invoices.lines import (
    InvoiceLine,
    InvoiceRefused,
    check_currency,
    read_amount,
)

_START: Final = "line_item_usage_start_date"
_TYPE: Final = "line_item_usage_type"
_KIND: Final = "line_item_line_item_type"
_COST: Final = "line_item_unblended_cost"
_CURRENCY: Final = "line_item_currency_code"
_COLUMNS: Final = frozenset({_START, _TYPE, _KIND, _COST, _CURRENCY})
# Taxes, credits and fees do not belong to the usage of a day.
_KINDS: Final = frozenset({"Usage", "DiscountedUsage"})
_TOKENS: Final = "token"


def read_usage_csv(file: TextIO) -> Iterator[InvoiceLine]:
    """Yield the report's lines about tokens; raise InvoiceRefused for another table."""
    rows = csv.DictReader(file)
    missing = _COLUMNS - set(rows.fieldnames or ())
    if missing:
        raise InvoiceRefused(f"The table has no column {min(missing)}.")
    for row in rows:
        if row[_KIND] not in _KINDS or _TOKENS not in (row[_TYPE] or "").lower():
            continue
        check_currency(row[_CURRENCY])
        yield InvoiceLine(day=row[_START][:10], name=row[_TYPE], usd=read_amount(row[_COST], _COST))
