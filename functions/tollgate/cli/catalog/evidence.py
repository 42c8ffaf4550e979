"""Evidence of the prices of a routing file: what the publishers state, kept beside the file.

A line for each endpoint and publisher, so that a pull request shows what changed; tests read it
without a network and without the publishers' packages.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

import genai_prices.data
import msgspec
from msgspec import Struct

from tollgate.cli.catalog.facts import PublishedFacts, override_of
from tollgate.cli.catalog.price_map import NAME as PRICE_MAP
from tollgate.cli.catalog.price_map import PriceMap
from tollgate.cli.routing.published_prices import Unpublished, find_published_price
from tollgate.routing.schema import EndpointSection, Routing

PRICES: Final = "genai-prices"
StatedFacts = Mapping[str, PublishedFacts]


class Publisher(Struct, frozen=True, kw_only=True):
    """One version of a publisher's data."""

    version: str
    sha256: str
    read: date


class Evidence(Struct, frozen=True, kw_only=True):
    """The facts that each publisher states about the endpoints of a file."""

    publishers: Mapping[str, Publisher]
    endpoints: Mapping[str, StatedFacts]
    """By provider and upstream name, then by publisher; a publisher without it is left out."""

    def of(self, endpoint: EndpointSection) -> StatedFacts:
        """Return what the publishers state about an endpoint."""
        return self.endpoints.get(_name(endpoint), {})

    def label(self, publisher: str) -> str:
        """Name a publisher with its version."""
        return f"{publisher} {self.publishers[publisher].version}"

    @property
    def day(self) -> date:
        """The day on which the last publisher was read."""
        return max(publisher.read for publisher in self.publishers.values())


class NoEvidence(ValueError):
    """A file that holds no evidence, or none of this version."""


def read_evidence(path: Path) -> Evidence:
    """Read kept evidence; NoEvidence if there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Evidence)
    except (OSError, msgspec.DecodeError) as unreadable:
        raise NoEvidence(f"{path.as_posix()} holds no evidence: {unreadable}") from unreadable


def write_evidence(evidence: Evidence) -> str:
    """Return the text of evidence, a line for each endpoint and publisher."""
    return "\n".join((*_lines(evidence), ""))


def gather_evidence(
    routing: Routing, today: date, price_map: PriceMap | None, kept: Evidence | None
) -> Evidence:
    """Return what the publishers state today; without a price map, what was kept of it."""
    publishers = {PRICES: _installed_prices(today)}
    if price_map is not None:
        publishers[PRICE_MAP] = Publisher(
            version=price_map.version, sha256=price_map.sha256, read=today
        )
    elif kept is not None and PRICE_MAP in kept.publishers:
        publishers[PRICE_MAP] = kept.publishers[PRICE_MAP]
    endpoints: dict[str, dict[str, PublishedFacts]] = {}
    for model in routing.models.values():
        for endpoint in model.endpoints:
            row, stated = routing.providers[endpoint.provider], dict[str, PublishedFacts]()
            try:
                published = find_published_price(row, endpoint.upstream, today, kind=model.kind)
            except Unpublished:
                pass
            else:
                rates = {
                    name: rate for name, rate in published.price if name in _RATE_NAMES and rate
                }
                tokens = ("input", "output") if model.kind == "chat" else ("input",)
                stated[PRICES] = PublishedFacts(
                    upstream=published.upstream,
                    rates={name: getattr(published.price, name) for name in tokens} | rates,
                    overrides=tuple(map(override_of, published.overrides)),
                    context=published.context,
                )
            mapped = (
                price_map.find(row, endpoint.upstream, kind=model.kind)
                if price_map is not None
                else (kept.of(endpoint).get(PRICE_MAP) if kept is not None else None)
            )
            if mapped is not None:
                stated[PRICE_MAP] = mapped
            endpoints[_name(endpoint)] = stated
    return Evidence(publishers=publishers, endpoints=endpoints)


_RATE_NAMES: Final = frozenset(
    {
        "cache_read",
        "cache_write",
        "cache_write_1h",
        "audio_input",
        "audio_output",
        "cache_read_audio",
        "image_input",
        "image_output",
        "image",
        "audio_hour",
        "characters",
        "request",
        "web_search",
    }
)


def _installed_prices(today: date) -> Publisher:
    content = Path(genai_prices.data.__file__ or "").read_bytes()
    return Publisher(version=version(PRICES), sha256=sha256(content).hexdigest(), read=today)


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
