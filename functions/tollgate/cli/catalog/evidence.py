"""Evidence for the prices in a routing file: the published facts, stored next to the file.

The evidence file has one line for each endpoint and publisher, so that a pull request shows the
changes. Tests read that file, without a network and without the publishers' packages.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

import genai_prices.data
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollgate.cli.catalog.facts import PublishedFacts, override_of
from tollgate.cli.catalog.price_map import NAME as PRICE_MAP
from tollgate.cli.catalog.price_map import PriceMap, map_prefix
from tollgate.cli.catalog.router_prices import ROUTER, find_routed_price, is_routed
from tollgate.cli.routing.published_prices import (
    Unpublished,
    find_published_price,
    is_published,
)
from tollgate.core.work.kinds import WorkKind
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import EndpointSection, ProviderSection

PRICES: Final = "genai-prices"
StatedFacts = Mapping[str, PublishedFacts]


class Publisher(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A publisher of prices, with the version of its data."""

    version: str
    sha256: str
    read: date
    within: str = ""
    """Another publisher whose data contain these prices; empty if they are in the publisher's own
    data.
    """
    rows: tuple[str, ...] = ()
    """Providers in the routing file whose prices this publisher publishes."""


class Evidence(Struct, frozen=True, kw_only=True):
    """The facts from each publisher about the endpoints in a routing file."""

    publishers: Mapping[str, Publisher]
    endpoints: Mapping[str, StatedFacts]
    """Facts by endpoint (provider and upstream name), then by publisher."""

    def of(self, endpoint: EndpointSection) -> StatedFacts:
        """Return the published facts about an endpoint, by publisher."""
        return self.endpoints.get(_name(endpoint), {})

    def label(self, publisher: str) -> str:
        """Return a publisher's name and version."""
        version = self.publishers[publisher]
        within = f" in {version.within}" if version.within else ""
        return f"{publisher}{within} {version.version}"

    def may_state(self, endpoint: EndpointSection) -> tuple[str, ...]:
        """Return the publishers that publish prices for the endpoint's provider."""
        rows = self.publishers.items()
        return tuple(name for name, version in rows if endpoint.provider in version.rows)

    @property
    def day(self) -> date:
        """The last day on which any publisher's data were read."""
        return max(publisher.read for publisher in self.publishers.values())


class NoEvidence(ValueError):
    """Raised for an evidence file that is missing or has another format."""


def read_evidence(path: Path) -> Evidence:
    """Return the stored evidence; raise NoEvidence if the file cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Evidence)
    except (OSError, msgspec.DecodeError) as unreadable:
        raise NoEvidence(f"{path.as_posix()} has no evidence: {unreadable}") from unreadable


def write_evidence(evidence: Evidence) -> str:
    """Return the text of an evidence file, with one line for each endpoint and publisher."""
    return "\n".join((*_lines(evidence), ""))


def gather_evidence(
    routing: Routing, today: date, price_map: PriceMap | None, earlier: Evidence | None
) -> Evidence:
    """Return the facts published today; without a price map, the facts from an earlier map are
    copied from `earlier`.
    """
    rows = {
        endpoint.provider
        for model_section in routing.models.values()
        for endpoint in model_section.endpoints
    }
    sections = {name: routing.providers[name] for name in sorted(rows)}
    publishers = {
        PRICES: _installed_prices(today, sections, is_published),
        ROUTER: replace(_installed_prices(today, sections, is_routed), within=PRICES),
    }
    if price_map is not None:
        publishers[PRICE_MAP] = Publisher(
            version=price_map.version,
            sha256=price_map.sha256,
            read=today,
            rows=tuple(name for name, row in sections.items() if map_prefix(row)),
        )
    elif earlier is not None and PRICE_MAP in earlier.publishers:
        publishers[PRICE_MAP] = earlier.publishers[PRICE_MAP]
    endpoints: dict[str, dict[str, PublishedFacts]] = {}
    for model in routing.models.values():
        for endpoint in model.endpoints:
            row = routing.providers[endpoint.provider]
            facts = _find_stated(row, endpoint.upstream, today, kind=model.kind)
            mapped = (
                price_map.find(row, endpoint.upstream, kind=model.kind)
                if price_map is not None
                else (earlier.of(endpoint).get(PRICE_MAP) if earlier is not None else None)
            )
            if mapped is not None:
                facts[PRICE_MAP] = mapped
            endpoints[_name(endpoint)] = facts
    return Evidence(publishers=publishers, endpoints=endpoints)


def _find_stated(
    row: ProviderSection, upstream: str, today: date, *, kind: WorkKind
) -> dict[str, PublishedFacts]:
    """Return the facts in genai-prices: the provider's own price, or else the router's price."""
    for publisher, find in ((PRICES, find_published_price), (ROUTER, find_routed_price)):
        try:
            published = find(row, upstream, today, kind=kind)
        except Unpublished:
            continue
        rates = {name: rate for name, rate in published.price if isinstance(rate, Decimal) and rate}
        tokens = ("input",) if not published.price.output else ("input", "output")
        facts = PublishedFacts(
            upstream=published.upstream,
            rates={name: getattr(published.price, name) for name in tokens} | rates,
            overrides=tuple(map(override_of, published.overrides)),
            context=published.context,
        )
        return {publisher: facts}
    return {}


def _installed_prices(
    today: date,
    sections: Mapping[str, ProviderSection],
    publishes: Callable[[ProviderSection], bool],
) -> Publisher:
    content = Path(genai_prices.data.__file__ or "").read_bytes()
    return Publisher(
        version=version(PRICES),
        sha256=sha256(content).hexdigest(),
        read=today,
        rows=tuple(name for name, row in sections.items() if publishes(row)),
    )


def _name(endpoint: EndpointSection) -> str:
    return f"{endpoint.provider} {endpoint.upstream}"


def _lines(evidence: Evidence) -> Iterator[str]:
    yield '{"publishers":{'
    yield from _members(evidence.publishers)
    yield '},"endpoints":{'
    names = sorted(evidence.endpoints)
    for name in names:
        yield f"{_json(name)}:{{"
        yield from _members(evidence.endpoints[name])
        yield "}" if name == names[-1] else "},"
    yield "}}"


def _members(section: Mapping[str, Struct]) -> Iterator[str]:
    for name in (names := sorted(section)):
        yield f"{_json(name)}:{_json(section[name])}{'' if name == names[-1] else ','}"


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()
