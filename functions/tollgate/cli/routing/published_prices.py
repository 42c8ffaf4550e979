"""What genai-prices publishes, in the words of a routing file: to be reviewed, never a bill.

It has prices by date, by hour and by size of the prompt, and it needs no network. Of its units
those are kept that a routing file can state; the others are named.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
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
    "requests_kcount": "request",
    "web_searches_kcount": "web_search",
}
_PER_THOUSAND: Final = frozenset({"requests_kcount", "web_searches_kcount"})
# As whom a class is billed that has no rate of its own.
_BILLED_AS: Final = {
    "cache_read": "input",
    "cache_read_audio": "cache_read",
    "cache_write": "input",
    "cache_write_1h": "input",
    "audio_input": "input",
    "audio_output": "output",
}
# Published hours have a fixed offset, so that any day converts them.
_ANY_DAY: Final = date(2000, 1, 1)
_BEDROCK: Final = frozenset({"bedrock_runtime", "bedrock_invoke"})

PublishedRates: TypeAlias = dict[str, Decimal]


class Unpublished(LookupError):
    """Nothing is published for an endpoint, or nothing that a routing file can state."""


class Published(Struct, frozen=True, kw_only=True):
    """One model's price from a day on; `upstream` is the publisher's own name of the model.

    `unstatable` are its units for which a routing file has no rate.
    """

    upstream: str
    context: int | None
    price: PriceSection
    overrides: tuple[OverrideSection, ...]
    unstatable: tuple[str, ...]


def is_covered(row: ProviderSection) -> bool:
    """Whether anything that a provider asks is published."""
    try:
        _publisher(row)
    except Unpublished:
        return False
    return True


def published_price(row: ProviderSection, upstream: str, day: date) -> Published:
    """What a provider's model costs from a day on; Unpublished if that is not known."""
    return in_our_words(_model(_publisher(row), upstream), day)


def in_our_words(model: ModelInfo, day: date) -> Published:
    """A model's published price as a routing file states it; Unpublished if it has no tokens."""
    base, later = _from(day, model)
    rates = _plain(base)
    missing = {"input", "output"} - rates.keys()
    if missing:
        raise Unpublished(f"{model.id} has no rate for {' and '.join(sorted(missing))}")
    units = {unit for price in (base, *(it.prices for it in later)) for unit in _units(price)}
    return Published(
        upstream=model.id,
        context=model.context_window,
        price=PriceSection.model_validate({**rates, "source": SOURCE, "checked": day}),
        overrides=tuple(_overrides(base, later)),
        unstatable=tuple(sorted(units - _RATES.keys())),
    )


def _publisher(row: ProviderSection) -> Provider:
    address = row.base_url or ""
    if row.transport in _BEDROCK:
        address = f"https://bedrock-runtime.{row.region}.amazonaws.com"
    for provider in data.providers:
        if address and re.match(provider.api_pattern, address):
            return provider
    raise Unpublished("prices of this provider are not published")


def _model(publisher: Provider, upstream: str) -> ModelInfo:
    found = publisher.find_model(upstream, all_providers=data.providers)
    if found is None:
        raise Unpublished(f"{publisher.name} has no price for {upstream}")
    return found


def _from(day: date, model: ModelInfo) -> tuple[ModelPrice, Sequence[ConditionalPrice]]:
    """The price that holds on a day, and those that replace it at some hours or on a later day.

    Of several that hold, the last is the one that counts.
    """
    if isinstance(model.prices, ModelPrice):
        return model.prices, ()
    first = 0
    for index, conditional in enumerate(model.prices):
        constraint = conditional.constraint
        if constraint is None or (
            isinstance(constraint, StartDateConstraint) and constraint.start_date <= day
        ):
            first = index
    return model.prices[first].prices, model.prices[first + 1 :]


def _overrides(base: ModelPrice, later: Sequence[ConditionalPrice]) -> Iterator[OverrideSection]:
    """Tiers and later prices; each of these states every rate, since it replaces a whole price."""
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
    """What classes without a rate cost; a request without one is free."""
    return {
        name: rates[_billed_like(name, rates)] if name in _BILLED_AS else Decimal(0)
        for name in unstated
    }


def _billed_like(name: str, stated: PublishedRates) -> str:
    """The class with a rate as which one without is billed."""
    like = _BILLED_AS[name]
    return like if like in stated else _billed_like(like, stated)


def _tiers(
    price: ModelPrice, when: Mapping[str, object], unstated: Set[str]
) -> Iterator[OverrideSection]:
    """The rates of larger prompts; `unstated` classes go with the one that they are billed as."""
    stated = _plain(price)
    by_size: dict[int, PublishedRates] = {}
    for unit, amount in _units(price).items():
        if unit in _RATES and isinstance(amount, TieredPrices):
            for tier in amount.tiers:
                by_size.setdefault(tier.start, {})[_RATES[unit]] = tier.price
    for size, rates in sorted(by_size.items()):
        following = {
            name: rates[like]
            for name in unstated
            if name in _BILLED_AS and (like := _billed_like(name, stated)) in rates
        }
        yield _override({**when, "prompt_tokens_over": size}, rates | following)


def _when(conditional: ConditionalPrice) -> dict[str, object]:
    constraint = conditional.constraint
    if constraint is None:
        raise TypeError("a price without a condition replaces all before it")
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
    """The rates of a small prompt."""
    return {
        _RATES[unit]: (amount.base if isinstance(amount, TieredPrices) else amount)
        / (1000 if unit in _PER_THOUSAND else 1)
        for unit, amount in _units(price).items()
        if unit in _RATES
    }


def _units(price: ModelPrice) -> dict[str, Decimal | TieredPrices]:
    return {unit: amount for unit, amount in vars(price).items() if amount is not None}
