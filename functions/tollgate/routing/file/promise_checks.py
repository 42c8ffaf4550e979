"""Finds models that break a route's promise, today or once a dated price applies, and routes
whose service tier no endpoint has.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal

from msgspec import Struct

from tollgate.routing.chains import PromiseSection, RouteSection
from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.lifecycle import list_heirs
from tollgate.routing.price_sections import OverrideSection
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import EndpointSection, ModelSection


class PlacedModel(Struct, frozen=True):
    """A model, with the document that defines it."""

    document: YamlDocument
    section: ModelSection


def placed_heirs(slug: str, models: Mapping[str, PlacedModel]) -> Iterator[str]:
    """Yield the models that replace a model, one after another, as each retires."""
    return list_heirs(slug, lambda each: models[each].section if each in models else None)


def place_chains(
    route: RouteSection, where: Where
) -> Iterator[tuple[Where, Sequence[Mapping[str, int]]]]:
    """Yield the chain of each rule of a route, with its path in the file."""
    if route.steps is not None:
        yield (*where, "try"), route.steps
    for number, rule in enumerate(route.rules or ()):
        yield (*where, "rules", number, "try"), rule.steps


def list_shadow_models(route: RouteSection) -> tuple[tuple[str, str], ...]:
    """Return the models of a route's shadow, each with its key; empty without a shadow."""
    shadow = route.shadow
    named = () if shadow is None else (("model", shadow.model), ("judge", shadow.judge))
    return tuple((key, slug) for key, slug in named if slug is not None)


class DatedBreak(Struct, frozen=True, kw_only=True):
    """A promise that a price will break: from `day` on, `rate` is higher than the
    promised `most`.
    """

    day: date
    model: str
    provider: str
    kind: str
    rate: Decimal
    most: Decimal


def place_steps(route: RouteSection, where: Where) -> Iterator[tuple[Where, Mapping[str, int]]]:
    """Yield all steps of a route, each with its path in the file."""
    for place, steps in place_chains(route, where):
        for index, step in enumerate(steps):
            yield (*place, index), step


def check_promise(
    document: YamlDocument,
    name: str,
    route: RouteSection,
    *,
    models: Mapping[str, PlacedModel],
    today: date | None,
) -> Iterator[Problem]:
    """Yield an error for each promise that is broken today, and a warning for each that will be
    broken later.
    """
    promise = route.promise
    if promise is None:
        return
    places: dict[str, list[Where]] = {}
    for where, step in place_steps(route, ("routes", name)):
        for slug in step:
            place = (*where, slug) if (*where, slug) in document.values else where
            for each in (slug, *placed_heirs(slug, models)):
                places.setdefault(each, []).append(place)
    for slug, steps in places.items():
        if slug not in models:
            continue
        for message in _broken_now(slug, models[slug].section, promise, today):
            yield document.at_value(steps[0], "R060", f"route {name} promises {message}")
        if today is not None:
            yield from _broken_later(
                name,
                slug,
                models[slug],
                promise,
                today=today,
                steps=[
                    document.place_text(step).removeprefix(f"{document.file}:") for step in steps
                ],
            )


def check_route_tier(
    document: YamlDocument, name: str, route: RouteSection, *, models: Mapping[str, PlacedModel]
) -> Iterator[Problem]:
    """Yield a problem if no endpoint of a route has its service tier."""
    where: Where = ("routes", name)
    slugs = {slug for _, step in place_steps(route, where) for slug in step} & models.keys()
    endpoints = (each for slug in slugs for each in models[slug].section.endpoints)
    tier = route.service_tier
    if tier is not None and not any(tier in each.service_tiers for each in endpoints):
        message = f"no endpoint of route {name} has service tier {tier}"
        yield document.at_value((*where, "service_tier"), "R065", message)


