"""`tollgate spend`: costs in a range of days, grouped by model, provider, key, day or label."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from http import HTTPStatus
from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.focus import COLUMNS, focus_rows
from tollgate.cli.gateway.forecast import (
    FORECAST_DAYS,
    Forecast,
    explain_forecast,
    forecast_month,
)
from tollgate.cli.gateway.http import Api, Query, Refused
from tollgate.cli.options import month_option, utc_today
from tollgate.cli.tables import OutputStyle, exact, show

# Fields of activity rows; keys are grouped by id, because names can change or repeat.
_FIELDS: Final = {"model": "model", "provider": "provider_name", "key": "key_id", "day": "date"}
_FIGURES: Final = ("requests", "prompt_tokens", "completion_tokens")
# Shown instead of a missing label, and instead of the model if no model served the request.
_NONE: Final = "-"
_DAYS_AGO: Final = re.compile(r"([0-9]{1,4})d", re.ASCII)
_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])", re.ASCII)


@click.command(epilog="Example: tollgate spend --by team,model --month last")
@click.option(
    "--by",
    default="model",
    show_default=True,
    metavar="WHAT[,WHAT]",
    help="model, provider, key, day, or the name of a label such as team.",
)
@month_option
@click.option(
    "--since", metavar="DAY", help="First UTC day, such as 2026-11-01, or 30d for 30 days ago."
)
@click.option("--until", metavar="DAY", help="UTC day after the last one; tomorrow by default.")
@click.option(
    "--focus", is_flag=True, help="Print FOCUS 1.2 as CSV, by day, model, provider and key."
)
@calls_gateway
def spend(
    api: Api,
    style: OutputStyle,
    *,
    focus: bool,
    by: str,
    month: str | None,
    since: str | None,
    until: str | None,
) -> None:
    """Show the costs of a month or a range of days, highest first.

    The running month ends with a forecast of its cost, once seven days are closed.
    """
    names = [name for part in by.split(",") if (name := part.strip())]
    if not names:
        raise click.UsageError("--by: give names to group by, such as team,model.")
    today = utc_today()
    days = _days(today, month, since, until)
    query = {"since": f"{days[0]}T00:00:00Z", "until": f"{days[1]}T00:00:00Z", "by": names}
    if focus:
        _show_focus(api, {**query, "by": None}, days)
        return
    # The totals of the first page cover all pages.
    reply, *later_pages = api.read_pages("/activity", query, "cursor")
    refunds = _refunds(api, *days)
    # Old gateways ignore `by` and return ungrouped rows, which are grouped here.
    rows = group_activity([row for page in (reply, *later_pages) for row in page["data"]], names)
    ids = ("key_id",) if "key" in names else ()
    summary = {
        "since": f"{days[0]}",
        "until": f"{days[1]}",
        **{name: content for name, content in reply.items() if name != "next_cursor"},
        "data": rows,
        "refunds": refunds,
        "net": None if refunds is None else Decimal(reply["total"]) - refunds,
    }
    forecast = _forecast(api, Decimal(reply["total"]), days, today)
    if forecast is not None:
        summary["forecast"] = {"low": forecast.low, "high": forecast.high}
    show(rows, (*names, "usd", *_FIGURES, *ids), style, amounts=("usd",), data=summary)
    if style == "auto":
        for name in names:
            if name not in _FIELDS and rows and all(row[name] == _NONE for row in rows):
                click.echo(f"No key with usage has a label {name}.", err=True)
        totals = f"{days[0]} to {days[1] - timedelta(days=1)}: ${exact(reply['total'])}"
        if refunds is not None:
            totals += f", refunds in these days ${exact(refunds)}, net ${exact(summary['net'])}"
        click.echo(totals, err=True)
        if forecast is not None:
            click.echo(explain_forecast(forecast, today), err=True)
        for line in explain_freshness(reply, _find_birth(api, reply, today)):
            click.echo(line, err=True)


def _show_focus(api: Api, query: Query, days: tuple[date, date]) -> None:
    activity = api.pages("/activity", query, "cursor")
    refunds = list_refunds(api.pages("/credits/ledger", {}, "cursor"), *days)
    workspace_id = api.get("/workspace")["data"]["id"]
    show(focus_rows(workspace_id, activity, refunds), COLUMNS, "csv")


def _forecast(api: Api, total: Decimal, days: tuple[date, date], today: date) -> Forecast | None:
    """Return the forecast if the days are the current month and a forecast is possible."""
    if days != _month(f"{today:%Y-%m}"):
        return None
    # Yesterday may not be closed yet.
    since = today - timedelta(days=FORECAST_DAYS + 1)
    query = {"since": f"{since}T00:00:00Z", "until": f"{days[1]}T00:00:00Z", "by": ["day"]}
    pages = list(api.read_pages("/activity", query, "cursor"))
    rows = group_activity([row for page in pages for row in page["data"]], ["day"])
    costs = {date.fromisoformat(row["day"]): Decimal(row["usd"]) for row in rows}
    closed = {date.fromisoformat(day) for day in pages[0]["closed_days"]}
    return forecast_month(total, costs, closed, today)


def _refunds(api: Api, since: date, until: date) -> Decimal | None:
    """Return the refunds in a range of days; None if the caller may not read credit."""
    try:
        return add_refunds(api.pages("/credits/ledger", {}, "cursor"), since, until)
    except Refused as refused:
        if refused.status != HTTPStatus.FORBIDDEN:
            raise
        return None


def _find_birth(api: Api, activity: Any, today: date) -> date:
    """Return the day on which the workspace was created; return the first of all days if no day
    before yesterday is open, or if the caller may not read the workspace.
    """
    yesterday = f"{today - timedelta(days=1)}"
    if all(day >= yesterday for day in (*activity["live_days"], *activity["missing_days"])):
        return date.min
    try:
        created_at = api.get("/workspace")["data"]["created_at"]
    except Refused as refused:
        if refused.status != HTTPStatus.FORBIDDEN:
            raise
        return date.min
    return datetime.fromisoformat(created_at).date()


def explain_freshness(activity: Any, born: date = date.min) -> Iterator[str]:
    """Yield one line each for the final, live, incomplete and unknown days, and one for open days
    before the workspace was created.
    """
    live, missing = (
        [day for day in activity[name] if day >= f"{born}"]
        for name in ("live_days", "missing_days")
    )
    if len(live) + len(missing) < len(activity["live_days"]) + len(activity["missing_days"]):
        yield f"No usage before {born}, when the workspace was created."
    if activity["closed_days"]:
        yield f"Final: {_ranges(activity['closed_days'])}."
    if live:
        last = activity["last_record_at"]
        latest = f"last record {last}" if last else "no records"
        yield f"Counted live, at most a minute ago: {_ranges(live)}; {latest}."
    if activity["partial_days"]:
        yield (
            f"Incomplete: {_ranges(activity['partial_days'])}; try again once the day is closed."
        )
    if missing:
        yield (
            f"Unknown: {_ranges(missing)}; no sums are stored for these days, "
            "and their records have expired."
        )


def _ranges(days: Sequence[str]) -> str:
    """Return sorted days as ranges, such as `2026-11-01 to 2026-11-20, 2026-11-22`."""
    ranges: list[tuple[date, date]] = []
    for day in map(date.fromisoformat, days):
        if ranges and day - ranges[-1][1] == timedelta(days=1):
            ranges[-1] = (ranges[-1][0], day)
        else:
            ranges.append((day, day))
    return ", ".join(
        f"{first}" if first == last else f"{first} to {last}" for first, last in ranges
    )


def list_refunds(entries: Iterable[Any], since: date, until: date) -> Iterator[Any]:
    """Yield the refunds entered on these days; ledger entries come latest first."""
    for entry in entries:
        day = datetime.fromisoformat(entry["created_at"]).date()
        # Entries are ordered by write time, which is slightly after `created_at`: a day of margin
        # makes sure that no entry is missed.
        if day < since - timedelta(days=1):
            break
        if entry["type"] == "refund" and since <= day < until:
            yield entry


def add_refunds(entries: Iterable[Any], since: date, until: date) -> Decimal:
    """Return the sum of the refunds entered on these days; ledger entries come latest first."""
    refunds = list_refunds(entries, since, until)
    return sum((Decimal(entry["amount"]) for entry in refunds), Decimal(0))


def group_activity(activity: Sequence[Any], names: Sequence[str]) -> list[dict[str, str]]:
    """Return the sums of activity rows for each combination of `names`, highest cost first."""
    sums: dict[tuple[str, ...], dict[str, Decimal]] = {}
    for row in activity:
        group = tuple(
            str((row[_FIELDS[name]] if name in _FIELDS else row["labels"].get(name)) or _NONE)
            for name in names
        )
        figures = sums.setdefault(group, dict.fromkeys((*_FIGURES, "usage"), Decimal(0)))
        for figure in figures:
            figures[figure] += row[figure]
    key_names = {row["key_id"]: row["key_name"] for row in activity}
    ordered = sorted(sums.items(), key=lambda entry: (-entry[1]["usage"], entry[0]))
    return [
        {
            **dict(zip(names, group, strict=True)),
            **{figure: str(figures[figure]) for figure in _FIGURES},
            "usd": exact(figures["usage"]),
            **_name_key(dict(zip(names, group, strict=True)).get("key"), key_names),
        }
        for group, figures in ordered
    ]


def _name_key(key_id: str | None, names: Mapping[str, str]) -> dict[str, str]:
    """Return the cells for a key: its latest name, with the id if several keys share the name."""
    if key_id is None:
        return {}
    name = names.get(key_id) or key_id
    shared = sum(other == name for other in names.values()) > 1
    return {"key": f"{name} ({key_id})" if shared else name, "key_id": key_id}


def _days(
    today: date, month: str | None, since: str | None, until: str | None
) -> tuple[date, date]:
    """Return the first day and the day after the last; raise UsageError for invalid options."""
    if since is None and until is None:
        first, end = _month(month or f"{today:%Y-%m}")
        if first > today:
            raise click.UsageError(f"--month: {first:%Y-%m} has not begun; it is {today} in UTC.")
        return first, end
    if month is not None or since is None:
        raise click.UsageError("Give --month, or --since with or without --until.")
    first = _day("--since", since, today)
    end = today + timedelta(days=1) if until is None else _day("--until", until, today)
    if first >= end:
        raise click.UsageError(f"--since: {first} is not before {end}.")
    return first, end


def _day(option: str, text: str, today: date) -> date:
    if ago := _DAYS_AGO.fullmatch(text):
        return today - timedelta(days=int(ago[1]))
    try:
        return date.fromisoformat(text)
    except ValueError as wrong:
        raise click.UsageError(f"{option}: write {text!r} as 2026-11-01 or 30d.") from wrong


def _month(text: str) -> tuple[date, date]:
    if not _MONTH.fullmatch(text):
        raise click.UsageError(f"--month: write {text!r} as 2026-11.")
    year, month = int(text[:4]), int(text[5:])
    try:
        return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
    except ValueError as wrong:
        raise click.UsageError(f"--month: {text} is not a month of the calendar.") from wrong
