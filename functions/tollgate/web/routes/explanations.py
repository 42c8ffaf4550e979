"""How a request would be routed, told before it is sent."""

from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import JsonValue
from starlette.requests import Request

from tollgate.core.principal import Principal
from tollgate.engine.simulation import Fault
from tollgate.routing.demand import Demand
from tollgate.routing.planner import Planner
from tollgate.web.explanation_shapes import ExplanationObject, answer_time_s, explained
from tollgate.web.request_id import request_id_of
from tollgate.web.services import Services
from tollgate.wire.openai_chat import ChatRequest

_PATH: Final = "/route/explain"
_FAULTS_MAX: Final = 16
# The schema's own definitions stay with it, so references say where in the document that is.
_DEFINITIONS: Final = (
    f"#/paths/~1v1{_PATH.replace('/', '~1')}/post"
    "/requestBody/content/application~1json/schema/$defs/{model}"
)
_Fault = Annotated[str, Query(max_length=256)]


def explanation_routes(services: Services) -> APIRouter:
    """`/v1/route/explain`."""
    router = APIRouter(prefix="/v1", tags=["models"])
    reader = Annotated[Principal, Depends(services.reader)]

    @router.post(_PATH, openapi_extra={"requestBody": _chat_body()})
    async def explain_route(
        principal: reader,
        request: Request,
        simulate: Annotated[
            list[_Fault],
            Query(max_length=_FAULTS_MAX, description="failures to imagine: `429@openai`"),
        ] = [],  # noqa: B006 - FastAPI copies it
    ) -> ExplanationObject:
        """Candidates, what removed each, weights and draws of a chat request; it costs nothing."""
        faults = [Fault.parse(fault) for fault in simulate]
        parsed = services.chat.parse(await request.body())
        demand = Demand.of(
            parsed.request,
            principal=principal,
            request_id=request_id_of(request.scope),
            fallbacks=request.headers.get("x-disable-fallback", "").lower() != "true",
        )
        catalog = await services.catalogs.of(principal.key_id)
        survey = Planner(catalog).survey(demand, now_s=services.clock.now_s())
        resting: Mapping[str, float] = {}
        if survey.plan is not None:
            resting = await services.cooldowns.resting(
                survey.plan.endpoint_ids, catalog.defaults.cooldown.policy
            )
        return explained(
            survey,
            demand,
            catalog.sha,
            faults=faults,
            time_s=answer_time_s(parsed, catalog.defaults.timeouts),
            resting=resting,
        )

    return router


def _chat_body() -> JsonValue:
    schema = ChatRequest.model_json_schema(ref_template=_DEFINITIONS)
    return {"required": True, "content": {"application/json": {"schema": schema}}}