def _broken_now(
    slug: str, model: ModelSection, promise: PromiseSection, today: date | None
) -> Iterator[str]:
    for capability in promise.supports:
        if capability not in model.supports:
            yield f"{capability}, but {slug} does not support it"
    if promise.context_min is not None and model.context < promise.context_min:
        yield f"a context of {promise.context_min} tokens, but {slug} takes {model.context}"
    for endpoint in model.endpoints:
        for kind, limit in _ceilings(promise):
            rate = _dearest(endpoint, kind, today)
            if rate > limit:
                offer = f"{slug} costs {_dollars(rate)} at {endpoint.provider}"
                yield f"{_dollars(limit)}/M {kind} at most, but {offer}"


def _broken_later(
    name: str,
    slug: str,
    model: PlacedModel,
    promise: PromiseSection,
    *,
    today: date,
    steps: Sequence[str],
) -> Iterator[Problem]:
    """Yield a warning for each dated price that will break a promise."""
    for index, endpoint in enumerate(model.section.endpoints):
        for found, where in _dated_breaks(slug, endpoint, promise, today):
            message = (
                f"from {found.day} {slug} costs {_dollars(found.rate)}/M {found.kind}; route "
                f"{name} promises {_dollars(found.most)} at most (steps {', '.join(steps)})"
            )
            place: Where = ("models", slug, "endpoints", index, *where)
            yield model.document.at_value(place, "R062", message, severity="warning")


def find_later_breaks(routing: Routing, today: date) -> Iterator[tuple[str, DatedBreak]]:
    """Yield each promise that a dated price will break, after the name of its route."""
    for name, route in routing.routes.items():
        slugs = dict.fromkeys(
            each
            for _, step in place_steps(route, ("routes", name))
            for slug in step
            for each in (slug, *list_heirs(slug, routing.models.get))
        )
        for slug in slugs if route.promise else ():
            for endpoint in routing.models[slug].endpoints:
                for found, _ in _dated_breaks(slug, endpoint, route.promise, today):
                    yield name, found


def _dated_breaks(
    slug: str, endpoint: EndpointSection, promise: PromiseSection | None, today: date
) -> Iterator[tuple[DatedBreak, Where]]:
    for kind, limit in _ceilings(promise) if promise else ():
        is_kept = _dearest(endpoint, kind, today) <= limit
        for day, where in _turning_points(endpoint, today):
            rate = _dearest(endpoint, kind, day)
            if is_kept and rate > limit:
                found = DatedBreak(
                    day=day,
                    model=slug,
                    provider=endpoint.provider,
                    kind=kind,
                    rate=rate,
                    most=limit,
                )
                yield found, where
            is_kept = rate <= limit


def _ceilings(promise: PromiseSection) -> Iterator[tuple[str, Decimal]]:
    if promise.input_price_max is not None:
        yield "input", promise.input_price_max
    if promise.output_price_max is not None:
        yield "output", promise.output_price_max


def _turning_points(endpoint: EndpointSection, today: date) -> list[tuple[date, Where]]:
    """Return the days after `today` on which overrides begin or end, each with its path."""
    points: dict[date, Where] = {}
    for index, override in enumerate(endpoint.overrides):
        for name, day in (("from", override.when.since), ("until", override.when.until)):
            if day is not None and day > today:
                points.setdefault(day, ("overrides", index, "when", name))
    return sorted(points.items())


def _dearest(endpoint: EndpointSection, kind: str, day: date | None) -> Decimal:
    """Return the highest possible rate on a day; if no day is given, ignore dated rates."""
    rates = [endpoint.price.input if kind == "input" else endpoint.price.output]
    for override in endpoint.overrides:
        rate = override.price.input if kind == "input" else override.price.output
        if rate is None or not _is_on(override, day):
            continue
        # An override that has no other conditions than dates always replaces the rate.
        conditions = override.when.model_dump(exclude_none=True)
        certain = conditions.keys() <= {"since", "until"}
        rates = [rate] if certain else [*rates, rate]
    return max(rates)


def _is_on(override: OverrideSection, day: date | None) -> bool:
    since, until = override.when.since, override.when.until
    if day is None:
        return since is None and until is None
    return (since is None or since <= day) and (until is None or day < until)


def _dollars(rate: Decimal) -> str:
    return f"${rate:.2f}" if rate == round(rate, 2) else f"${rate:f}"
