"""`tollgate prices`: how the prices of a routing file compare with those that are published."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

import click

from tollgate.cli.options import routing_file
from tollgate.cli.price_differences import differences
from tollgate.cli.published_prices import SOURCE, Unpublished, published
from tollgate.cli.tables import as_json, exact
from tollgate.core.clock import SystemClock
from tollgate.routing.load import load
from tollgate.routing.price import PriceSchedule
from tollgate.routing.problems import InvalidRouting
from tollgate.routing.schema import EndpointSection, Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line about one endpoint.

    It `differs` in a class, nothing is known of it (`unknown`), or units of the published price are
    `unstatable` in a routing file.
    """

    model: str
    provider: str
    kind: Literal["differs", "unknown", "unstatable"]
    rate: str = ""
    ours: str = ""
    theirs: str = ""
    when: str = ""
    stated: str
    published: str


@click.group()
def prices() -> None:
    """Compare the prices of a routing file."""


@prices.command()
@routing_file
@click.option("--provider", help="Only this provider of the file.")
@click.option("--model", "slug", help="Only this model.")
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON.")
def diff(file: Path, provider: str | None, slug: str | None, as_json_text: bool) -> None:
    """Say where FILE differs from genai-prices: exit status 1 if it does. Changes nothing.

    Whose price is not published is listed as unknown, and is no difference.
    """
    today = datetime.fromtimestamp(SystemClock().now_s(), UTC).date()
    try:
        routing = load(file)
    except InvalidRouting as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid
    offers = list(_offers(routing, provider, slug))
    if not offers:
        raise click.ClickException("no endpoint of the file is of that model and provider")
    findings = [finding for offer in offers for finding in _compared(routing, *offer, today)]
    differing = {(it.model, it.provider) for it in findings if it.kind == "differs"}
    if as_json_text:
        click.echo(as_json([_as_object(finding) for finding in findings]))
    else:
        click.echo("\n".join(_as_text(findings, compared=len(offers), differing=len(differing))))
    if differing:
        raise SystemExit(1)


def _offers(
    routing: Routing, provider: str | None, slug: str | None
) -> Iterator[tuple[str, EndpointSection]]:
    for name, model in routing.models.items():
        for endpoint in model.endpoints:
            if slug in (None, name) and provider in (None, endpoint.provider):
                yield name, endpoint


def _compared(
    routing: Routing, slug: str, endpoint: EndpointSection, today: date
) -> Iterator[Finding]:
    stated = f"{endpoint.price.source}, {endpoint.price.checked}"
    try:
        theirs = published(routing.providers[endpoint.provider], endpoint.upstream, today)
    except Unpublished as unpublished:
        yield Finding(
            model=slug,
            provider=endpoint.provider,
            kind="unknown",
            stated=stated,
            published=str(unpublished),
        )
        return
    schedule = PriceSchedule(
        base=theirs.price.price,
        overrides=tuple(section.override for section in theirs.overrides),
    )
    for found in differences(endpoint.schedule, schedule, today):
        yield Finding(
            model=slug,
            provider=endpoint.provider,
            kind="differs",
            rate=found.rate,
            ours=exact(found.ours),
            theirs=exact(found.theirs),
            when=found.when,
            stated=stated,
            published=f"{theirs.upstream} in {SOURCE}",
        )
    for unit in theirs.unstatable:
        yield Finding(
            model=slug,
            provider=endpoint.provider,
            kind="unstatable",
            rate=unit,
            stated=stated,
            published=f"{theirs.upstream} in {SOURCE}",
        )


def _as_text(findings: list[Finding], *, compared: int, differing: int) -> Iterator[str]:
    unstatable = Counter(it.rate for it in findings if it.kind == "unstatable")
    unknown = sum(it.kind == "unknown" for it in findings)
    for it in findings:
        place = f"{it.model} @ {it.provider}"
        if it.kind == "differs":
            yield f"~ {place}: {it.rate} {it.ours}, published {it.theirs}, {it.when}"
            yield f"    ours: {it.stated}; theirs: {it.published}"
        elif it.kind == "unknown":
            yield f"? {place}: {it.published}"
            yield f"    ours: {it.stated}"
    for unit, models in sorted(unstatable.items()):
        yield f"? {unit}: published for {models}, but a routing file has no rate for it"
    yield f"{compared} prices compared with {SOURCE}: {differing} differ, {unknown} unknown"


def _as_object(finding: Finding) -> dict[str, str]:
    fields = ("model", "provider", "kind", "rate", "ours", "theirs", "when", "stated", "published")
    return {field: value for field in fields if (value := getattr(finding, field))}
