"""`tollgate spend`: the cost of a month, grouped by model, key, day or label."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.tables import OutputStyle, exact, show
from tollgate.core.clock import SystemClock

_FIELDS: Final = {"model": "model", "provider": "provider_name", "key": "key_name", "day": "date"}
_FIGURES: Final = ("requests", "prompt_tokens", "completion_tokens")
# Stands for a missing label, and for the model of a request that no model served.
_NONE: Final = "-"
_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])", re.ASCII)


@click.command()
@click.option(
    "--by",
    default="model",
    show_default=True,
    metavar="WHAT[,WHAT]",
    help="model, provider, key, day, or the name of a label such as team.",
)
@click.option("--month", metavar="YYYY-MM", help="The UTC month; the current one by default.")
@calls_gateway
def spend(api: Api, style: OutputStyle, *, by: str, month: str | None) -> None:
    """Show the cost of a month, dearest first."""
    names = [name for part in by.split(",") if (name := part.strip())]
    if not names:
        raise click.UsageError("--by: give names to group by, such as team,model.")
    today = datetime.fromtimestamp(SystemClock().now_s(), UTC).date()
    since, until = _month(month or f"{today:%Y-%m}")
    if since > today:
        raise click.UsageError(f"--month: {since:%Y-%m} has not begun; it is {today} in UTC.")
    reply = api.get("/activity", {"since": f"{since}T00:00:00Z", "until": f"{until}T00:00:00Z"})
    rows = _grouped(reply["data"], names)
    show(rows, (*names, "usd", *_FIGURES), style)
    if style == "auto":
        for name in names:
            if name not in _FIELDS and rows and all(row[name] == _NONE for row in rows):
                click.echo(f"No used key has a label {name}.", err=True)
        click.echo(f"{since:%Y-%m}: ${exact(reply['total'])}", err=True)
    if reply["partial_days"]:
        days = ", ".join(reply["partial_days"])
        click.echo(f"Incomplete: {days}; try again once the day is closed.", err=True)


def _grouped(activity: Sequence[Any], names: Sequence[str]) -> list[dict[str, str]]:
    sums: dict[tuple[str, ...], dict[str, Decimal]] = {}
    for row in activity:
        place = tuple(
            str((row[_FIELDS[name]] if name in _FIELDS else row["labels"].get(name)) or _NONE)
            for name in names
        )
        figures = sums.setdefault(place, dict.fromkeys((*_FIGURES, "usage"), Decimal(0)))
        for figure in figures:
            figures[figure] += row[figure]
    ordered = sorted(sums.items(), key=lambda entry: (-entry[1]["usage"], entry[0]))
    return [
        {
            **dict(zip(names, place, strict=True)),
            **{figure: str(figures[figure]) for figure in _FIGURES},
            "usd": exact(figures["usage"]),
        }
        for place, figures in ordered
    ]


def _month(text: str) -> tuple[date, date]:
    if not _MONTH.fullmatch(text):
        raise click.UsageError(f"--month: write {text!r} as 2026-11.")
    year, month = int(text[:4]), int(text[5:])
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
