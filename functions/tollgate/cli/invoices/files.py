"""Reader of invoice files: JSON pages, or AWS's Cost and Usage Report 2.0 as CSV.

Columns as in docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2-line-item.html, usage
types as in docs.aws.amazon.com/bedrock/latest/userguide/cost-mgmt-understanding-cur-data.html (seen
2026-11-22). Times are UTC; a usage type names a model, a region and a class of tokens.
"""

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Final, TextIO, cast

from tollgate.cli.invoices.json_pages import read_json_page
from tollgate.cli.invoices.lines import (
    InvoiceLine,
    InvoiceRefused,
    check_currency,
    read_amount,
    sum_lines,
)

_JSON_BYTES_MAX: Final = 64 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"
_START: Final = "line_item_usage_start_date"
_TYPE: Final = "line_item_usage_type"
_KIND: Final = "line_item_line_item_type"
_COST: Final = "line_item_unblended_cost"
_CURRENCY: Final = "line_item_currency_code"
_COLUMNS: Final = frozenset({_START, _TYPE, _KIND, _COST, _CURRENCY})
# Other kinds, such as taxes, credits and fees, are not usage.
_KINDS: Final = frozenset({"Usage", "DiscountedUsage"})
_TOKENS: Final = "token"


def read_invoices(paths: Sequence[Path]) -> list[InvoiceLine]:
    """Return the lines of all files, summed by day and name; raise InvoiceRefused on errors."""
    lines: list[InvoiceLine] = []
    for path in paths:
        try:
            lines += _read(path, alone=len(paths) == 1)
        except InvoiceRefused as refused:
            raise InvoiceRefused(f"{path}: {refused}") from refused
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise InvoiceRefused(f"{path} cannot be read: {wrong!r}.") from wrong
    return sum_lines(lines)


def _read(path: Path, *, alone: bool) -> list[InvoiceLine]:
    with path.open("rb") as plain:
        packed = plain.read(len(_GZIP)) == _GZIP
        plain.seek(0)
        content = cast(IO[bytes], gzip.GzipFile(fileobj=plain)) if packed else plain
        first = content.read(1)
        while first.isspace():
            first = content.read(1)
        content.seek(0)
        if first not in (b"{", b"["):
            text = TextIOWrapper(content, encoding="utf-8-sig", newline="")
            return sum_lines(_read_usage_csv(text))
        document = content.read(_JSON_BYTES_MAX + 1)
    if len(document) > _JSON_BYTES_MAX:
        raise InvoiceRefused(f"A report has at most {_JSON_BYTES_MAX // 1024**2} MB.")
    return list(read_json_page(json.loads(document, parse_float=Decimal), alone=alone))


def _read_usage_csv(file: TextIO) -> Iterator[InvoiceLine]:
    """Yield those lines of a Cost and Usage Report that are about tokens; raise InvoiceRefused if
    the file is not such a report.
    """
    rows = csv.DictReader(file)
    missing = _COLUMNS - set(rows.fieldnames or ())
    if missing:
        raise InvoiceRefused(f"The table has no column {min(missing)}.")
    for row in rows:
        if row[_KIND] not in _KINDS or _TOKENS not in (row[_TYPE] or "").lower():
            continue
        check_currency(row[_CURRENCY])
        yield InvoiceLine(day=row[_START][:10], name=row[_TYPE], usd=read_amount(row[_COST], _COST))
