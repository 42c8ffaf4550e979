"""The JSON form of an explained plan, for the API and the command line."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self

from pydantic import BaseModel, Field, JsonValue

from tollgate.core.content import ServerToolId
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError
from tollgate.core.money.amounts import usd
from tollgate.core.principal import Principal
from tollgate.core.records.generation import RoundsBound
from tollgate.core.request import GenerationRequest, SystemMessage
from tollgate.core.routing.endpoint_status import KeyFault
from tollgate.core.work.base import Work
from tollgate.engine.generate import SETTLE_BUDGET_S
from tollgate.engine.rounds.tool_injection import Injected, InjectedTools
from tollgate.engine.routing.simulation import Fault, SimulatedAttempt, simulate
from tollgate.ingress.base import ParsedWork
from tollgate.providers.ports.parameters import stated_parameters
from tollgate.routing.defaults_sections import TimeoutsSection
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import Cause, Exclusion
from tollgate.routing.planning.offers import SkippedRule
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planner import Candidate, Planner, Survey
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.tools.ports.base import RequestTools
from tollgate.web.http.cors import WebLimits
from tollgate.web.models.endpoint_status import EndpointStatus
from tollgate.web.shapes import Usd, moment

if TYPE_CHECKING:
    from tollgate.engine.guardrails.bounds import BoundedGuard

# Imported at first use, because few catalogs have guardrails or a cache.
_BOUND_GUARDS: Final = DottedName[Callable[..., "tuple[BoundedGuard, ...]"]](
    "tollgate.engine.guardrails.bounds:bound_guards"
)
_IS_REPEATABLE: Final = DottedName[Callable[[ParsedWork], bool]](
    "tollgate.engine.replies.answer_cache:is_repeatable"
)


class SkippedRuleObject(BaseModel):
    """A rule that does not apply."""

    rule: int
    reason: str

    @classmethod
    def of(cls, skipped: SkippedRule) -> Self:
        """Convert a skipped rule to its JSON."""
        return cls(rule=skipped.number, reason=skipped.reason)


class CandidateObject(BaseModel):
    """An endpoint that was considered, in the order in which endpoints are tried."""

    attempt: int | None = Field(
        description="position in the plan, from 1; null for an excluded endpoint"
    )
    model: str
    provider: str
    upstream: str = Field(description="the provider's name for the model")
    service_tier: str | None = Field(description="requested tier; null for the default")
    model_weight: int | None = Field(description="percent, if models are drawn by weight")
    model_draw: float | None = Field(description="score of the model's draw; the highest is first")
    weight: int | None = Field(description="percent, if the model's endpoints are drawn by weight")
    draw: float | None = Field(description="score of the endpoint's draw")
    cost_max: Usd = Field(description="highest cost of the request at this endpoint")
    batch_percent: int | None = Field(
        description="price of a line of a batch in percent, if the provider runs batches of its "
        "own; the lines of a batch are submitted to the first endpoint only, and those with tools, "
        "files, guardrails or limited sessions run like interactive requests"
    )
    reads: bool = Field(
        description="whether the gateway would read the request's documents for this endpoint; an "
        "explanation leaves their text, pictures and fees out of `cost_max` and `hold`"
    )
    removed: str | None = Field(description="reason for the exclusion")
    resting_until: datetime | None = Field(
        description="end of a cooldown after failures, until which the endpoint is tried last"
    )
    latency_ms: int | None = Field(description="time to the first token, as measured here")
    tokens_per_s: float | None = Field(description="speed of whole answers, as measured here")
    key: KeyFault | None = Field(
        description="fault of the provider's key: no key was found, or the provider rejected it"
    )
    key_seen_at: datetime | None = Field(description="last request that found the fault")


class ExplainedError(BaseModel):
    """The error that the caller would get."""

    code: str
    message: str
    param: str | None

    @classmethod
    def of(cls, error: GatewayError) -> Self:
        """Convert an error to its JSON."""
        return cls(code=error.code.value, message=error.message, param=error.param)


class SimulatedAttemptObject(BaseModel):
    """One simulated attempt; `error` is null for the attempt that serves."""

    model: str
    provider: str
    upstream: str
    service_tier: str | None
    error: str | None
    took_s: float
    pause_s: float = Field(description="pause before the next attempt, in seconds")

    @classmethod
    def of(cls, simulated: SimulatedAttempt) -> Self:
        """Convert a simulated attempt to its JSON."""
        target = simulated.attempt.target
        return cls(
            model=target.model,
            provider=target.provider,
            upstream=target.upstream_model,
            service_tier=simulated.attempt.service_tier,
            error=simulated.error.value if simulated.error else None,
            took_s=round(simulated.took_s, 3),
            pause_s=round(simulated.pause_s, 3),
        )


class SimulationObject(BaseModel):
    """The attempts if endpoints fail as simulated; `error` is null if an attempt serves."""

    faults: list[str]
    attempts: list[SimulatedAttemptObject]
    error: str | None

    @classmethod
    def of(cls, plan: Plan, faults: Sequence[Fault], time_s: float) -> Self:
        """Simulate the engine's attempts within `time_s` seconds."""
        simulated = simulate(plan, faults, time_s=time_s)
        return cls(
            faults=[f"{fault.kind}@{fault.where}" for fault in faults],
            attempts=[SimulatedAttemptObject.of(attempt) for attempt in simulated.attempts],
            error=simulated.error.value if simulated.error else None,
        )


