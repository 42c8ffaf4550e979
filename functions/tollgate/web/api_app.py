"""The buffered application: keys, credits, records, models and health."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.web.cors import WebLimits, cors
from tollgate.web.document import openapi
from tollgate.web.envelope import Envelope
from tollgate.web.paths import METERED_PATHS, OPENAPI, CanonicalPath, HeadAsGet
from tollgate.web.request_id import RequestIds, request_id_of
from tollgate.web.routes.activity import activity_routes
from tollgate.web.routes.credits import credit_routes
from tollgate.web.routes.explanations import explanation_routes
from tollgate.web.routes.generations import generation_routes
from tollgate.web.routes.health import health_routes
from tollgate.web.routes.keys import key_routes
from tollgate.web.routes.models import model_routes
from tollgate.web.routes.workspaces import workspace_routes
from tollgate.web.services import Services


def api_app(services: Services, limits: WebLimits) -> FastAPI:
    """The app that serves everything but the metered routes."""
    app = FastAPI(
        title="Tollgate",
        version="1",
        openapi_url=OPENAPI,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestIds, ids=services.ids),
            Middleware(CanonicalPath),
            cors(limits),
            Middleware(HeadAsGet),
            Middleware(
                Envelope,
                body_bytes_max=limits.body_bytes_max,
                errors=services.chat,
                journal=services.journal,
            ),
        ],
    )
    for routes in (
        key_routes,
        workspace_routes,
        credit_routes,
        generation_routes,
        activity_routes,
        model_routes,
        explanation_routes,
        health_routes,
    ):
        app.include_router(routes(services))
    _tell_errors(app, services)
    app.openapi = cache(partial(openapi, app))  # type: ignore[method-assign]  # as FastAPI has it
    return app


def _tell_errors(app: FastAPI, services: Services) -> None:
    """Every error in the one envelope, whoever raised it."""

    def reply(request: Request, error: GatewayError) -> Response:
        told = services.chat.error(error, request_id_of(request.scope))
        return Response(
            told.body, told.status, {"content-type": "application/json", **told.headers}
        )

    @app.exception_handler(GatewayError)
    async def refused(request: Request, error: GatewayError) -> Response:
        return reply(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return reply(request, _invalid_request(error.errors()[0]))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        where = f"{request.method} {request.url.path}"
        match error.status_code:
            case 404 if request.scope["path"] not in METERED_PATHS:
                told = RequestError(ErrorCode.NOT_FOUND, f"There is no {where}.")
            # A metered path's POST goes to the streaming function, other methods come here.
            case 404 | 405:
                told = RequestError(ErrorCode.METHOD_NOT_ALLOWED, f"{where} is not served.")
            case _:
                told = RequestError(ErrorCode.INVALID_REQUEST, str(error.detail))
        return reply(request, told)


def _invalid_request(first: Mapping[str, Any]) -> RequestError:
    """The first thing that is wrong with a request, as pydantic describes it."""
    if first["type"] == "json_invalid":
        return RequestError(ErrorCode.INVALID_REQUEST, "The body is not valid JSON.")
    param = ".".join(str(step) for step in first["loc"][1:]) or None
    message = f"{param}: {first['msg']}" if param else str(first["msg"])
    return RequestError(ErrorCode.INVALID_REQUEST, message, param=param)
