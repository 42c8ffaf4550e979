"""What differs in meaning between two revisions of a routing: facts, not lines of text."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from itertools import takewhile
from operator import eq
from typing import Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tollgate.routing.price_sections import OverrideSection
from tollgate.routing.review.facts import (
    NOTES,
    Facts,
    OrderedNames,
    facts_of,
    facts_of_endpoint,
    facts_of_model,
    facts_of_route,
    notes_of_price,
    rates_of,
)
from tollgate.routing.schema import EndpointSection, ModelSection, Routing

DifferenceKind = Literal["removed", "changed", "added"]
What = Literal[
    "model",
    "endpoint",
    "price",
    "route",
    "alias",
    "tier",
    "provider",
    "defaults",
    "billing",
    "note",
]

_ORDER: Final[tuple[DifferenceKind, ...]] = ("removed", "changed", "added")
_DAYS_MAX: Final = 3
_TENTH: Final = Decimal("0.1")
_Name = TypeVar("_Name", bound=str)
_Section = TypeVar("_Section")


class Fact(Struct, frozen=True, kw_only=True):
    """One thing that is said otherwise, None where it is not said; `percent` is a price's rise."""

    name: str
    before: str | None
    after: str | None
    percent: Decimal | None = None


class Change(Struct, frozen=True, kw_only=True):
    """What became of one thing; a `note` is what only people read."""

    kind: DifferenceKind
    what: What
    subject: str
    facts: tuple[Fact, ...] = ()


def changes(before: Routing, after: Routing) -> tuple[Change, ...]:
    """Every difference that has a meaning, removals first."""
    found = [
        *_compared("model", before.models, after.models, facts_of_model),
        *_endpoints(before, after),
        *_compared("route", before.routes, after.routes, facts_of_route),
        *_compared("alias", before.aliases, after.aliases, facts_of),
        *_compared("tier", before.key_tiers, after.key_tiers, facts_of),
        *_compared("provider", before.providers, after.providers, facts_of),
        *_changed("defaults", "", facts_of(before.defaults), facts_of(after.defaults)),
        *_changed("billing", "", facts_of(before.billing), facts_of(after.billing)),
    ]
    return tuple(sorted(found, key=lambda change: _ORDER.index(change.kind)))


def days_to_come(before: Routing, after: Routing, today: date) -> tuple[date, ...]:
    """The next days, three at most, on which a price begins or ends in one of the two only."""
    differing = _dated(before, today) ^ _dated(after, today)
    return tuple(sorted({day for day, *_ in differing}))[:_DAYS_MAX]


def _dated(routing: Routing, today: date) -> set[tuple[date, str, str, OverrideSection]]:
    return {
        (day, slug, f"{endpoint.provider}/{endpoint.upstream}", override)
        for slug, model in routing.models.items()
        for endpoint in model.endpoints
        for override in endpoint.overrides
        for day in (override.when.since, override.when.until)
        if day is not None and day > today
    }


def _compared(
    what: What,
    before: Mapping[_Name, _Section],
    after: Mapping[_Name, _Section],
    facts: Callable[..., Facts],
) -> Iterator[Change]:
    """What became of the sections of one kind, by their names."""
    for name in sorted({*before, *after}):
        if name not in after:
            yield Change(kind="removed", what=what, subject=name)
        elif name not in before:
            stated = tuple(_differing({}, facts(after[name], stated_only=True)))
            yield Change(kind="added", what=what, subject=name, facts=stated)
        else:
            yield from _changed(what, name, facts(before[name]), facts(after[name]))


def _changed(what: What, name: str, before: Facts, after: Facts) -> Iterator[Change]:
    """One change of what requests notice, and one of what people read, where there are any."""
    facts = tuple(_differing(before, after))
    notes = tuple(fact for fact in facts if fact.name in NOTES)
    noticed = tuple(fact for fact in facts if fact.name not in NOTES)
    if noticed:
        yield Change(kind="changed", what=what, subject=name, facts=noticed)
    if notes:
        yield Change(kind="changed", what="note", subject=name, facts=notes)


def _differing(before: Facts, after: Facts) -> Iterator[Fact]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if isinstance(old, tuple) or isinstance(new, tuple):
            yield from _rechained(name, tuple(old or ()), tuple(new or ()))
        elif old != new:
            yield Fact(name=name, before=old, after=new)


def _rechained(name: str, before: OrderedNames, after: OrderedNames) -> Iterator[Fact]:
    """The steps that differ, without those before and after them that stay."""
    if before == after:
        return
    start = _alike(before, after)
    before, after = before[start:], after[start:]
    end = _alike(before[::-1], after[::-1])
    removed, added = (", then ".join(chain[: len(chain) - end]) for chain in (before, after))
    yield Fact(name=f"{name} {start + 1}", before=removed or None, after=added or None)


def _alike(one: OrderedNames, other: OrderedNames) -> int:
    """With how many equal steps two chains begin."""
    return sum(takewhile(bool, map(eq, one, other)))


def _endpoints(before: Routing, after: Routing) -> Iterator[Change]:
    """The endpoints of models that stay; those of others come and go with them."""
    for slug in sorted(before.models.keys() & after.models.keys()):
        old, new = _by_name(slug, before.models[slug]), _by_name(slug, after.models[slug])
        yield from _compared("endpoint", old, new, facts_of_endpoint)
        kept = [name for name in old if name in new]
        if kept != [name for name in new if name in old]:
            order = (", ".join(old), ", ".join(new))
            facts = (Fact(name="order", before=order[0], after=order[1]),)
            yield Change(kind="changed", what="model", subject=slug, facts=facts)
        for name in kept:
            yield from _prices(name, old[name], new[name])


def _by_name(slug: str, model: ModelSection) -> dict[str, EndpointSection]:
    return {f"{slug} @ {each.provider}/{each.upstream}": each for each in model.endpoints}


def _prices(name: str, before: EndpointSection, after: EndpointSection) -> Iterator[Change]:
    for change in _changed("price", name, rates_of(before), rates_of(after)):
        yield replace(change, facts=tuple(map(_with_percent, change.facts)))
    yield from _changed("note", name, notes_of_price(before.price), notes_of_price(after.price))


def _with_percent(fact: Fact) -> Fact:
    if fact.before is None or fact.after is None or not Decimal(fact.before):
        return fact
    rise = (Decimal(fact.after) / Decimal(fact.before) - 1) * 100
    return replace(fact, percent=rise.quantize(_TENTH))
