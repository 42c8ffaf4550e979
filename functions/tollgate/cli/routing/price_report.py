"""Report how the prices of a routing file differ from the published ones."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Literal, TypeAlias

from msgspec import Struct

from tollgate.cli.routing.price_differences import compare_prices
from tollgate.cli.routing.published_prices import SOURCE, Unpublished, find_published_price
from tollgate.cli.tables import exact
from tollgate.routing.price import PriceSchedule
from tollgate.routing.schema import EndpointSection, Routing

PricedEndpoint: TypeAlias = tuple[str, EndpointSection]


class PriceFinding(Struct, frozen=True, kw_only=True):
    """One finding about the price of one endpoint."""

    model: str
    provider: str
    # A class differs; no price is published; or a routing file has no rate for a published unit.
    kind: Literal["differs", "unknown", "unstatable"]
    rate: str = ""
    ours: str = ""
    theirs: str = ""
    when: str = ""
    stated: str  # source and day of the price in the file
    published: str  # source and day of the published price, or the reason for which there is none


def list_findings(
    routing: Routing, offers: Iterable[PricedEndpoint], today: date
) -> Iterator[PriceFinding]:
    """Yield the differences from `today` on, and the prices that cannot be compared."""
    for slug, endpoint in offers:
        stated = f"{endpoint.price.source}, {endpoint.price.checked}"
        try:
            theirs = find_published_price(
                routing.providers[endpoint.provider],
                endpoint.upstream,
                today,
                kind=routing.models[slug].kind,
            )
        except Unpublished as unpublished:
            yield PriceFinding(
                model=slug,
                provider=endpoint.provider,
                kind="unknown",
                stated=stated,
                published=str(unpublished),
            )
            continue
        source = f"{theirs.upstream} in {SOURCE}, {theirs.price.checked}"
        schedule = PriceSchedule(
            base=theirs.price.price,
            overrides=tuple(section.override for section in theirs.overrides),
        )
        for found in compare_prices(endpoint.schedule, schedule, today):
            yield PriceFinding(
                model=slug,
                provider=endpoint.provider,
                kind="differs",
                rate=found.rate,
                ours=exact(found.ours),
                theirs=exact(found.theirs),
                when=found.when,
                stated=stated,
                published=source,
            )
        for unit in theirs.unstatable:
            yield PriceFinding(
                model=slug,
                provider=endpoint.provider,
                kind="unstatable",
                rate=unit,
                stated=stated,
                published=source,
            )


def render_report(found: Sequence[PriceFinding], compared: int) -> Iterator[str]:
    """Yield the findings for people by endpoint, and their number of `compared` prices."""
    place = ""
    for it in found:
        before, place = place, f"{it.model} @ {it.provider}"
        match it.kind:
            case "differs":
                if place != before:
                    yield f"~ {place} (ours: {it.stated}; theirs: {it.published})"
                yield f"    {it.rate} {it.ours}, published {it.theirs}, {it.when}"
            case "unknown":
                yield f"? {place}: {it.published} (ours: {it.stated})"
            case "unstatable":
                pass
    unstatable = Counter(it.rate for it in found if it.kind == "unstatable")
    for unit, prices in sorted(unstatable.items()):
        yield f"? {unit}: published for {prices}, but a routing file has no rate for it"
    unknown = sum(it.kind == "unknown" for it in found)
    differ = count_differing(found)
    yield f"{compared} prices compared with {SOURCE}: {differ} differ, {unknown} unknown"


def count_differing(found: Iterable[PriceFinding]) -> int:
    """Count the endpoints whose prices differ."""
    return len({(it.model, it.provider) for it in found if it.kind == "differs"})
