"""Plans requests for the engine, `explain` and `plan`, without side effects."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.core.records.generation import RoutingTrace
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.cost_ceilings import exclude_by_cost, lowest_ceiling
from tollgate.routing.planning.endpoint_order import (
    at_service_tiers,
    order_by_preference,
    rank_offers,
)
from tollgate.routing.planning.exclusions import (
    Cause,
    Check,
    Exclusion,
    exclude_endpoint,
    exclude_model,
    exclude_retired,
    find_tier,
    refusal,
    shorten,
)
from tollgate.routing.planning.offers import Chain, Chains, Offer, SkippedRule, rank, select_rule
from tollgate.routing.planning.output_limit import with_slack
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.round_sizes import cost_max_of_rounds
from tollgate.routing.planning.unknown_names import describe_unknown
from tollgate.routing.schema import KeyTierSection

# Imported at first use, because most processes never serve a request with a document.
_READS_FOR: Final = DottedName[Callable[[Target, PlanningRequest], bool]](
    "tollgate.routing.planning.document_fees:reads_for"
)
_FEE_MAX_NANO_USD: Final = DottedName[Callable[..., int]](
    "tollgate.routing.planning.document_fees:fee_max_nano_usd"
)

_FALLBACKS_OFF: Final = Exclusion(Cause.FALLBACKS_OFF)


class Candidate(Struct, frozen=True, kw_only=True):
    """An endpoint that was considered; draws are the scores from `offers.rank`."""

    attempt: Attempt
    cost_max_nano_usd: int
    model_weight: int | None = None
    """Weight of the model in its step, in percent; None if no model was drawn."""
    model_draw: float | None = None
    weight: int | None = None
    """Weight of the endpoint, in percent; None if no endpoint was drawn."""
    draw: float | None = None
    exclusion: Exclusion | None = None
    """The reason why the endpoint is not tried; None if it is."""
    reads: bool = False
    """True if the gateway reads documents for this endpoint."""


class Survey(Struct, frozen=True, kw_only=True):
    """The candidates that the planner considered, with either a plan or a refusal."""

    candidates: Sequence[Candidate]
    """Candidates in the order in which they are tried; excluded ones are not tried."""
    skipped_rules: Sequence[SkippedRule]
    """Rules before the first rule that applies."""
    trace: RoutingTrace | None
    """None if the requested name is unknown or the key's tier is not defined."""
    plan: Plan | None
    refusal: GatewayError | None
    target: str | None = None
    """The model or route that the requested name stands for; None if the name is unknown."""


class _RequestedName(Struct, frozen=True, kw_only=True):
    """A requested name without TensorZero's prefix."""

    name: str
    is_derived: bool
    """True unless the name is a slug, alias or route."""
    providers: frozenset[str]
    """Rows selected by a prefix of the name; their endpoints come first."""


class _RankedModel(Struct, frozen=True, kw_only=True):
    """A model in a chain, with its draw and the requested name that led to the chain."""

    requested: _RequestedName
    slug: str
    chain: Chain
    weight: int | None = None
    draw: float | None = None


class _NamedChain(Struct, frozen=True, kw_only=True):
    """The chain behind a requested name, the first rule that applies, and its models in order."""

    chain: Chain
    rule: int | None
    skipped_rules: tuple[SkippedRule, ...]
    models: tuple[_RankedModel, ...]


