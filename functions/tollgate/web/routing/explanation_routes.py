"""The route that explains the routing of a request without sending it."""

from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query
from msgspec.structs import replace
from starlette.requests import Request

from tollgate.core.errors import invalid_request
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.core.work.base import Work
from tollgate.engine.ceilings import find_limits, in_session
from tollgate.engine.files.named_files import find_named_files
from tollgate.engine.rounds.server_tools import plan_rounds
from tollgate.engine.routing.simulation import Fault
from tollgate.engine.side_thread import Computations
from tollgate.ingress.base import Ingress
from tollgate.ingress.formats import CHAT_COMPLETIONS, FORMATS
from tollgate.routing.planning.planner import Planner, Survey
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.stores.rules.credit_refusals import no_credit
from tollgate.web.admission import Caller, OwnThings, admitted_router
from tollgate.web.http.reply import is_large_body
from tollgate.web.http.request_id import request_id_of
from tollgate.web.models.endpoint_status import find_status
from tollgate.web.openapi import ANY_FORMAT
from tollgate.web.own import Own
from tollgate.web.routing.explained_parts import (
    ExplainedCache,
    ExplainedCandidate,
    ExplainedQuota,
    ExplainedShadow,
    explain_guardrails,
    explain_quotas,
)
from tollgate.web.routing.explanation_shapes import (
    ExplanationObject,
    answer_time_s,
    explain_plan,
)
from tollgate.web.services import Services

_FAULTS_MAX: Final = 16
# `web/openapi.py` fills in the schema of the body.
_ANY_FORMAT: Final = {ANY_FORMAT: True}
_NAMES: Final = {"enum": [each.name for each in FORMATS]}
_Fault = Annotated[str, Query(max_length=256)]
_BudgetLeft = Annotated[
    int | None,
    Query(ge=0, le=100, description="percent of a limit in USD that is taken to be left"),
]


def explanation_routes(services: Services) -> APIRouter:
    """Return the router of `/v1/route/explain`."""
    router = admitted_router(services, prefix="/v1", tag="models")

    @router.post("/route/explain", openapi_extra=_ANY_FORMAT)
    async def explain_route(
        principal: Caller,
        request: Request,
        simulate: Annotated[
            list[_Fault],
            Query(max_length=_FAULTS_MAX, description="failures to simulate: `429@openai`"),
        ] = [],  # noqa: B006 - FastAPI copies it
        format: Annotated[  # noqa: A002 - name of the query parameter
            str, Query(description="the client format of the body", json_schema_extra=_NAMES)
        ] = CHAT_COMPLETIONS.name,
        *,
        budget_left: _BudgetLeft = None,
        own: OwnThings,
    ) -> ExplanationObject:
        """Explain the candidates of a request, their exclusions and draws, free of charge."""
        faults = [Fault.parse(fault) for fault in simulate]
        body = await request.body()
        computations = Computations(services.side, principal.workspace_id, is_large_body(body))
        if computations.is_large and not await services.is_funded(principal.workspace_id):
            raise no_credit()
        parse = partial(_ingress(services, format).parse, body, request.headers)
        parsed = await computations.run(parse)
        stated = in_session(parsed.request, request.headers)
        work = await _with_files(services, own, stated, computations)
        catalog = await services.catalogs.for_key(principal.key_id)
        planner = Planner(catalog)
        work, tools = plan_rounds(services.make_tools, planner, work, principal)
        make_wanted = partial(
            PlanningRequest.of,
            work,
            principal=principal,
            request_id=request_id_of(request.scope),
            fallbacks=request.headers.get("x-disable-fallback", "").lower() != "true",
            rounds=tools.bound if tools else None,
            ceilings=find_limits(request.headers, principal, work).ceilings,
            budget_left_percent=budget_left,
        )
        wanted = await computations.run(make_wanted)
        now_s = services.clock.now_s()
        survey, quotas = await _under_quotas(
            services, principal, planner.survey(wanted, now_s=now_s)
        )
        guardrails = await computations.run(
            partial(explain_guardrails, planner, work, principal, survey, now_s=now_s)
        )
        targets = [attempt.target for attempt in survey.plan.attempts] if survey.plan else []
        status = await find_status(services, catalog, targets, prompt_tokens=wanted.input_tokens)
        parsed = replace(parsed, request=work)
        return explain_plan(
            survey,
            wanted,
            catalog.sha,
            faults=faults,
            time_s=answer_time_s(parsed, catalog.defaults.timeouts),
            status=status,
            tools=tools,
            guardrails=guardrails,
            cache=ExplainedCache.of(survey, catalog, principal, parsed),
            shadow=ExplainedShadow.of(survey, catalog, principal, parsed),
            quotas=quotas,
            candidate=ExplainedCandidate.of(await services.publications.publication(), catalog),
            work=work,
        )

    return router


async def _with_files(services: Services, own: Own, work: Work, computations: Computations) -> Work:
    """Return a request with its uploaded files looked up, since their types affect routing."""
    if not isinstance(work, GenerationRequest):
        return work
    if not await computations.run(lambda: work.names_files):
        return work
    files, reach = services.named_files, own.reach
    return await find_named_files(files, reach, work, computations=computations)


async def _under_quotas(
    services: Services, principal: Principal, survey: Survey
) -> tuple[Survey, list[ExplainedQuota]]:
    """Return the survey without models whose quota is used up, and the quotas that count."""
    key = None
    if principal.key_quotas:
        key = await services.keys.get(principal.workspace_id, principal.key_id)
    counters = {} if key is None else key.counters
    return explain_quotas(survey, principal, counters, services.ids.new_id())


def _ingress(services: Services, name: str) -> Ingress:
    if all(name != each.name for each in FORMATS):
        *first, last = (f"'{format_.name}'" for format_ in FORMATS)
        raise invalid_request(f"format must be {', '.join(first)} or {last}.", "format")
    return services.formats[name]
