"""`tollgate spend`: the cost of a month, grouped by model, key, day or label."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.tables import OutputStyle, exact, show
from tollgate.core.clock import SystemClock

# Keys are told apart by their ids: a name may change, and keys made long ago may share one.
_FIELDS: Final = {"model": "model", "provider": "provider_name", "key": "key_id", "day": "date"}
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
    rows = group_activity(reply["data"], names)
    ids = ("key_id",) if "key" in names else ()
    show(rows, (*names, "usd", *_FIGURES, *ids), style)
    if style == "auto":
        for name in names:
            if name not in _FIELDS and rows and all(row[name] == _NONE for row in rows):
                click.echo(f"No used key has a label {name}.", err=True)
        click.echo(f"{since:%Y-%m}: ${exact(reply['total'])}", err=True)
    if reply["partial_days"]:
        days = ", ".join(reply["partial_days"])
        click.echo(f"Incomplete: {days}; try again once the day is closed.", err=True)


def group_activity(activity: Sequence[Any], names: Sequence[str]) -> list[dict[str, str]]:
    """Return the sums of activity, as the api shows it, over each combination of `names`.

    The dearest comes first.
    """
    sums: dict[tuple[str, ...], dict[str, Decimal]] = {}
    for row in activity:
        place = tuple(
            str((row[_FIELDS[name]] if name in _FIELDS else row["labels"].get(name)) or _NONE)
            for name in names
        )
        figures = sums.setdefault(place, dict.fromkeys((*_FIGURES, "usage"), Decimal(0)))
        for figure in figures:
            figures[figure] += row[figure]
    key_names = {row["key_id"]: row["key_name"] for row in activity}
    ordered = sorted(sums.items(), key=lambda entry: (-entry[1]["usage"], entry[0]))
    return [
        {
            **dict(zip(names, place, strict=True)),
            **{figure: str(figures[figure]) for figure in _FIGURES},
            "usd": exact(figures["usage"]),
            **_name_key(dict(zip(names, place, strict=True)).get("key"), key_names),
        }
        for place, figures in ordered
    ]


def _name_key(key_id: str | None, names: Mapping[str, str]) -> dict[str, str]:
    """Return the cells that name a key: the latest name, with the id if other keys share it."""
    if key_id is None:
        return {}
    name = names.get(key_id) or key_id
    shared = sum(other == name for other in names.values()) > 1
    return {"key": f"{name} ({key_id})" if shared else name, "key_id": key_id}


def _month(text: str) -> tuple[date, date]:
    if not _MONTH.fullmatch(text):
        raise click.UsageError(f"--month: write {text!r} as 2026-11.")
    year, month = int(text[:4]), int(text[5:])
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
