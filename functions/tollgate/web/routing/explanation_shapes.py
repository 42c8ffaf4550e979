"""The JSON form of an explained plan, for the API and the command line."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from msgspec.structs import replace
from pydantic import BaseModel, Field

from tollgate.core.errors import GatewayError
from tollgate.core.money.amounts import usd
from tollgate.core.request import ProviderSort
from tollgate.core.routing.endpoint_status import KeyFault
from tollgate.core.work.base import Work
from tollgate.engine.generate import SETTLE_BUDGET_S
from tollgate.engine.rounds.tool_injection import InjectedTools
from tollgate.engine.routing.simulation import Fault, SimulatedAttempt, simulate
from tollgate.ingress.base import ParsedWork
from tollgate.routing.defaults_sections import TimeoutsSection
from tollgate.routing.planning.exclusions import Cause, Exclusion
from tollgate.routing.planning.measured_sort import describe_thin, sort_measured
from tollgate.routing.planning.offers import SkippedRule
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planner import Candidate, Survey
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.web.http.cors import WebLimits
from tollgate.web.models.endpoint_status import EndpointStatus
from tollgate.web.routing.explained_parts import (
    ExplainedCache,
    ExplainedCandidate,
    ExplainedGuardrail,
    ExplainedPreset,
    ExplainedQuota,
    ExplainedRounds,
    ExplainedShadow,
)
from tollgate.web.shapes import Usd, moment


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
        "files, guardrails, limited sessions or quotas of requests or tokens run like interactive "
        "requests"
    )
    batch_lack: str | None = Field(
        description="what this deployment lacks for the provider's batches; if anything, lines run "
        "like interactive requests"
    )
    reads: bool = Field(
        description="whether the gateway would read the request's documents for this endpoint; an "
        "explanation leaves their text, pictures and fees out of `cost_max` and `hold`"
    )
    removed: str | None = Field(description="reason for the exclusion")
    resting_until: datetime | None = Field(
        description="for an endpoint in cooldown, time from which one request probes it; all other "
        "requests try it last until it answers"
    )
    probes: bool = Field(description="whether this request would be the probe if it came now")
    latency_ms: int | None = Field(
        description="time to the first token, as measured here for prompts of this size"
    )
    tokens_per_s: float | None = Field(description="speed of whole answers, as measured here")
    cached_percent: int | None = Field(
        description="percentage of prompt tokens that the provider had cached, as measured here"
    )
    samples: int | None = Field(
        description="number of measured answers; older ones have less weight"
    )
    thin: str | None = Field(
        description="why the endpoint keeps its place while others are sorted by measurements"
    )
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


class ExplanationObject(BaseModel):
    """The routing of a request, with reasons; nothing is sent, held or recorded."""

    requested: str
    target: str | None = Field(description="model or route of the requested name, if it is known")
    route: str | None
    rule: int | None = Field(description="number of the applied rule, from 1; null without rules")
    skipped: list[SkippedRuleObject]
    bend: str | None = Field(
        description="rule that applies because of its budget, and the share that is left"
    )
    catalog_sha: str
    candidate: ExplainedCandidate | None = Field(
        description="catalog that a share of the keys tries; null if there is none"
    )
    drawn_by: str = Field(description="hash of the session id, or else of the request id")
    conversation: str | None = Field(
        description="hash of the conversation's beginning, which replaces `drawn_by` for models "
        "whose `cacheable` minimum the prompt reaches; null with a session id or a short prompt"
    )
    prompt_tokens: int = Field(description="estimate, which rules compare")
    prompt_tokens_max: int = Field(description="upper bound, from which costs are computed")
    candidates: list[CandidateObject]
    hold: Usd | None = Field(description="amount that would be held; null for a refusal")
    rounds: ExplainedRounds | None = Field(
        description="bounds of the rounds with tools that the gateway runs; null without such tools"
    )
    guardrails: list[ExplainedGuardrail]
    cache: ExplainedCache | None = Field(description="reuse of answers; null if the route has none")
    shadow: ExplainedShadow | None = Field(
        description="model whose answers are compared; null if the route has none"
    )
    quotas: list[ExplainedQuota] = Field(description="quotas of the key that count the request")
    preset: ExplainedPreset | None
    sorted_by: ProviderSort | None = Field(
        description="measurements by which endpoints are sorted; null if they are not"
    )
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
    guardrails: Sequence[ExplainedGuardrail] = (),
    cache: ExplainedCache | None = None,
    shadow: ExplainedShadow | None = None,
    quotas: Sequence[ExplainedQuota] = (),
    candidate: ExplainedCandidate | None = None,
    work: Work | None = None,
) -> ExplanationObject:
    """Explain a survey. Endpoints in cooldown are tried last, except one whose probe is due;
    requests that sort by speed use the measured speeds.

    `time_s` is the time for the whole answer. Raises the refusal of a request whose model name is
    unknown, and RequestError for a fault that matches nothing in the plan.
    """
    if survey.trace is None and survey.refusal is not None:
        raise survey.refusal
    plan = survey.plan
    if plan is not None:
        plan = _in_final_order(plan, status)
    attempts = plan.attempts if plan else ()
    places = {_place_of(attempt): place for place, attempt in enumerate(attempts, start=1)}
    return ExplanationObject(
        requested=wanted.model,
        target=survey.target,
        route=survey.trace.route if survey.trace else None,
        rule=survey.trace.rule if survey.trace else None,
        skipped=[SkippedRuleObject.of(skipped) for skipped in survey.skipped_rules],
        bend=survey.trace.bend if survey.trace else None,
        catalog_sha=catalog_sha,
        candidate=candidate,
        drawn_by=wanted.draw_key_hash,
        conversation=wanted.conversation_hash,
        prompt_tokens=wanted.input_tokens,
        prompt_tokens_max=wanted.input_tokens_max,
        candidates=[
            _candidate(
                each,
                place=places.get(_place_of(each.attempt)),
                status=status,
                plan=plan,
                wanted=wanted,
            )
            for each in survey.candidates
        ],
        hold=usd(plan.cost_max_nano_usd) + sum(each.cost_max for each in guardrails)
        if plan
        else None,
        rounds=ExplainedRounds.of(wanted.rounds, tools) if wanted.rounds else None,
        guardrails=list(guardrails),
        cache=cache,
        shadow=shadow,
        quotas=list(quotas),
        preset=ExplainedPreset.of(work),
        sorted_by=plan.trace.sorted_by if plan else None,
        next_on=sorted(plan.next_on) if plan else [],
        unmet=list(plan.unmet) if plan else [],
        error=ExplainedError.of(survey.refusal) if survey.refusal else None,
        simulation=SimulationObject.of(plan, faults, time_s) if plan and faults else None,
    )


def answer_time_s(parsed: ParsedWork, timeouts: TimeoutsSection) -> float:
    """Return the time limit for an answer, in seconds, on a host without invocation deadlines."""
    if not parsed.stream:
        return timeouts.non_streamed_total_s
    return WebLimits().stream_total_s - SETTLE_BUDGET_S


def _in_final_order(plan: Plan, status: EndpointStatus) -> Plan:
    # Each request draws anew whether it explores, so an explanation assumes that it does not.
    plan = sort_measured(
        replace(plan, speed_policy=replace(plan.speed_policy, explore_percent=0)),
        status.speeds,
        request_id="",
        now_s=status.read_s,
    )
    probe = next(plan.probe_candidates(status.resting, status.read_s), None)
    return plan.resting_last(status.resting, probe=probe)


_Place = tuple[str, str, str | None]


def _place_of(attempt: Attempt) -> _Place:
    return attempt.target.model, attempt.target.endpoint_id, attempt.service_tier


def _candidate(
    candidate: Candidate,
    *,
    place: int | None,
    status: EndpointStatus,
    plan: Plan | None,
    wanted: PlanningRequest,
) -> CandidateObject:
    attempt, excluded = candidate.attempt, candidate.exclusion
    batch = attempt.batch
    until_s = status.resting.get(attempt.target.endpoint_id)
    speed = status.speeds.get(attempt.target.endpoint_id)
    lack = status.batch_lacks.get(attempt.target.provider) if batch else None
    is_batched = batch is not None and batch.takes(wanted.inputs, wanted.capabilities)
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
        batch_percent=batch.percent if batch and is_batched and not lack else None,
        batch_lack=lack,
        reads=candidate.reads,
        removed=excluded.reason if excluded else None,
        resting_until=None if until_s is None else moment(int(until_s)),
        probes=plan is not None and place == 1 and plan.trace.probe is not None,
        latency_ms=None if speed is None else speed.latency_ms,
        tokens_per_s=None if tokens_per_s is None else round(tokens_per_s, 1),
        cached_percent=None
        if speed is None or speed.cached_share is None
        else round(speed.cached_share * 100),
        samples=None if speed is None else speed.answers,
        thin=describe_thin(speed, plan.speed_policy) if plan and plan.measured_sort else None,
        **status.key_fields(attempt.target),
    )
