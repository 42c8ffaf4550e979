"""Builds the chains of a catalog, selects their rules, and ranks models by weight."""

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct, field

from tollgate.core.errors import ErrorCode
from tollgate.core.request import Need, ProviderSort
from tollgate.providers.ports.base import Guardrail, ProviderRow, Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.providers.ports.provider_batches import BatchTerms
from tollgate.routing.chains import (
    NEXT_ON_DEFAULT,
    ConditionSection,
    GuardrailSection,
    RouteSection,
    RuleSection,
)
from tollgate.routing.lifecycle import list_heirs, list_redirects, make_lifecycle
from tollgate.routing.places import place_of
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.scalars import merge_section
from tollgate.routing.schema import EndpointSection, ModelSection

# One bit fewer than the 53 of a float's mantissa, so that (2**52 - 0.5) / 2**52 is less than one.
_BITS: Final = 52


class Offer(Struct, frozen=True, kw_only=True):
    """An attempt at one endpoint, with the endpoint's weight in percent (None if
    nothing is drawn).
    """

    attempt: Attempt
    weight: int | None


class Chain(Struct, frozen=True, kw_only=True):
    """A model or route as rules with steps, and the offers of each model."""

    draw_scope: str
    """The slug of the route or model, which is part of the hash of every draw."""
    route: str | None
    rules: tuple[RuleSection, ...]
    next_on: frozenset[ErrorCode]
    offers: Mapping[str, tuple[Offer, ...]]
    service_tier: str | None = None
    """Service tier for requests that state none."""
    sort: ProviderSort | None = None
    """Order of endpoints for requests that state none."""
    metadata_names: frozenset[str] = frozenset()
    """Names of the metadata that the rules read."""
    numbered: bool = False
    """True if records contain the number of the rule; False for a plain `try`."""
    redirects: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    """Unix time of retirement and successor, keyed by the slug of each model that is replaced."""
    cacheable_tokens_min: Mapping[str, int] = field(default_factory=dict)
    """Smallest prompt that providers cache, keyed by the slug of each model that states it."""

    def drawn_by(self, request: PlanningRequest, slugs: Iterable[str]) -> str:
        """Return the hash for a draw among models, or among the endpoints of a model.

        It is the conversation's if a provider of one of the models may have its prompt cached.
        """
        sizes = (self.cacheable_tokens_min.get(slug, math.inf) for slug in slugs)
        if request.conversation_hash is not None and request.input_tokens >= min(sizes):
            return request.conversation_hash
        return request.draw_key_hash

    def bends(self, rule: int | None) -> bool:
        """Return True if a rule has a condition on the budget."""
        condition = None if rule is None else self.rules[rule - 1].condition
        return condition is not None and condition.budget_left is not None

    def model_at(self, slug: str, now_s: float) -> str:
        """Return the model that currently serves `slug`: the model itself or a successor."""
        # The loop ends, because `tollgate check` refuses cycles of successors.
        while (redirect := self.redirects.get(slug)) is not None and redirect[0] <= now_s:
            slug = redirect[1]
        return slug


