"""Conversion of prices in genai-prices to prices for a routing file; bills never use genai-prices.

The package needs no network. The conversion reports units that a routing file cannot express.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from typing import Final, TypeAlias

from genai_prices import data
from genai_prices.types import (
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    TieredPrices,
)
from msgspec import Struct

from tollgate.core.work.kinds import WORK_KINDS, WorkKind
from tollgate.routing.price_sections import OverrideSection, PriceSection
from tollgate.routing.schema import ProviderSection

SOURCE: Final = f"genai-prices {version('genai-prices')}"

_RATES: Final = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "audio_input",
    "output_audio_mtok": "audio_output",
    "cache_audio_read_mtok": "cache_read_audio",
    "input_image_mtok": "image_input",
    "output_image_mtok": "image_output",
    "audio_hours": "audio_hour",
    "input_audio_hours": "audio_hour",
    "input_mchars": "characters",
    "requests_kcount": "request",
    "web_searches_kcount": "web_search",
}
_PER_THOUSAND: Final = frozenset({"requests_kcount", "web_searches_kcount"})
# Fallbacks: for each class, the class whose rate is billed if it has no rate itself.
BILLED_AS: Final = {
    "cache_read": "input",
    "cache_read_audio": "cache_read",
    "cache_write": "input",
    "cache_write_1h": "input",
    "audio_input": "input",
    "audio_output": "output",
    "image_input": "input",
    "image_output": "output",
}
# Rates for outputs that are billed per unit; such a price may have no token rates.
_PIECES: Final = frozenset({"audio_hour", "characters"})
# Published hours have a fixed offset from UTC, so any date can be used to convert them.
_ANY_DAY: Final = date(2000, 1, 1)
PublishedRates: TypeAlias = dict[str, Decimal]


class Unpublished(LookupError):
    """Raised for an endpoint that has no published price, or none that a routing file can
    express.
    """


class Published(Struct, frozen=True, kw_only=True):
    """The published price of a model, from one day on."""

    upstream: str
    """The publisher's name for the model."""
    context: int | None
    price: PriceSection
    overrides: tuple[OverrideSection, ...]
    unstatable: tuple[str, ...]
    """Published units for which a routing file has no rate."""


def is_published(row: ProviderSection) -> bool:
    """Return whether genai-prices has a provider's prices."""
    try:
        _publisher(row)
    except Unpublished:
        return False
    return True


def find_published_price(
    row: ProviderSection, upstream: str, day: date, *, kind: WorkKind = "chat"
) -> Published:
    """Return the price of a provider's model from one day on; raise Unpublished if there is
    none.
    """
    publisher = _publisher(row)
    model = publisher.find_model(upstream, all_providers=data.providers)
    if model is None:
        raise Unpublished(f"{publisher.name} has no price for {upstream}")
    return convert_price(model, day, kind=kind)


def convert_price(model: ModelInfo, day: date, *, kind: WorkKind = "chat") -> Published:
    """Return a published price as routing file sections; raise Unpublished without token rates."""
    base, later = _from(day, model)
    known = _known_rates(kind)
    kept = _without_others(base, known)
    kept_later = [
        replace(conditional, prices=_without_others(conditional.prices, known))
        for conditional in later
    ]
    rates = _plain(kept)
    if not _PIECES.isdisjoint(rates):
        rates = {"input": Decimal(0), **rates}
    missing = ({"input", "output"} if kind == "chat" else {"input"}) - rates.keys()
    if missing:
        raise Unpublished(f"{model.id} has no rate for {' and '.join(sorted(missing))}")
    units = {
        unit
        for price in (base, *(conditional.prices for conditional in later))
        for unit in _units(price)
    }
    return Published(
        upstream=model.id,
        context=model.context_window,
        price=PriceSection.model_validate({**rates, "source": SOURCE, "checked": day}),
        overrides=tuple(_overrides(kept, kept_later)),
        unstatable=tuple(sorted(units - _RATES.keys())),
    )


def _known_rates(kind: WorkKind) -> Set[str]:
    """Return the rates that a kind of work can have; other published rates are ignored."""
    if kind == "chat":
        return frozenset(_RATES.values()) - _PIECES
    rates = WORK_KINDS[kind].rates
    # A published rate for cache reads is for chat, unless the kind also has one for cache writes.
    return rates if "cache_write" in rates else rates - {"cache_read"}


