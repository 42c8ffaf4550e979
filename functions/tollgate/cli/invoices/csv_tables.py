"""Reader of invoices as CSV, whose columns distinguish the kinds of tables.

- AWS Cost and Usage Report 2.0: docs.aws.amazon.com/cur/latest/userguide/
  table-dictionary-cur2-line-item.html; usage types as in docs.aws.amazon.com/bedrock/latest/
  userguide/cost-mgmt-understanding-cur-data.html (2026-11-22); principals as in
  docs.aws.amazon.com/bedrock/latest/userguide/cost-mgmt-iam-principal-tracking.html (2026-11-28).
- FOCUS 1.0 to 1.3 (focus.finops.org), which AWS, Google Cloud and Azure export. AWS names usage
  types in `x_UsageType`, from FOCUS 1.2 in `SkuMeter` (docs.aws.amazon.com/cur/latest/userguide/
  table-dictionary-focus-1-2-migrating.html, 2026-11-27).
- Azure's cost details: learn.microsoft.com/azure/cost-management-billing/dataset-schema/
  cost-usage-details-ea and cost-usage-details-mca (2026-11-27), whose names differ in case.

Times are UTC.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Final, TextIO

from msgspec import Struct

from tollgate.cli.invoices.lines import (
    InvoiceLine,
    InvoiceRefused,
    check_currency,
    read_amount,
)


class CsvTable(Struct, frozen=True, kw_only=True):
    """A kind of table: its columns in lower case, and the rows that are usage of models."""

    title: str
    day: str
    names: tuple[str, ...]
    """The columns that may name the billed item; the first column that is not empty counts."""
    usd: str
    currency: str
    usage: Mapping[str, frozenset[str]]
    """The values of columns that distinguish usage from taxes, credits and other services."""
    only_tokens: bool
    """True if only items with `token` in their name are about models."""
    principal: str | None = None
    """The column with the ARN of the identity that made the requests; an export may lack it."""

    def is_in(self, columns: frozenset[str]) -> bool:
        """Return whether a file with these columns has this table's format."""
        needed = {self.day, self.usd, self.currency, *self.usage}
        return needed <= columns and not columns.isdisjoint(self.names)


_TABLES: Final = (
    CsvTable(
        title="AWS Cost and Usage Report 2.0",
        day="line_item_usage_start_date",
        names=("line_item_usage_type",),
        usd="line_item_unblended_cost",
        currency="line_item_currency_code",
        usage={"line_item_line_item_type": frozenset({"Usage", "DiscountedUsage"})},
        only_tokens=True,
        principal="line_item_iam_principal",
    ),
    CsvTable(
        title="FOCUS",
        day="chargeperiodstart",
        names=("x_usagetype", "skumeter", "chargedescription"),
        usd="billedcost",
        currency="billingcurrency",
        usage={
            "chargecategory": frozenset({"Usage"}),
            "servicecategory": frozenset({"AI and Machine Learning"}),
        },
        only_tokens=False,
    ),
    CsvTable(
        title="Azure cost details",
        day="date",
        names=("metername",),
        usd="costinbillingcurrency",
        currency="billingcurrency",
        usage={"chargetype": frozenset({"Usage"})},
        only_tokens=True,
    ),
)


NO_PRINCIPALS: Final = (
    "A comparison by team needs AWS's Cost and Usage Report 2.0 with the column "
    "line_item_iam_principal: let the export include IAM principals."
)


def read_csv_table(
    file: TextIO, *, by_principal: bool = False
) -> tuple[str, Iterator[InvoiceLine]]:
    """Return the kind of a table, and its lines for models; if `by_principal`, also other lines
    that have a principal.

    Raises InvoiceRefused for an unknown kind of table.
    """
    rows = csv.DictReader(file)
    rows.fieldnames = [name.strip().lower() for name in rows.fieldnames or ()]
    columns = frozenset(rows.fieldnames)
    for table in _TABLES:
        if table.is_in(columns):
            if by_principal and table.principal not in columns:
                raise InvoiceRefused(NO_PRINCIPALS)
            return table.title, _read(table, rows, by_principal=by_principal)
    known = ", ".join(table.title for table in _TABLES)
    raise InvoiceRefused(f"The columns match no known table. Known tables: {known}.")


def _read(
    table: CsvTable, rows: Iterable[dict[str, str]], *, by_principal: bool
) -> Iterator[InvoiceLine]:
    for row in rows:
        principal = (row.get(table.principal or "") or "") if by_principal else ""
        name = next((row[column] for column in table.names if row.get(column)), "")
        is_usage = all(row[column] in values for column, values in table.usage.items())
        is_about_models = not table.only_tokens or "token" in name.lower() or principal
        if not (is_usage and is_about_models):
            continue
        check_currency(row[table.currency])
        amount = read_amount(row[table.usd], table.usd)
        day = _read_day(row[table.day])
        yield InvoiceLine(day=day, name=name, usd=amount, principal=principal)


def _read_day(text: str) -> str:
    """Return the ISO date of a time, or of a date such as 11/02/2026, as EA accounts have it."""
    if "/" not in text:
        return text[:10]
    month, day, year = map(int, text.split("/"))
    return f"{date(year, month, day)}"
