"""The one planner: the engine, `explain` and `plan` all ask it. Pure; it knows no clock."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError
from tollgate.core.generation import RoutingTrace
from tollgate.core.limits import TierLimits
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.draw import ranked
from tollgate.routing.planning.exclusions import (
    Check,
    Exclusion,
    exclude_by_tier,
    exclude_endpoint,
    exclude_model,
    refusal,
    shown,
)
from tollgate.routing.planning.offers import Chain, Chains, Offer
from tollgate.routing.planning.plan import Candidate, Plan
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.rules import SkippedRule, first_that_applies
from tollgate.routing.price import cost_max_nano_usd
from tollgate.routing.schema import KeyTierSection

_FORMS_OF_TENSORZERO: Final = ("tensorzero::model_name::", "tensorzero::function_name::")

_FALLBACKS_OFF: Final = Exclusion(Check.FALLBACK, "fallbacks are off")


class Survey(Struct, frozen=True, kw_only=True):
    """Everything that was considered: there is either a plan or a refusal.

    `candidates` are in the order they would be tried in, those with `removed` are not.
    """

    candidates: Sequence[Candidate]
    skipped: Sequence[SkippedRule]
    trace: RoutingTrace | None
    plan: Plan | None
    refusal: GatewayError | None


class _Leg(Struct, frozen=True, kw_only=True):
    """A model of a chain, with the name that led to it and how it was drawn."""

    name: str
    model: str
    chain: Chain
    weight: int | None = None
    draw: float | None = None


class _Choice(Struct, frozen=True, kw_only=True):
    """The rule that counts for a name, and the models it leads to."""

    chain: Chain
    rule: int | None
    skipped: tuple[SkippedRule, ...]
    legs: tuple[_Leg, ...]


class Planner:
    """Plans requests against one catalog; good for any number of them."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._chains = Chains(catalog)

    def plan(self, demand: PlanningRequest, *, now_s: float) -> Plan:
        """The attempts for a request, best first, at the prices of now.

        Raises RequestError (model_not_found, invalid_request and `*_not_supported_by_model` for
        what no model of the chain can do, context_length_exceeded) or AccessError
        (model_not_allowed, key_limit_exceeded).
        """
        survey = self.survey(demand, now_s=now_s)
        if survey.plan is None:
            raise survey.refusal or RequestError(ErrorCode.MODEL_NOT_FOUND, "There is no plan.")
        return survey.plan

    def survey(self, demand: PlanningRequest, *, now_s: float) -> Survey:
        """The plan or the refusal, with all that led to it."""
        try:
            tier = self._tier(demand)
            names = (demand.model, *demand.preferences.models)
            choices = [self._choice(name, demand) for name in names]
        except GatewayError as error:
            return Survey(candidates=(), skipped=(), trace=None, plan=None, refusal=error)
        asked = choices[0]
        read = frozenset().union(*(choice.chain.metadata_names for choice in choices))
        trace = demand.trace(route=asked.chain.route, rule=asked.rule, read=read)
        candidates: list[Candidate] = []
        obstacles: dict[str, Exclusion] = {}
        for place, leg in enumerate(_first_of_each_model(choices)):
            off = _FALLBACKS_OFF if place and not demand.fallbacks else None
            model = self.catalog.models[leg.model]
            out = off or exclude_model(leg.model, model, demand, tier=tier, asked=leg.name)
            for candidate, obstacle in self._candidates(leg, demand, tier, now_s=now_s, out=out):
                candidates.append(candidate)
                if obstacle is not None and obstacle is not off:
                    obstacles.setdefault(_subject(candidate, obstacle), obstacle)
        if not (demand.preferences.fallbacks or demand.preferences.order):
            candidates = _only_first(candidates)
        plan = self._plan(candidates, asked, trace, limits=tier.limits if tier else None)
        return Survey(
            candidates=tuple(candidates),
            skipped=asked.skipped,
            trace=trace,
            plan=plan,
            refusal=None if plan else _nothing_left(asked, obstacles, demand),
        )

    def _plan(
        self,
        candidates: Sequence[Candidate],
        asked: _Choice,
        trace: RoutingTrace,
        *,
        limits: TierLimits | None,
    ) -> Plan | None:
        kept = [candidate for candidate in candidates if candidate.removed is None]
        if not kept:
            return None
        return Plan(
            attempts=tuple(candidate.attempt for candidate in kept),
            next_on=asked.chain.next_on,
            cost_max_nano_usd=max(candidate.cost_max_nano_usd for candidate in kept),
            tokens_max=self._tokens_max(kept, trace),
            catalog_sha=self.catalog.sha,
            trace=trace,
            tier=limits,
            candidates=tuple(candidates),
            skipped=asked.skipped,
        )

    def _tokens_max(self, kept: Sequence[Candidate], trace: RoutingTrace) -> int:
        """The prompt as estimated, and the longest output that is asked for, or else held."""
        wanted = trace.output_tokens_max
        held = self.catalog.defaults.hold_output_tokens if wanted is None else wanted
        longest = max(
            self.catalog.models[candidate.attempt.target.model].max_output for candidate in kept
        )
        return trace.estimated_input_tokens + min(held, longest)

    def _tier(self, demand: PlanningRequest) -> KeyTierSection | None:
        """The limits of the key's tier; a tier that nobody defines allows nothing."""
        if demand.tier is None:
            return None
        tier = self.catalog.key_tiers.get(demand.tier)
        if tier is None and self.catalog.key_tiers:
            raise AccessError(
                ErrorCode.MODEL_NOT_ALLOWED, f"The key's tier {shown(demand.tier)} is not defined."
            )
        return tier

    def _choice(self, name: str, demand: PlanningRequest) -> _Choice:
        bare = _without_form(name)
        chain = self._chains.get(self.catalog.target(bare))
        if chain is None:
            nearest = self.catalog.nearest(bare)
            hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
            raise RequestError(
                ErrorCode.MODEL_NOT_FOUND,
                f"There is no model, alias or route named {shown(bare)}.{hint}",
                param="model" if name == demand.model else "models",
            )
        rule, skipped = first_that_applies(chain.rules, demand)
        legs = () if rule is None else tuple(_legs(bare, chain, rule, demand))
        return _Choice(
            chain=chain, rule=rule if chain.numbered else None, skipped=skipped, legs=legs
        )

    def _candidates(
        self,
        leg: _Leg,
        demand: PlanningRequest,
        tier: KeyTierSection | None,
        *,
        now_s: float,
        out: Exclusion | None,
    ) -> Iterator[tuple[Candidate, Exclusion | None]]:
        """The endpoints of a model in the order to try them, each with what is in its way."""
        costed = [
            (self._cost_max_nano_usd(offer, demand, now_s), offer, draw)
            for offer, draw in _drawn(leg, demand)
        ]
        for cost, offer, draw in _as_preferred(costed, demand):
            attempt = offer.attempt
            price = attempt.prices.at(now_s, demand.input_tokens)
            obstacle = (
                out or exclude_endpoint(attempt, price, demand) or exclude_by_tier(cost, tier)
            )
            yield (
                Candidate(
                    attempt=attempt,
                    cost_max_nano_usd=cost,
                    model_weight=leg.weight,
                    model_draw=leg.draw,
                    weight=offer.weight,
                    draw=draw,
                    removed=obstacle.reason if obstacle else None,
                ),
                obstacle,
            )

    def _cost_max_nano_usd(self, offer: Offer, demand: PlanningRequest, now_s: float) -> int:
        attempt = offer.attempt
        model = self.catalog.models[attempt.target.model]
        wanted = demand.output_tokens_max
        held = self.catalog.defaults.hold_output_tokens if wanted is None else wanted
        input_tokens_max = min(demand.input_tokens_max, model.context)
        return demand.choices * max(
            cost_max_nano_usd(input_tokens_max, min(held, model.max_output), price)
            for price in attempt.prices.possible(now_s, input_tokens_max)
        )


