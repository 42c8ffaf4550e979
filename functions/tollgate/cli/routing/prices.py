"""`tollgate prices`: compare the prices of a routing file with the published ones."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from msgspec.structs import asdict

from tollgate.cli.options import routing_file
from tollgate.cli.routing.price_report import (
    PricedEndpoint,
    count_differing,
    list_findings,
    render_report,
)
from tollgate.cli.tables import as_json
from tollgate.core.clock import SystemClock
from tollgate.routing.file.load import load
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.schema import Routing
from tollgate.settings import Settings


@click.group()
def prices() -> None:
    """Compare the prices of a routing file."""


@prices.command()
@routing_file
@click.option("--provider", help="Only this provider of the file.")
@click.option("--model", "slug", help="Only this model.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def diff(file: Path, provider: str | None, slug: str | None, is_json: bool) -> None:
    """List where FILE differs from genai-prices: exit status 1 if it does. Changes nothing.

    A price that is not published is listed as unknown, and is no difference.
    """
    today = datetime.fromtimestamp(SystemClock().now_s(), UTC).date()
    try:
        routing = load(file, variables=Settings().variables)
    except InvalidRouting as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid
    offers = list(_offers(routing, provider, slug))
    if not offers:
        raise click.UsageError("no endpoint of the file is of that model and provider")
    found = list(list_findings(routing, offers, today))
    if is_json:
        lines = as_json([_stated(asdict(finding)) for finding in found])
    else:
        lines = "\n".join(render_report(found, len(offers)))
    click.echo(lines)
    if count_differing(found):
        raise SystemExit(1)


def _offers(routing: Routing, provider: str | None, slug: str | None) -> Iterator[PricedEndpoint]:
    for name, model in routing.models.items():
        for endpoint in model.endpoints:
            if slug in (None, name) and provider in (None, endpoint.provider):
                yield name, endpoint


def _stated(finding: dict[str, str]) -> dict[str, str]:
    return {field: value for field, value in finding.items() if value}
