"""The JSON form of the parts of an explained request, such as tools, guardrails and quotas."""

from collections.abc import Callable, Mapping
from typing import Final, Self

from msgspec.structs import replace
from pydantic import BaseModel, Field, JsonValue

from tollgate.core.content import ServerToolId
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner
from tollgate.core.money.amounts import usd
from tollgate.core.principal import Principal
from tollgate.core.records.generation import RoundsBound
from tollgate.core.request import GenerationRequest, SystemMessage
from tollgate.core.routing.publication import Publication
from tollgate.core.work.base import Work
from tollgate.engine.guardrails.bounds import BoundedGuard, bound_guards
from tollgate.engine.rounds.tool_injection import Injected, InjectedTools
from tollgate.ingress.base import ParsedWork
from tollgate.providers.ports.parameters import stated_parameters
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import Cause, Exclusion
from tollgate.routing.planning.planner import Candidate, Planner, Survey
from tollgate.routing.planning.shadows import is_drawn
from tollgate.stores.rules.quotas import QuotaRequest, find_used_up, quota_step
from tollgate.tools.ports.base import RequestTools
from tollgate.web.keys.key_shapes import QuotaObject
from tollgate.web.shapes import Usd

# Imported at first use, because few catalogs have a cache or shadows.
_IS_REPEATABLE: Final = DottedName[Callable[[ParsedWork], bool]](
    "tollgate.engine.replies.answer_cache:is_repeatable"
)
_CAN_BE_SHADOWED: Final = DottedName[Callable[[ParsedWork], bool]](
    "tollgate.web.shadows.sending:can_be_shadowed"
)

# A share in percent.
_EVERY_REQUEST: Final = 100


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
    kind: str = Field(description="patterns, presidio, moderation or judge")
    stages: list[str]
    action: str
    cost_max: Usd = Field(description="highest cost of all judgements, which is part of `hold`")

    @classmethod
    def of(cls, guard: BoundedGuard) -> Self:
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
        cls, survey: Survey, catalog: Catalog, principal: Principal | None, parsed: ParsedWork
    ) -> Self | None:
        """Describe the cache of a route; None if there is none. An explained file has no key."""
        route = survey.trace.route if survey.trace else None
        section = catalog.routes[route].cache if route is not None else None
        if section is None:
            return None
        unused = None
        if principal is not None and principal.answer_sharing is None:
            unused = "the key has no answer_cache"
        elif not _IS_REPEATABLE()(parsed):
            unused = "answers to this request may differ"
        return cls(ttl_s=section.ttl_s, price_percent=section.price_percent, unused=unused)


class ExplainedShadow(BaseModel):
    """The route's shadow: a model whose answers are compared, but not delivered or charged."""

    model: str
    share: int = Field(description="percent of the route's requests")
    judge: str | None
    used: bool | None = Field(
        description="whether the shadow gets this request; null if that depends on an unknown key, "
        "or on the id of a request without a session"
    )
    unused: str | None = Field(description="reason why the shadow does not get this request")

    @classmethod
    def of(
        cls, survey: Survey, catalog: Catalog, principal: Principal | None, parsed: ParsedWork
    ) -> Self | None:
        """Describe the shadow of a route; None if there is none. An explained file has no key."""
        trace = survey.trace
        section = catalog.routes[trace.route].shadow if trace and trace.route else None
        if trace is None or trace.route is None or section is None:
            return None
        has_session = parsed.request.preferences.session_id is not None
        unused = None
        if principal is not None and principal.content_days is None:
            unused = "the key has no content_days"
        elif trace.rounds is not None or not _CAN_BE_SHADOWED()(parsed):
            unused = "the request is not one plain prompt for one answer"
        elif has_session and not is_drawn(section, trace.route, trace.draw_key_hash):
            unused = "its session is not drawn"
        is_certain = principal is not None and (has_session or section.share == _EVERY_REQUEST)
        return cls(
            model=section.model,
            share=section.share,
            judge=section.judge,
            used=False if unused else is_certain or None,
            unused=unused,
        )


class ExplainedCandidate(BaseModel):
    """The candidate catalog that a share of the keys gets."""

    catalog_sha: str
    percent: int = Field(description="share of the keys")
    serves: bool = Field(description="whether it serves this key")

    @classmethod
    def of(cls, publication: Publication | None, catalog: Catalog) -> Self | None:
        """Describe the candidate; None if there is none."""
        if publication is None or publication.candidate is None:
            return None
        return cls(
            catalog_sha=publication.candidate,
            percent=publication.percent,
            serves=catalog.is_candidate,
        )


class ExplainedQuota(QuotaObject):
    """A quota of the key that counts the request."""

    used_up: bool = Field(description="whether too little is left for the request")


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


def explain_guardrails(
    planner: Planner, work: Work, principal: Principal, survey: Survey, *, now_s: float
) -> list[ExplainedGuardrail]:
    """Describe the guardrails of a request; none without a plan."""
    has_guards = planner.catalog.guardrails or principal.guardrails
    if not has_guards or survey.plan is None:
        return []
    bound = bound_guards(planner, work, principal, survey.plan, now_s=now_s)
    return [ExplainedGuardrail.of(guard) for guard in bound]


def explain_quotas(
    survey: Survey, principal: Principal, counters: Mapping[str, int], hold_id: str
) -> tuple[Survey, list[ExplainedQuota]]:
    """Return the survey without models whose quota is used up, and the quotas that count."""
    plan = survey.plan
    if plan is None or not principal.key_quotas:
        return survey, []
    wanted = QuotaRequest.of(
        principal,
        plan.models,
        plan.cost_max_nano_usd,
        tokens=plan.tokens_max,
        covered=principal.admission == "covered",
    )
    second = created_s(hold_id)
    used_up = find_used_up(counters, wanted, second)
    explained = [
        ExplainedQuota(**dict(QuotaObject.of(quota, counters, second)), used_up=quota in used_up)
        for quota in principal.key_quotas
        if quota.covers_any(plan.models)
    ]
    owner = LimitOwner(level="key", id=principal.key_id, workspace_id=principal.workspace_id)
    step = quota_step(counters, wanted, owner, hold_id)
    refusal = step if isinstance(step, GatewayError) else None

    def under_quotas(candidate: Candidate) -> Candidate:
        model = candidate.attempt.target.model
        quota = next((each for each in used_up if each.covers(model)), None)
        if candidate.exclusion is not None or quota is None:
            return candidate
        return replace(candidate, exclusion=Exclusion(Cause.QUOTA, amounts=(quota.text,)))

    return replace(
        survey,
        candidates=tuple(map(under_quotas, survey.candidates)),
        plan=None if refusal else plan.under_quotas(used_up),
        refusal=refusal,
    ), explained