def _legs(name: str, chain: Chain, rule: int, demand: PlanningRequest) -> Iterator[_Leg]:
    """The models of a rule, each step's own drawn among themselves."""
    for step in chain.rules[rule - 1].steps:
        if len(step) == 1:
            yield _Leg(name=name, model=next(iter(step)), chain=chain)
            continue
        for model, draw in ranked(chain.draw_scope, demand.draw_key_hash, step):
            yield _Leg(name=name, model=model, chain=chain, weight=step[model], draw=draw)


def _first_of_each_model(choices: Sequence[_Choice]) -> list[_Leg]:
    legs: dict[str, _Leg] = {}
    for choice in choices:
        for leg in choice.legs:
            legs.setdefault(leg.model, leg)
    return list(legs.values())


def _drawn(leg: _Leg, demand: PlanningRequest) -> list[tuple[Offer, float | None]]:
    """The offers of a model in order, by weight where they have one."""
    offers = leg.chain.offers[leg.model]
    if len(offers) == 1 or offers[0].weight is None:
        return [(offer, None) for offer in offers]
    by_id = {offer.attempt.target.endpoint_id: offer for offer in offers}
    weights: Mapping[str, int] = {name: offer.weight or 0 for name, offer in by_id.items()}
    scores = ranked(leg.chain.draw_scope, demand.draw_key_hash, weights)
    return [(by_id[name], draw) for name, draw in scores]


_Costed = tuple[int, Offer, float | None]


def _as_preferred(costed: list[_Costed], demand: PlanningRequest) -> list[_Costed]:
    """The offers of a model in the order that the caller wishes, where one is wished."""
    wishes = demand.preferences
    if wishes.sort == "price":
        costed = sorted(costed, key=lambda each: each[0])
    if wishes.order:
        order = {provider: place for place, provider in reversed(list(enumerate(wishes.order)))}
        last = len(order)
        costed = sorted(costed, key=lambda each: order.get(each[1].attempt.target.provider, last))
    return costed


def _only_first(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates, with all but the first of those that may serve marked as not wanted."""
    first = next((each for each in candidates if each.removed is None), None)
    return [
        replace(each, removed=_FALLBACKS_OFF.reason)
        if each.removed is None and each is not first
        else each
        for each in candidates
    ]


def _subject(candidate: Candidate, obstacle: Exclusion) -> str:
    """What an obstacle is in the way of: a model, or one of its endpoints."""
    target = candidate.attempt.target
    return target.model if obstacle.check <= Check.CONTEXT else target.endpoint_id


def _nothing_left(
    asked: _Choice, obstacles: Mapping[str, Exclusion], demand: PlanningRequest
) -> GatewayError:
    if not obstacles:
        return RequestError(
            ErrorCode.INVALID_REQUEST,
            f"No rule of {shown(demand.model)} applies to this request.",
            param="model",
        )
    return refusal(demand.model, obstacles, demand)


def _without_form(name: str) -> str:
    for form in _FORMS_OF_TENSORZERO:
        if name.startswith(form):
            return name.removeprefix(form)
    return name
