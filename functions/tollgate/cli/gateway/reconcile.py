"""`tollgate reconcile`: compare a provider's invoice with the gateway's records."""

import sys
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api, Refused
from tollgate.cli.invoices.comparison import BilledModel, Compared, compare
from tollgate.cli.invoices.files import read_invoices
from tollgate.cli.invoices.lines import InvoiceRefused
from tollgate.cli.invoices.teams import TeamCompared, compare_teams
from tollgate.cli.options import routing_option
from tollgate.cli.tables import OutputStyle, TableRow, exact, show
from tollgate.routing.file.load import load
from tollgate.routing.file.problems import InvalidRouting

_COLUMNS: Final = (
    "day",
    "model",
    "invoiced",
    "recorded",
    "difference",
    "percent",
    "invoiced_tokens",
    "recorded_tokens",
    "failed",
)
_TEAM_COLUMNS: Final = (
    "team",
    "workspace",
    "invoiced",
    "recorded",
    "difference",
    "percent",
    "failed",
)
_DAYS_MAX: Final = 400
_DAYS_AT_ONCE: Final = 4


@click.command(epilog="Example: tollgate reconcile costs.json --provider openai --tolerance 0.5")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE...",
)
@click.option(
    "--provider",
    "providers",
    multiple=True,
    required=True,
    metavar="NAME",
    help="Provider in routing.yaml that sent the invoice; may be repeated.",
)
@routing_option("--routing", "Routing file with the provider's names for billed models.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Difference to ignore, in percent.",
)
@click.option(
    "--tolerance-usd",
    type=click.FloatRange(0),
    default=0.01,
    show_default=True,
    metavar="USD",
    help="Difference to ignore, for one model on one day.",
)
@click.option(
    "--by",
    type=click.Choice(("model", "team")),
    default="model",
    show_default=True,
    help="Compare amounts for each model and day, or for each team. AWS's bill names teams if"
    " Bedrock is called in role sessions.",
)
@click.option("--all", "shows_all", is_flag=True, help="Also show rows that agree.")
@calls_gateway
def reconcile(
    api: Api,
    style: OutputStyle,
    *,
    files: tuple[Path, ...],
    providers: tuple[str, ...],
    routing: Path,
    tolerance: float,
    tolerance_usd: float,
    by: Literal["model", "team"],
    shows_all: bool,
) -> None:
    """List differences between a provider's invoice and the records; exit with 1 if there are any.

    FILE is a report from the cost API of OpenAI, Anthropic or AWS as JSON, or as CSV AWS's Cost and
    Usage Report 2.0, Azure's cost details, or FOCUS, which AWS, Google and Azure export. Days are
    UTC. `--by team` needs AWS's Cost and Usage Report 2.0 with IAM principals. A key from the
    operator's workspace compares the records of all workspaces; any other key compares those of its
    own workspace.
    """
    try:
        invoices = read_invoices(files, by_principal=by == "team")
    except InvoiceRefused as refused:
        raise click.ClickException(str(refused)) from refused
    invoice = invoices.lines
    if not invoice:
        raise click.ClickException("The invoice has no lines.")
    first, last = invoice[0].day, max(line.day for line in invoice)
    models = _billed_models(routing, providers)
    bounds = (Decimal(str(tolerance)), Decimal(str(tolerance_usd)))
    if by == "team":
        activity = _recorded(api, providers, first, last, by=("team",))
        teams = compare_teams(invoice, activity)
        differing_teams = [team for team in teams if team.differs(*bounds)]
        shown = [team for team in teams if shows_all or team in differing_teams or team.is_rest]
        _show([_team_row(team) for team in shown], _TEAM_COLUMNS, style)
        summary = _summary_of_teams(teams, differing_teams, first, last)
        differences = len(differing_teams)
    else:
        activity = _recorded(api, providers, first, last, by=("day", "model"))
        compared = compare(invoice, (row for _, row in activity), models)
        differing = [row for row in compared if row.differs(*bounds)]
        _show([_row(row) for row in (compared if shows_all else differing)], _COLUMNS, style)
        summary = _summary(compared, differing, first, last)
        differences = len(differing)
    if style == "auto":
        for path, kind in invoices.kinds.items():
            click.echo(f"{path} is read as: {kind}", err=True)
        click.echo(summary, err=True)
    if differences:
        raise click.exceptions.Exit(1)


def _show(rows: Sequence[TableRow], columns: Sequence[str], style: OutputStyle) -> None:
    """Show rows; on a terminal, print no empty table, because the summary says that none differ."""
    if rows or style != "auto" or not sys.stdout.isatty():
        show(rows, columns, style)


