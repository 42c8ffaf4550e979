"""The prices in a catalog, and the periods in which a stack served the catalog."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from tollgate.cli.tables import exact
from tollgate.core.routing.publication import Publication
from tollgate.routing.price_sections import (
    OverrideSection,
    PriceSection,
    RatesSection,
    WhenSection,
)
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import EndpointSection

# Rates that have their own column.
_COLUMNS: Final = ("input", "output", "cache_read", "cache_write")
_EVERY_KEY: Final = 100


class ServedPeriod(Struct, frozen=True, kw_only=True):
    """A period in which a stack served a catalog to all keys, or to a share as a canary."""

    from_s: int
    until_s: int | None
    """None if the period has not ended."""
    percent: int
    revision: int
    by: str
    commit: str | None

    def as_object(self, text: Callable[[int], str]) -> dict[str, Any]:
        """Return the period for JSON; `text` formats a timestamp."""
        return {
            "from": text(self.from_s),
            "until": None if self.until_s is None else text(self.until_s),
            "percent": self.percent,
            "revision": self.revision,
            "by": self.by,
            "commit": self.commit,
        }

    def describe(self, text: Callable[[int], str]) -> str:
        """Return the period as a line of text; `text` formats a timestamp."""
        until = "now" if self.until_s is None else text(self.until_s)
        share = "" if self.percent == _EVERY_KEY else f", {self.percent} % of the keys"
        commit = f", commit {self.commit}" if self.commit else ""
        return f"{text(self.from_s)} to {until}{share}: revision {self.revision}{commit}, {self.by}"


def list_served_periods(history: Sequence[Publication], sha: str) -> tuple[ServedPeriod, ...]:
    """Return the periods in which a catalog was served; history and periods are latest first."""
    periods = []
    until_s: int | None = None
    for each in history:
        percent = each.percent if each.candidate is not None else 0
        if sha in (each.live, each.candidate):
            periods.append(
                ServedPeriod(
                    from_s=each.moved_s,
                    until_s=until_s,
                    percent=percent if sha == each.candidate else _EVERY_KEY - percent,
                    revision=each.revision,
                    by=each.by,
                    commit=each.commit,
                )
            )
        until_s = each.moved_s
    return tuple(periods)


def list_price_rows(routing: Routing, glob: str, at_s: float | None) -> list[dict[str, str]]:
    """Return a table row for each price and each override of the matching models."""
    rows = []
    for slug, endpoint in _endpoints(routing, glob):
        names = {"model": slug, "provider": endpoint.provider, "upstream": endpoint.upstream}
        price = endpoint.price
        origin = {"checked": price.checked.isoformat(), "source": price.source}
        rows.append({**names, "when": "", **_cells(price), **origin})
        rows += [
            {
                **names,
                "when": _describe(each.when),
                **_cells(each.price),
                "checked": "",
                "source": "",
            }
            for each in _overrides_on(endpoint, at_s)
        ]
    return rows


def describe_prices(routing: Routing, glob: str, at_s: float | None) -> list[dict[str, Any]]:
    """Return the prices of the matching models for JSON, with one object for each endpoint."""
    return [
        {
            "model": slug,
            "provider": endpoint.provider,
            "upstream": endpoint.upstream,
            "weight": endpoint.weight,
            "price": {
                **_rates(endpoint.price),
                "source": endpoint.price.source,
                "checked": endpoint.price.checked.isoformat(),
            },
            "overrides": [
                {
                    "when": each.when.model_dump(mode="json", by_alias=True, exclude_none=True),
                    "price": _rates(each.price),
                }
                for each in _overrides_on(endpoint, at_s)
            ],
        }
        for slug, endpoint in _endpoints(routing, glob)
    ]


def _endpoints(routing: Routing, glob: str) -> Iterator[tuple[str, EndpointSection]]:
    for slug, model in routing.models.items():
        if fnmatchcase(slug, glob):
            yield from ((slug, endpoint) for endpoint in model.endpoints)


def _overrides_on(endpoint: EndpointSection, at_s: float | None) -> Iterator[OverrideSection]:
    """Yield the overrides whose days include a time, or all overrides if `at_s` is None."""
    for section in endpoint.overrides:
        since_s, until_s = section.override.since_s, section.override.until_s
        begun = at_s is None or since_s is None or since_s <= at_s
        if begun and (at_s is None or until_s is None or at_s < until_s):
            yield section


def _describe(when: WhenSection) -> str:
    words = (
        when.since and f"from {when.since}",
        when.until and f"until {when.until}",
        when.prompt_tokens_over and f"prompt over {when.prompt_tokens_over:,}",
        when.utc_window and f"{when.utc_window} UTC",
        when.utc_days and " ".join(when.utc_days),
        when.image_size and f"of {when.image_size}",
        when.image_over and f"larger than {when.image_over}",
        when.image_quality and f"in quality {when.image_quality}",
    )
    return ", ".join(word for word in words if word)


def _cells(price: PriceSection | RatesSection) -> dict[str, str]:
    rates = {name: exact(rate) for name, rate in _rates(price).items()}
    others = ", ".join(f"{name} {rate}" for name, rate in rates.items() if name not in _COLUMNS)
    return {**{name: rates.get(name, "") for name in _COLUMNS}, "others": others}


def _rates(price: PriceSection | RatesSection) -> dict[str, Decimal]:
    return {name: rate for name, rate in price if isinstance(rate, Decimal)}