class ExplainedTool(BaseModel):
    """A tool that the gateway runs for a model, and the engine that serves the tool."""

    id: ServerToolId
    engine: str
    by_provider: bool = Field(description="whether a provider that can run the tool does so")
    uses_max: int
    fees: Usd = Field(description="fees of all runs by the engine")

    @classmethod
    def of(cls, injected: Injected, tools: RequestTools) -> Self:
        """Convert a tool to its JSON."""
        return cls(
            id=injected.tool.id,
            engine=injected.bound.engine,
            by_provider=tools.native(injected.tool) is not None,
            uses_max=injected.bound.uses_max,
            fees=usd(injected.bound.fees_nano_usd),
        )


class ExplainedRounds(BaseModel):
    """Upper bounds on the rounds, because each prompt may contain all earlier results."""

    rounds_max: int
    result_tokens: int = Field(description="tokens of the results of all runs")
    fees: Usd = Field(description="fees of all runs")
    tools: list[ExplainedTool]

    @classmethod
    def of(cls, bound: RoundsBound, injected: InjectedTools | None) -> Self:
        """Convert a bound to its JSON."""
        return cls(
            tools=[ExplainedTool.of(tool, injected.tools) for tool in injected.by_name.values()]
            if injected
            else [],
            rounds_max=bound.rounds_max,
            result_tokens=bound.result_tokens,
            fees=usd(bound.fees_nano_usd),
        )


class ExplainedGuardrail(BaseModel):
    """A guardrail of the gateway that would judge the request."""

    name: str
    kind: str = Field(description="patterns, moderation or judge")
    stages: list[str]
    action: str
    cost_max: Usd = Field(description="highest cost of all judgements, which is part of `hold`")

    @classmethod
    def of(cls, guard: "BoundedGuard") -> Self:
        """Convert a guardrail to its JSON."""
        return cls(
            name=guard.name,
            kind=guard.row.kind,
            stages=list(guard.row.stages),
            action=guard.row.action,
            cost_max=usd(guard.cost_max_nano_usd),
        )


class ExplainedCache(BaseModel):
    """The route's reuse of answers."""

    ttl_s: int
    price_percent: int
    unused: str | None = Field(description="reason why this request is always answered anew")

    @classmethod
    def of(
        cls, survey: Survey, catalog: Catalog, principal: Principal, parsed: ParsedWork
    ) -> Self | None:
        """Describe the cache of a request's route; None if the route has none."""
        route = survey.trace.route if survey.trace else None
        section = catalog.routes[route].cache if route is not None else None
        if section is None:
            return None
        unused = None
        if principal.answer_sharing is None:
            unused = "the key has no answer_cache"
        elif not _IS_REPEATABLE()(parsed):
            unused = "answers to this request may differ"
        return cls(ttl_s=section.ttl_s, price_percent=section.price_percent, unused=unused)


class ExplainedPreset(BaseModel):
    """The request as its preset completes it."""

    name: str
    system: str | None = Field(description="system prompt with the values of the variables")
    max_tokens: int | None
    reasoning: str | None
    parameters: dict[str, JsonValue]

    @classmethod
    def of(cls, work: Work | None) -> Self | None:
        """Convert a completed request to its JSON; None for a request without a preset."""
        if not isinstance(work, GenerationRequest) or work.preset is None:
            return None
        systems = (each for each in work.messages if isinstance(each, SystemMessage))
        parts = [part.text for each in systems for part in each.content]
        return cls(
            name=work.preset,
            system="\n".join(parts) or None,
            max_tokens=work.output_tokens_max,
            reasoning=work.reasoning.effort if work.reasoning else None,
            parameters=stated_parameters(work),
        )


class ExplanationObject(BaseModel):
    """The routing of a request, with reasons; nothing is sent, held or recorded."""

    requested: str
    target: str | None = Field(description="model or route of the requested name, if it is known")
    route: str | None
    rule: int | None = Field(description="number of the applied rule, from 1; null without rules")
    skipped: list[SkippedRuleObject]
    catalog_sha: str
    drawn_by: str = Field(description="hash of the session id, or else of the request id")
    prompt_tokens: int = Field(description="estimate, which rules compare")
    prompt_tokens_max: int = Field(description="upper bound, from which costs are computed")
    candidates: list[CandidateObject]
    hold: Usd | None = Field(description="amount that would be held; null for a refusal")
    rounds: ExplainedRounds | None = Field(
        description="bounds of the rounds with tools that the gateway runs; null without such tools"
    )
    guardrails: list[ExplainedGuardrail]
    cache: ExplainedCache | None = Field(description="reuse of answers; null if the route has none")
    preset: ExplainedPreset | None
    next_on: list[str] = Field(description="errors after which the next attempt is made")
    unmet: list[str] = Field(description="preferences without effect, for lack of measurements")
    error: ExplainedError | None = Field(description="the refusal; null if the request has a plan")
    simulation: SimulationObject | None

    @property
    def serves(self) -> bool:
        """True if an endpoint would serve the request."""
        return self.error is None and not (self.simulation and self.simulation.error)