class Planner:
    """Plans requests with one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._chains = Chains(catalog)
        self._speed_policy = catalog.defaults.speeds.policy

    def plan(self, request: PlanningRequest, *, now_s: float) -> Plan:
        """Return the attempts for a request, the best first, at the prices of `now_s`.

        Raises RequestError (model_not_found, context_length_exceeded, invalid_request, or
        `*_not_supported_by_model`) or AccessError (model_not_allowed, key_limit_exceeded).
        """
        survey = self.survey(request, now_s=now_s)
        if survey.plan is None:
            raise survey.refusal or RequestError(ErrorCode.MODEL_NOT_FOUND, "There is no plan.")
        return survey.plan

    def route_of(self, name: str) -> str | None:
        """Return the route that a requested name stands for; None if it does not stand
        for a route.
        """
        target = self.catalog.target(name)
        return target if target in self.catalog.routes else None

    def survey(self, request: PlanningRequest, *, now_s: float) -> Survey:
        """Return the plan or the refusal, together with all candidates and exclusions."""
        try:
            tier = find_tier(self.catalog, request.tier)
            names = (request.model, *request.preferences.models)
            chains = [self._named_chain(name, request, now_s=now_s) for name in names]
        except GatewayError as error:
            return Survey(candidates=(), skipped_rules=(), trace=None, plan=None, refusal=error)
        first = chains[0]
        request = request.under(self.catalog.defaults.prompt_policy, sort=first.chain.sort)
        metadata_names = frozenset().union(*(each.chain.metadata_names for each in chains))
        trace = request.trace(
            route=first.chain.route,
            rule=first.rule,
            metadata_names=metadata_names,
            bent=first.chain.bends(first.rule),
            is_candidate=self.catalog.is_candidate,
        )
        candidates: list[Candidate] = []
        exclusions: dict[str, Exclusion] = {}
        first_space = ""
        wants = "pdf" in request.modalities and request.reads_documents
        reads = wants and self.catalog.pdf is not None
        for place, model in enumerate(_first_of_each_model(chains)):
            off = _FALLBACKS_OFF if place and not request.fallbacks else None
            section = self.catalog.models[model.slug]
            space = section.vector_space(model.slug)
            first_space = first_space or space
            differs = section.vectors is not None and space != first_space
            excluded = (
                off
                or exclude_model(
                    model.slug,
                    section,
                    request,
                    tier=tier,
                    name=model.requested.name,
                    is_derived=model.requested.is_derived,
                    reads=reads,
                )
                or (Exclusion(Cause.VECTOR_SPACE) if differs else None)
            )
            for candidate in self._candidates(model, request, tier, now_s=now_s, excluded=excluded):
                candidates.append(candidate)
                exclusion = candidate.exclusion
                if exclusion is not None and exclusion is not off:
                    exclusions.setdefault(_subject(candidate, exclusion), exclusion)
        if not (request.preferences.fallbacks or request.preferences.order):
            candidates = _keep_first(candidates, request)
        plan = self._plan(candidates, first, trace, request=request, tier=tier)
        return Survey(
            candidates=tuple(candidates),
            skipped_rules=first.skipped_rules,
            trace=trace,
            plan=plan,
            refusal=None if plan else _refuse(exclusions, request),
            target=first.chain.draw_scope,
        )

    def _plan(
        self,
        candidates: Sequence[Candidate],
        first: _NamedChain,
        trace: RoutingTrace,
        *,
        request: PlanningRequest,
        tier: KeyTierSection | None,
    ) -> Plan | None:
        usable = [candidate for candidate in candidates if candidate.exclusion is None]
        if not usable:
            return None
        ceiling = lowest_ceiling(request.ceiling, tier)
        return Plan(
            attempts=tuple(candidate.attempt for candidate in usable),
            next_on=first.chain.next_on,
            cost_max_nano_usd=max(candidate.cost_max_nano_usd for candidate in usable),
            tokens_max=self._tokens_max(usable, request),
            catalog_sha=self.catalog.sha,
            trace=trace,
            tier=tier.limits if tier else None,
            ceiling_nano_usd=ceiling[0] if ceiling else None,
            sort=request.sort,
            speed_policy=self._speed_policy,
        )

    def _tokens_max(self, usable: Sequence[Candidate], request: PlanningRequest) -> int:
        """Return the tokens that count toward limits: all prompts and their longest outputs."""
        limit = request.output_tokens_max
        held = self.catalog.defaults.hold_output_tokens if limit is None else limit
        longest = max(candidate.attempt.target.output_tokens_max or held for candidate in usable)
        # Most requests with server tools run one tool; the model then reads the prompt again.
        reads = 2 if request.rounds else 1
        return sum(reads * prompt.estimate + min(held, longest) for prompt in request.each_prompt)

    def _named_chain(self, name: str, request: PlanningRequest, *, now_s: float) -> _NamedChain:
        bare = self.catalog.plain_name(name)
        # `target` strips one prefix; stripping two would hide the route from guardrails.
        chain = self._chains.get(self.catalog.target(name))
        if chain is None:
            param = "model" if name == request.model else "models"
            raise RequestError(
                ErrorCode.MODEL_NOT_FOUND, describe_unknown(self.catalog, bare), param=param
            )
        rule, skipped_rules = select_rule(chain.rules, request)
        is_derived = not self.catalog.states(bare)
        requested = _RequestedName(
            name=bare,
            is_derived=is_derived,
            providers=self.catalog.named(bare).providers if is_derived else frozenset(),
        )
        models = (
            ()
            if rule is None
            else tuple(_rank_models(requested, chain, rule, request, now_s=now_s))
        )
        return _NamedChain(
            chain=chain,
            rule=rule if chain.numbered else None,
            skipped_rules=skipped_rules,
            models=models,
        )

    def _candidates(
        self,
        model: _RankedModel,
        request: PlanningRequest,
        tier: KeyTierSection | None,
        *,
        now_s: float,
        excluded: Exclusion | None,
    ) -> Iterator[Candidate]:
        """Yield a model's endpoints in the order of trying; `excluded` applies to all of these."""
        has_ceiling = lowest_ceiling(request.ceiling, tier) is not None
        chain = model.chain
        ranked = rank_offers(
            chain.offers[model.slug], chain.draw_scope, chain.drawn_by(request, (model.slug,))
        )
        costed = [
            (self.cost_max_nano_usd(offer, request, now_s, has_ceiling=has_ceiling), offer, draw)
            for offer, draw in at_service_tiers(ranked, request.service_tier, chain.service_tier)
        ]
        for cost, offer, draw in order_by_preference(costed, request, model.requested.providers):
            attempt = offer.attempt
            price = attempt.asked_prices.at(now_s, request.input_tokens, request.picture)
            exclusion = (
                excluded
                or exclude_retired(attempt, now_s)
                or exclude_endpoint(attempt, price, request)
                or exclude_by_cost(cost, request.ceiling, tier)
            )
            yield Candidate(
                attempt=attempt,
                cost_max_nano_usd=cost,
                model_weight=model.weight,
                model_draw=model.draw,
                weight=offer.weight,
                draw=draw,
                exclusion=exclusion,
                reads=self._reads(attempt, request),
            )

    def _reads(self, attempt: Attempt, request: PlanningRequest) -> bool:
        """Return True if the gateway reads any document of the request for this endpoint."""
        if self.catalog.pdf is None or "pdf" not in request.modalities:
            return False
        return _READS_FOR()(attempt.target, request)

    def _fee_max_nano_usd(self, attempt: Attempt, request: PlanningRequest) -> int:
        """Return the maximum fee for the pages that the gateway reads for this endpoint."""
        section = self.catalog.pdf
        if section is None or request.documents is None or not self._reads(attempt, request):
            return 0
        return _FEE_MAX_NANO_USD()(attempt.target, request.documents, section)

    def cost_max_nano_usd(
        self, offer: Offer, request: PlanningRequest, now_s: float, *, has_ceiling: bool
    ) -> int:
        """Return the maximum cost at an endpoint, and with a ceiling that of the longest answer."""
        attempt = offer.attempt
        model = self.catalog.models[attempt.target.model]
        limit = request.output_tokens_max
        if has_ceiling:
            longest = attempt.longest_output
            held = with_slack(longest if limit is None else min(limit, longest))
        else:
            held = self.catalog.defaults.hold_output_tokens if limit is None else with_slack(limit)
            held = min(held, attempt.target.output_tokens_max or held)
        context = model.context * (request.inputs or 1)
        fees = self._fee_max_nano_usd(attempt, request)
        if request.rounds is not None:
            return fees + cost_max_of_rounds(
                attempt, request, request.rounds, now_s=now_s, context=context, answer_max=held
            )
        return fees + request.choices * sum(
            attempt.cost_max_nano_usd(
                now_s,
                min(prompt.most, context),
                held,
                units_max=request.units_max,
                picture=request.picture,
            )
            for prompt in request.each_prompt
        )


