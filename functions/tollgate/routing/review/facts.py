"""A section of routing.yaml as flat facts, name and value, so that two can be compared."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Final

from pydantic import BaseModel

from tollgate.routing.chains import ConditionSection, RouteSection
from tollgate.routing.price_sections import OverrideSection, PriceSection
from tollgate.routing.schema import EndpointSection, ModelSection

# The steps of a chain, in their order.
OrderedNames = tuple[str, ...]
Facts = Mapping[str, str | OrderedNames]

# What only people read: it changes the sha, and nothing that a request could notice.
NOTES: Final = frozenset({"name", "description", "source", "checked"})
# Lists of which the order says nothing.
_SETS: Final = frozenset({"input", "supports", "next_on", "models", "refuses"})


def facts_of(
    section: BaseModel, *, without: Collection[str] = (), stated_only: bool = False
) -> dict[str, str]:
    """Every value of a section by its path; with `stated_only` those that are not the default."""
    content = section.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_defaults=stated_only,
        exclude=set(without),
    )
    return dict(_leaves(content, ""))


def facts_of_route(
    route: RouteSection, *, stated_only: bool = False
) -> dict[str, str | OrderedNames]:
    """A route with its rules in words, and the chain of each."""
    facts: dict[str, str | OrderedNames] = {
        **facts_of(route, without=("steps", "rules"), stated_only=stated_only)
    }
    for number, rule in enumerate(route.all_rules, start=1):
        place = "" if route.rules is None else f"rule {number} "
        if rule.condition is not None:
            facts[f"{place}if"] = _condition(rule.condition)
        facts[f"{place}step"] = tuple(map(_step, rule.steps))
    return facts


def facts_of_model(model: ModelSection, *, stated_only: bool = False) -> dict[str, str]:
    """What a model is, whoever serves it; of a new one, with `stated_only`, what each asks too."""
    facts = facts_of(model, without=("endpoints",), stated_only=stated_only)
    if stated_only:
        offers = {f"{each.provider}/{each.upstream}": each for each in model.endpoints}
        facts |= {name: price_in_short(endpoint) for name, endpoint in offers.items()}
    return facts


def facts_of_endpoint(endpoint: EndpointSection, *, stated_only: bool = False) -> dict[str, str]:
    """What an endpoint is, prices apart; of a new one, with `stated_only`, what it asks too."""
    without = ("provider", "upstream", "price", "overrides")
    facts = facts_of(endpoint, without=without, stated_only=stated_only)
    if stated_only:
        facts["price"] = price_in_short(endpoint)
    elif len(endpoint.overrides) > 1:
        # Of several overrides that hold, the later one wins.
        facts["overrides"] = "; ".join(map(_when, endpoint.overrides))
    return facts


def rates_of(endpoint: EndpointSection) -> dict[str, str]:
    """Every rate of an endpoint, those of overrides under their conditions."""
    rates = _rates(endpoint.price, "")
    for override in endpoint.overrides:
        rates |= _rates(override.price, f"{_when(override)} ")
    return rates


def notes_of_price(price: PriceSection) -> dict[str, str]:
    """Where a price is from, and when that was looked up."""
    return {"source": price.source, "checked": price.checked.isoformat()}


def price_in_short(endpoint: EndpointSection) -> str:
    """`2.00 / 10.00, from 2026-12-01 4.00 / 20.00`: input and output."""
    base = endpoint.price
    parts = [f"{rate_text(base.input)} / {rate_text(base.output)}"]
    for override in endpoint.overrides:
        rates = (override.price.input or base.input, override.price.output or base.output)
        parts.append(f"{_when(override)} {rate_text(rates[0])} / {rate_text(rates[1])}")
    return ", ".join(parts)


def rate_text(rate: Decimal) -> str:
    """Dollars with two digits after the point, or as many as it takes."""
    return f"{rate:.2f}" if rate == round(rate, 2) else f"{rate.normalize():f}"


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, inside in value.items():
                yield from _leaves(inside, f"{path}.{name}" if path else str(name))
        case list() if any(isinstance(item, dict | list) for item in value):
            for index, item in enumerate(value, start=1):
                yield from _leaves(item, f"{path}[{index}]")
        case list():
            items = sorted(value) if path.rpartition(".")[2] in _SETS else value
            yield path, ", ".join(map(str, items)) or "none"
        case bool():
            yield path, str(value).lower()
        case _:
            yield path, str(value)


def _rates(section: BaseModel, prefix: str) -> dict[str, str]:
    return {
        f"{prefix}{name}": rate_text(rate) for name, rate in section if isinstance(rate, Decimal)
    }


def _when(override: OverrideSection) -> str:
    when = override.when
    parts = (
        f"from {when.since}" if when.since else "",
        f"until {when.until}" if when.until else "",
        f"over {when.prompt_tokens_over} tokens" if when.prompt_tokens_over else "",
        f"{when.utc_window} UTC" if when.utc_window else "",
        f"on {'/'.join(when.utc_days)}" if when.utc_days else "",
    )
    return " ".join(filter(None, parts))


def _condition(condition: ConditionSection) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts_of(condition).items())


def _step(weights: Mapping[str, int]) -> str:
    if len(weights) == 1:
        return next(iter(weights))
    return ", ".join(f"{model} {weight}" for model, weight in weights.items())