def _without_others(price: ModelPrice, known: Set[str]) -> ModelPrice:
    units = _units(price).items()
    return ModelPrice(**{unit: amount for unit, amount in units if _RATES.get(unit) in known})


def _publisher(row: ProviderSection) -> Provider:
    address = row.base_url or ""
    if row.signs_as is not None:
        address = f"https://bedrock-runtime.{row.region}.amazonaws.com"
    for provider in data.providers:
        if address and re.match(provider.api_pattern, address):
            return provider
    raise Unpublished("this provider's prices are not published")


def _from(day: date, model: ModelInfo) -> tuple[ModelPrice, Sequence[ConditionalPrice]]:
    """Return the price on a day, and the prices that replace it at some hours or on later days."""
    if isinstance(model.prices, ModelPrice):
        return model.prices, ()
    first = 0
    for index, conditional in enumerate(model.prices):
        constraint = conditional.constraint
        # If several prices apply, the last one counts.
        if constraint is None or (
            isinstance(constraint, StartDateConstraint) and constraint.start_date <= day
        ):
            first = index
    return model.prices[first].prices, model.prices[first + 1 :]


def _overrides(base: ModelPrice, later: Sequence[ConditionalPrice]) -> Iterator[OverrideSection]:
    """Yield the tiers of the base price, then later prices; a later price states every rate,
    because it replaces all earlier rates."""
    yield from _tiers(base, {}, set())
    stated = set(_plain(base))
    for conditional in later:
        rates = _plain(conditional.prices)
        stated |= rates.keys()
        unstated = stated - rates.keys()
        when = _when(conditional)
        yield _override(when, rates | _billed_as(rates, unstated))
        yield from _tiers(conditional.prices, when, unstated)


def _billed_as(rates: PublishedRates, unstated: Set[str]) -> PublishedRates:
    """Return the rate of the fallback class for each token class without its own rate, or 0 if it
    has none.
    """
    return {
        name: rates[_billed_like(name, rates)] if name in BILLED_AS else Decimal(0)
        for name in unstated
    }


def _billed_like(name: str, stated: PublishedRates) -> str:
    """Return the first fallback of a class that has a rate."""
    fallback = BILLED_AS[name]
    return fallback if fallback in stated else _billed_like(fallback, stated)


def _tiers(
    price: ModelPrice, when: Mapping[str, object], unstated: Set[str]
) -> Iterator[OverrideSection]:
    """Yield the overrides for large prompts, including the billed rates of `unstated` classes."""
    stated = _plain(price)
    by_size: dict[int, PublishedRates] = {}
    for unit, amount in _units(price).items():
        if unit in _RATES and isinstance(amount, TieredPrices):
            for tier in amount.tiers:
                by_size.setdefault(tier.start, {})[_RATES[unit]] = tier.price
    for size, rates in sorted(by_size.items()):
        following = {
            name: rates[fallback]
            for name in unstated
            if name in BILLED_AS and (fallback := _billed_like(name, stated)) in rates
        }
        yield _override({**when, "prompt_tokens_over": size}, rates | following)


def _when(conditional: ConditionalPrice) -> dict[str, object]:
    constraint = conditional.constraint
    if constraint is None:
        raise TypeError("a price without a condition is not an override")
    if isinstance(constraint, StartDateConstraint):
        return {"from": constraint.start_date}
    return {"utc_window": f"{_minute(constraint.start_time)}-{_minute(constraint.end_time)}"}


def _minute(clock: time) -> str:
    if clock.tzinfo is not None:
        clock = datetime.combine(_ANY_DAY, clock).astimezone(UTC).time()
    return clock.isoformat("minutes")


def _override(when: Mapping[str, object], rates: PublishedRates) -> OverrideSection:
    ordered = {name: rates[name] for name in _RATES.values() if name in rates}
    return OverrideSection.model_validate({"when": when, "price": ordered})


def _plain(price: ModelPrice) -> PublishedRates:
    """Return the rates for a prompt below all tiers."""
    return {
        _RATES[unit]: (amount.base if isinstance(amount, TieredPrices) else amount)
        / (1000 if unit in _PER_THOUSAND else 1)
        for unit, amount in _units(price).items()
        if unit in _RATES
    }


def _units(price: ModelPrice) -> dict[str, Decimal | TieredPrices]:
    return {unit: amount for unit, amount in vars(price).items() if amount is not None}