def _recorded(
    api: Api, providers: Sequence[str], first: str, last: str, *, by: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    """Yield the activity of all workspaces that the key may read, as pairs of workspace and row,
    for these days and providers.
    """
    end = date.fromisoformat(last) + timedelta(days=1)
    if (end - date.fromisoformat(first)).days > _DAYS_MAX:
        raise click.ClickException(f"The invoice has more than {_DAYS_MAX} days.")
    try:
        paths = {
            workspace["id"]: f"/workspaces/{workspace['id']}/activity"
            for workspace in api.pages("/workspaces", {}, "cursor")
        }
    except Refused as refused:
        if refused.status != 403:
            raise
        click.echo("Only the records of this key's workspace are compared.", err=True)
        # Session names contain the workspace's id. It is fetched only if needed, because a key that
        # may read activity may lack the right to read the workspace.
        own = api.get("/workspace")["data"]["id"] if "team" in by else ""
        paths = {own: "/activity"}
    for workspace_id, path in paths.items():
        for provider in providers:
            for since, until in _windows(date.fromisoformat(first), end):
                query = {
                    "since": f"{since}T00:00:00Z",
                    "until": f"{until}T00:00:00Z",
                    "provider": provider,
                    "by": by,
                }
                for page in api.read_pages(path, query, "cursor"):
                    # A window's days and models fit on one page, so this is printed only once.
                    for name in ("partial_days", "missing_days"):
                        if page[name]:
                            click.echo(f"{path}: {name}: {', '.join(page[name])}", err=True)
                    yield from ((workspace_id, row) for row in page["data"])


def _windows(start: date, end: date) -> Iterator[tuple[date, date]]:
    """Yield subranges of the days, each short enough for one request."""
    while start < end:
        until = min(start + timedelta(days=_DAYS_AT_ONCE), end)
        yield start, until
        start = until


def _billed_models(routing: Path, providers: Sequence[str]) -> list[BilledModel]:
    """Return the models of these providers; raise ClickException for an unknown provider."""
    try:
        # Files for `tollgate dev` are accepted too, since nothing is sent to their addresses.
        loaded = load(routing, dev=True)
    except InvalidRouting as invalid:
        raise click.ClickException(str(invalid)) from invalid
    for provider in providers:
        if provider not in loaded.providers:
            raise click.ClickException(f"{routing} has no provider {provider}.")
    return [
        BilledModel(slug=slug, upstream=endpoint.upstream, billed_as=endpoint.billed_as)
        for slug, model in loaded.models.items()
        for endpoint in model.endpoints
        if endpoint.provider in providers
    ]


def _team_row(row: TeamCompared) -> dict[str, str]:
    difference = row.invoiced_usd - row.recorded_usd
    return {
        "team": row.team if row.is_known else f"? {row.team}",
        "workspace": row.workspace,
        "invoiced": exact(row.invoiced_usd),
        "recorded": "" if row.is_rest else exact(row.recorded_usd),
        "difference": "" if row.is_rest else exact(difference),
        "percent": _percent(difference, row.recorded_usd),
        "failed": "" if row.is_rest else str(row.failed),
    }


def _percent(difference: Decimal | None, recorded: Decimal) -> str:
    return f"{difference * 100 / recorded:+.2f}" if difference and recorded else ""


def _row(row: Compared) -> dict[str, str]:
    difference = None if row.invoiced_usd is None else row.invoiced_usd - row.recorded_usd
    return {
        "day": row.day,
        "model": row.model if row.is_known else f"? {row.model}",
        "invoiced": "" if row.invoiced_usd is None else exact(row.invoiced_usd),
        "recorded": exact(row.recorded_usd),
        "difference": "" if difference is None else exact(difference),
        "percent": _percent(difference, row.recorded_usd),
        "invoiced_tokens": "" if row.invoiced_tokens is None else str(row.invoiced_tokens),
        "recorded_tokens": str(row.recorded_tokens),
        "failed": str(row.failed),
    }


def _summary_of_teams(
    teams: Sequence[TeamCompared], differing: Sequence[TeamCompared], first: str, last: str
) -> str:
    named = [team for team in teams if not team.is_rest]
    invoiced = sum((team.invoiced_usd for team in named), Decimal(0))
    recorded = sum((team.recorded_usd for team in named), Decimal(0))
    totals = f"invoiced ${exact(invoiced)}, recorded ${exact(recorded)}"
    lines = [f"{first} to {last} UTC: {totals}; {len(differing)} of {len(named)} teams differ."]
    if any(not team.is_known for team in named):
        lines.append("Rows with ? are sessions without recorded requests on these days.")
    if not any(team.invoiced_usd for team in named):
        lines.append("AWS's bill names no recorded team: is Bedrock called in role sessions?")
    return "\n".join(lines)


def _summary(
    compared: Sequence[Compared], differing: Sequence[Compared], first: str, last: str
) -> str:
    invoiced = sum((row.invoiced_usd or Decimal(0) for row in compared), Decimal(0))
    recorded = sum((row.recorded_usd for row in compared), Decimal(0))
    totals = f"invoiced ${exact(invoiced)}, recorded ${exact(recorded)}"
    lines = [f"{first} to {last} UTC: {totals}; {len(differing)} of {len(compared)} differ."]
    if any(not row.is_known for row in differing):
        lines.append("Names with ? match no model: list them under `billed_as` of an endpoint.")
    if any(row.failed for row in differing):
        lines.append(
            "Failed requests are free for callers, but the provider may have billed their attempts."
        )
    return "\n".join(lines)