class Chains:
    """The chains of a catalog by name, each built at first use."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._built: dict[str, Chain] = {}

    def get(self, name: str) -> Chain | None:
        """Return the chain of a model or route; None if the name is neither."""
        chain = self._built.get(name) or self._build(name)
        if chain is not None:
            self._built[name] = chain
        return chain

    def _build(self, name: str) -> Chain | None:
        route = self._catalog.routes.get(name)
        if route is not None:
            return _chain_of_route(self._catalog, name, route)
        return _chain_of_model(self._catalog, name) if name in self._catalog.models else None


def _chain_of_model(catalog: Catalog, slug: str) -> Chain:
    return Chain(
        draw_scope=slug,
        route=None,
        rules=(RuleSection.model_construct(condition=None, steps=({slug: 100},)),),
        next_on=frozenset(ErrorCode(name) for name in NEXT_ON_DEFAULT),
        offers=(offers := _all_offers(catalog, (slug,), None)),
        cacheable_tokens_min=_cacheable(catalog, offers),
        redirects=_redirects(catalog, (slug,)),
    )


def _chain_of_route(catalog: Catalog, name: str, route: RouteSection) -> Chain:
    rules = route.all_rules
    models = {model for rule in rules for step in rule.steps for model in step}
    return Chain(
        draw_scope=name,
        route=name,
        rules=rules,
        next_on=frozenset(ErrorCode(code) for code in route.next_on),
        service_tier=route.service_tier,
        sort=route.sort,
        numbered=route.rules is not None,
        offers=(offers := _all_offers(catalog, models, route)),
        cacheable_tokens_min=_cacheable(catalog, offers),
        redirects=_redirects(catalog, models),
        metadata_names=frozenset(
            key for rule in rules if rule.condition for key in rule.condition.metadata
        ),
    )


def _all_offers(
    catalog: Catalog, slugs: Iterable[str], route: RouteSection | None
) -> dict[str, tuple[Offer, ...]]:
    """Return the offers of models and of the successors that replace them."""
    redirects = _redirects(catalog, slugs)
    every = {*slugs, *(successor for _, successor in redirects.values())}
    return {slug: _offers(catalog, slug, route) for slug in every}


def _cacheable(catalog: Catalog, slugs: Iterable[str]) -> dict[str, int]:
    sections = {slug: catalog.models[slug].cacheable for slug in slugs}
    return {slug: section.tokens_min for slug, section in sections.items() if section}


def _redirects(catalog: Catalog, slugs: Iterable[str]) -> dict[str, tuple[float, str]]:
    """Return the redirects of models and of the successors that replace them."""
    every = {each for slug in slugs for each in (slug, *list_heirs(slug, catalog.models.get))}
    return list_redirects({slug: catalog.models[slug] for slug in every})


def _offers(catalog: Catalog, slug: str, route: RouteSection | None) -> tuple[Offer, ...]:
    model, rows = catalog.models[slug], catalog.providers
    retry = merge_section(catalog.defaults.retry, route.retry if route else None)
    return tuple(
        Offer(
            attempt=Attempt(
                target=_target(
                    slug,
                    model,
                    endpoint,
                    row=rows[endpoint.provider],
                    guardrail=endpoint.guardrail or (route.guardrail if route else None),
                ),
                context_tokens=model.context,
                prices=endpoint.schedule,
                service_tiers={
                    name: tier.schedule for name, tier in endpoint.service_tiers.items()
                },
                timeouts=merge_section(catalog.defaults.timeouts, endpoint.timeouts).attempt,
                retry=retry,
                lifecycle=make_lifecycle(model, endpoint),
                place=place_of(catalog.providers[endpoint.provider], endpoint.upstream),
                prompt_use=endpoint.prompt_use.use
                if endpoint.prompt_use
                else catalog.providers[endpoint.provider].prompt_use,
                batch=_batch_terms(rows[endpoint.provider], model, endpoint),
            ),
            weight=endpoint.weight,
        )
        for endpoint in model.endpoints
    )


def _batch_terms(
    row: ProviderRow, model: ModelSection, endpoint: EndpointSection
) -> BatchTerms | None:
    """Return the terms of the provider's batches; None if they do not run the model."""
    terms = row.batch
    if terms is None or not terms.covers(endpoint.upstream):
        return None
    kinds = WIRE_FORMATS[row.codec].batch_forms.get(terms.form, frozenset())
    return terms if model.kind in kinds else None