def _rank_models(
    requested: _RequestedName, chain: Chain, rule: int, request: PlanningRequest, *, now_s: float
) -> Iterator[_RankedModel]:
    """Yield a rule's models in the order of the draw; successors replace retired models after the
    draw.
    """
    for step in chain.rules[rule - 1].steps:
        if len(step) == 1:
            slug = chain.model_at(next(iter(step)), now_s)
            yield _RankedModel(requested=requested, slug=slug, chain=chain)
            continue
        for slug, draw in rank(chain.draw_scope, chain.drawn_by(request, step), step):
            yield _RankedModel(
                requested=requested,
                slug=chain.model_at(slug, now_s),
                chain=chain,
                weight=step[slug],
                draw=draw,
            )


def _first_of_each_model(chains: Sequence[_NamedChain]) -> list[_RankedModel]:
    first: dict[str, _RankedModel] = {}
    for chain in chains:
        for model in chain.models:
            first.setdefault(model.slug, model)
    return list(first.values())


def _keep_first(candidates: list[Candidate], request: PlanningRequest) -> list[Candidate]:
    """Exclude all but the first usable candidate, unless `sort_measured` will do that
    later.
    """
    if request.sort in ("throughput", "latency"):
        return candidates
    first = next((each for each in candidates if each.exclusion is None), None)
    return [
        replace(each, exclusion=_FALLBACKS_OFF)
        if each.exclusion is None and each is not first
        else each
        for each in candidates
    ]


def _subject(candidate: Candidate, exclusion: Exclusion) -> str:
    """Return the name of what is excluded: the slug of a model, or the id of an endpoint."""
    target = candidate.attempt.target
    return target.model if exclusion.check <= Check.CONTEXT else target.endpoint_id


def _refuse(exclusions: Mapping[str, Exclusion], request: PlanningRequest) -> GatewayError:
    if not exclusions:
        return RequestError(
            ErrorCode.INVALID_REQUEST,
            f"No rule of {shorten(request.model)} applies to this request.",
            param="model",
        )
    return refusal(request.model, exclusions, request)