def explain_plan(
    survey: Survey,
    wanted: PlanningRequest,
    catalog_sha: str,
    *,
    faults: Sequence[Fault] = (),
    time_s: float,
    status: EndpointStatus,
    tools: InjectedTools | None = None,
    guards: Sequence["BoundedGuard"] = (),
    cache: ExplainedCache | None = None,
    work: Work | None = None,
) -> ExplanationObject:
    """Explain a survey. Endpoints in cooldown are tried last; requests that sort by speed use the
    measured speeds.

    `time_s` is the time for the whole answer. Raises the refusal of a request whose model name is
    unknown, and RequestError for a fault that matches nothing in the plan.
    """
    if survey.trace is None and survey.refusal is not None:
        raise survey.refusal
    plan = (
        survey.plan.fastest_first(status.speeds).resting_last(status.resting)
        if survey.plan
        else None
    )
    attempts = plan.attempts if plan else ()
    places = {_place_of(attempt): place for place, attempt in enumerate(attempts, start=1)}
    return ExplanationObject(
        requested=wanted.model,
        target=survey.target,
        route=survey.trace.route if survey.trace else None,
        rule=survey.trace.rule if survey.trace else None,
        skipped=[SkippedRuleObject.of(skipped) for skipped in survey.skipped_rules],
        catalog_sha=catalog_sha,
        drawn_by=wanted.draw_key_hash,
        prompt_tokens=wanted.input_tokens,
        prompt_tokens_max=wanted.input_tokens_max,
        candidates=[
            _candidate(
                each,
                place=places.get(_place_of(each.attempt)),
                status=status,
            )
            for each in survey.candidates
        ],
        hold=usd(plan.cost_max_nano_usd + sum(each.cost_max_nano_usd for each in guards))
        if plan
        else None,
        rounds=ExplainedRounds.of(wanted.rounds, tools) if wanted.rounds else None,
        guardrails=[ExplainedGuardrail.of(guard) for guard in guards],
        cache=cache,
        preset=ExplainedPreset.of(work),
        next_on=sorted(plan.next_on) if plan else [],
        unmet=list(plan.unmet) if plan else [],
        error=ExplainedError.of(survey.refusal) if survey.refusal else None,
        simulation=SimulationObject.of(plan, faults, time_s) if plan and faults else None,
    )


def guards_of(
    planner: Planner, work: Work, principal: Principal, survey: Survey, *, now_s: float
) -> tuple["BoundedGuard", ...]:
    """Return the guardrails of a request that has a plan."""
    if not planner.catalog.guardrails or survey.plan is None:
        return ()
    return _BOUND_GUARDS()(planner, work, principal, survey.plan, now_s=now_s)


def answer_time_s(parsed: ParsedWork, timeouts: TimeoutsSection) -> float:
    """Return the time limit for an answer, in seconds, on a host without invocation deadlines."""
    if not parsed.stream:
        return timeouts.non_streamed_total_s
    return WebLimits().stream_total_s - SETTLE_BUDGET_S


_Place = tuple[str, str, str | None]


def _place_of(attempt: Attempt) -> _Place:
    return attempt.target.model, attempt.target.endpoint_id, attempt.service_tier


def _candidate(
    candidate: Candidate, *, place: int | None, status: EndpointStatus
) -> CandidateObject:
    attempt, excluded = candidate.attempt, candidate.exclusion
    until_s = status.resting.get(attempt.target.endpoint_id)
    speed = status.speeds.get(attempt.target.endpoint_id)
    if place is None and excluded is None:
        # Without fallbacks, the plan contains only the fastest endpoint.
        excluded = Exclusion(Cause.FALLBACKS_OFF)
    tokens_per_s = None if speed is None else speed.tokens_per_s
    return CandidateObject(
        attempt=place,
        model=attempt.target.model,
        provider=attempt.target.provider,
        upstream=attempt.target.upstream_model,
        service_tier=attempt.service_tier,
        model_weight=candidate.model_weight,
        model_draw=candidate.model_draw,
        weight=candidate.weight,
        draw=candidate.draw,
        cost_max=usd(candidate.cost_max_nano_usd),
        batch_percent=attempt.batch_percent,
        reads=candidate.reads,
        removed=excluded.reason if excluded else None,
        resting_until=None if until_s is None else moment(int(until_s)),
        latency_ms=None if speed is None else speed.latency_ms,
        tokens_per_s=None if tokens_per_s is None else round(tokens_per_s, 1),
        **status.key_fields(attempt.target),
    )