def _target(
    slug: str,
    model: ModelSection,
    endpoint: EndpointSection,
    *,
    row: ProviderRow,
    guardrail: GuardrailSection | None,
) -> Target:
    dialect = merge_section(row.dialect, endpoint.dialect)
    if endpoint.service_tiers:
        # The rows refuse service tiers because most endpoints have no prices for them.
        refuses = tuple(name for name in dialect.refuses if name != "service_tier")
        dialect = dialect.model_copy(update={"refuses": refuses})
    return Target(
        provider=endpoint.provider,
        model=slug,
        upstream_model=endpoint.upstream,
        dialect=dialect,
        output_tokens_max=endpoint.max_output or model.max_output,
        dimensions=model.vectors.dimensions if model.vectors else None,
        supports=frozenset(model.supports),
        input=frozenset(model.input),
        files=WIRE_FORMATS[row.codec].files,
        takes=WIRE_FORMATS[row.codec].carries & _met_needs(model, dialect),
        project=row.project,
        location=row.location,
        provider_name=row.name,
        native_search=(
            WIRE_FORMATS[row.codec].native_search
            if dialect.native_search and endpoint.price.web_search is not None
            else None
        ),
        guardrail=(
            None if guardrail is None else Guardrail(id=guardrail.id, version=guardrail.version)
        ),
    )


def _met_needs(model: ModelSection, dialect: Dialect) -> frozenset[Need]:
    makes: frozenset[Need] = frozenset({"image_output"} if "image" in model.makes else ())
    return dialect.met | dialect.met_by_work | makes | {"conversation"}


class SkippedRule(Struct, frozen=True):
    """A rule that does not apply: its number, counted from 1, and its first failed condition in
    words.
    """

    number: int
    reason: str


def select_rule(
    rules: Sequence[RuleSection], request: PlanningRequest
) -> tuple[int | None, tuple[SkippedRule, ...]]:
    """Return the number (from 1) of the first rule that applies, and the skipped rules.

    If no rule applies, the number is None.
    """
    skipped: list[SkippedRule] = []
    for number, rule in enumerate(rules, start=1):
        reason = None if rule.condition is None else _failed_condition(rule.condition, request)
        if reason is None:
            return number, tuple(skipped)
        skipped.append(SkippedRule(number, reason))
    return None, tuple(skipped)


def _failed_condition(condition: ConditionSection, request: PlanningRequest) -> str | None:
    """Return the first condition that does not hold, in words; None if all hold."""
    if condition.key_tier is not None and request.tier != condition.key_tier:
        return f"tier is {request.tier or 'none'}, not {condition.key_tier}"
    for name, value in condition.metadata.items():
        if request.metadata.get(name) != value:
            return f"metadata {name} is not {value}"
    if condition.input_has is not None and condition.input_has not in request.modalities:
        return f"no {condition.input_has} in the input"
    over = condition.prompt_tokens_over
    if over is not None and request.input_tokens <= over:
        return f"about {request.input_tokens} prompt tokens, not over {over}"
    if condition.capability is not None and condition.capability not in request.capabilities:
        return f"{condition.capability} not requested"
    if condition.compaction and not request.is_compaction:
        return "no conversation is compacted"
    under, left = condition.budget_left_under, request.budget_left_percent
    if under is not None and (left is None or left >= under):
        known = "no budget is known" if left is None else f"{left}% of the budget left"
        return f"{known}, not under {under}%"
    return None


def score(scope: str, key_hash: str, name: str, weight: int) -> float:
    """Return a name's score in a draw, at least 0. A name has the highest score with a probability
    of its weight divided by all weights.

    This is rendezvous hashing: all machines get the same result, and a changed weight moves only
    requests of that name's share (Thaler and Ravishankar 1998; with weights as -w/ln(u):
    Schindelhauer and Schomaker 2005).
    """
    digest = blake2b(f"{scope}\0{key_hash}\0{name}".encode(), digest_size=8).digest()
    uniform = ((int.from_bytes(digest, "big") >> (64 - _BITS)) + 0.5) / (1 << _BITS)
    return -weight / math.log(uniform)


def rank(scope: str, key_hash: str, weights: Mapping[str, int]) -> list[tuple[str, float]]:
    """Return the names with their scores, highest first; names with weight 0 come last."""
    scores = [(name, score(scope, key_hash, name, weight)) for name, weight in weights.items()]
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))
