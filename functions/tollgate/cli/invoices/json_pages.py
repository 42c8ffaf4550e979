"""Reader of cost and usage reports from the administration APIs of OpenAI, Anthropic and AWS.

OpenAI: `GET /organization/costs?group_by=line_item` and `/organization/usage/completions?group_by=
model` with daily buckets (developers.openai.com/api/reference, organization usage, seen
2026-11-22). The text of a line item is not documented; in practice, it begins with a model's name.

Anthropic: `GET /v1/organizations/cost_report?group_by[]=description`, whose amounts are cents, and
`/usage_report/messages?group_by[]=model&bucket_width=1d` (platform.claude.com/docs/en/api/admin,
cost_report and usage_report, seen 2026-11-22).

AWS: `aws ce get-cost-and-usage --granularity DAILY --metrics UnblendedCost --group-by
Type=DIMENSION,Key=USAGE_TYPE` (AWS Cost Management, API reference, GetCostAndUsage).

All three use UTC days.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from tollgate.cli.invoices.lines import (
    InvoiceLine,
    InvoiceRefused,
    check_currency,
    read_amount,
)

_CENT: Final = Decimal("0.01")
# Message for a line without a name; only a grouped report can be compared.
_UNGROUPED: Final = "The report is not grouped by {}: request it with group_by."
_DAY_S: Final = 86_400
_ReadResult = Callable[[str, Mapping[str, Any]], InvoiceLine]


def read_json_page(page: Any, *, alone: bool) -> tuple[str, list[InvoiceLine]]:
    """Return the kind of a page, and its lines.

    Raises InvoiceRefused if the kind is unknown, or if `alone` and the report has more pages.
    """
    if isinstance(page, dict) and alone and (page.get("has_more") or page.get("NextPageToken")):
        raise InvoiceRefused("The report has more pages: give one file for each page.")
    if isinstance(page, dict) and isinstance(page.get("ResultsByTime"), list):
        return "AWS Cost Explorer", list(_cost_explorer(page["ResultsByTime"]))
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise InvoiceRefused("This is not a report of a known format.")
    kind, lines = "a report without lines", []
    for bucket in page["data"]:
        day = _bucket_day(bucket)
        for result in bucket["results"]:
            kind, read = _find_kind(result)
            lines.append(read(day, result))
    return kind, lines


def _find_kind(result: Mapping[str, Any]) -> tuple[str, _ReadResult]:
    match result:
        case {"object": "organization.costs.result"}:
            return "OpenAI costs", _line_item
        case {"object": "organization.usage.completions.result"}:
            return "OpenAI usage of completions", _completions
        case {"amount": _}:
            return "Anthropic cost report", _cost_in_cents
        case {"uncached_input_tokens": _}:
            return "Anthropic usage report", _messages
        case _:
            raise InvoiceRefused("This is not a report of a known format.")


def _line_item(day: str, result: Mapping[str, Any]) -> InvoiceLine:
    amount = result["amount"]
    check_currency(amount["currency"])
    name = _named(result, "line_item")
    return InvoiceLine(day=day, name=name, usd=read_amount(amount["value"], "amount.value"))


def _completions(day: str, result: Mapping[str, Any]) -> InvoiceLine:
    return InvoiceLine(
        day=day,
        name=_named(result, "model"),
        input_tokens=int(result["input_tokens"]),
        output_tokens=int(result["output_tokens"]),
    )


def _cost_in_cents(day: str, result: Mapping[str, Any]) -> InvoiceLine:
    check_currency(result["currency"])
    name = result.get("model") or _named(result, "description")
    return InvoiceLine(day=day, name=name, usd=read_amount(result["amount"], "amount") * _CENT)


def _messages(day: str, result: Mapping[str, Any]) -> InvoiceLine:
    written = result.get("cache_creation") or {}
    return InvoiceLine(
        day=day,
        name=_named(result, "model"),
        input_tokens=int(result["uncached_input_tokens"])
        + int(result.get("cache_read_input_tokens") or 0)
        + sum(int(count or 0) for count in written.values()),
        output_tokens=int(result["output_tokens"]),
    )


def _cost_explorer(periods: list[Any]) -> Iterator[InvoiceLine]:
    for period in periods:
        start, end = (
            datetime.fromisoformat(period["TimePeriod"][edge]) for edge in ("Start", "End")
        )
        if (end - start).total_seconds() != _DAY_S:
            raise InvoiceRefused("The report is not by day: request it with --granularity DAILY.")
        for group in period["Groups"]:
            cost = group["Metrics"]["UnblendedCost"]
            check_currency(cost["Unit"])
            yield InvoiceLine(
                day=f"{start:%Y-%m-%d}",
                name=group["Keys"][-1],
                usd=read_amount(cost["Amount"], "UnblendedCost"),
            )


def _bucket_day(bucket: Mapping[str, Any]) -> str:
    """Return the UTC day of a bucket; raise InvoiceRefused if the bucket does not cover exactly one
    UTC day.
    """
    if "start_time" in bucket:
        start, end = (
            datetime.fromtimestamp(int(bucket[edge]), UTC) for edge in ("start_time", "end_time")
        )
    else:
        start, end = (
            datetime.fromisoformat(bucket[edge]).astimezone(UTC)
            for edge in ("starting_at", "ending_at")
        )
    if (end - start).total_seconds() != _DAY_S or start.hour or start.minute:
        raise InvoiceRefused("The report is not by UTC day: request buckets of one day.")
    return f"{start:%Y-%m-%d}"


def _named(result: Mapping[str, Any], field: str) -> str:
    name = result.get(field)
    if not isinstance(name, str) or not name:
        raise InvoiceRefused(_UNGROUPED.format(field))
    return name
