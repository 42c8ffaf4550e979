"""The buffered application, which serves all routes except the metered ones."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Match

from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError, MethodNotAllowed, RequestError, invalid_request
from tollgate.ingress.base import ErrorReply
from tollgate.ingress.errors import openai_reply
from tollgate.ingress.formats import ANTHROPIC_VERSION, MESSAGES, VIDEOS
from tollgate.ingress.validation import field_error
from tollgate.web.http.cors import WebLimits, cors
from tollgate.web.http.error_boundary import ErrorBoundary
from tollgate.web.http.paths import (
    OPENAPI,
    SCIM,
    STREAMING_PATHS,
    CanonicalPath,
    HeadAsGet,
    no_route,
    refuse_method,
    wrong_function,
)
from tollgate.web.http.request_id import RequestIds, request_id_of
from tollgate.web.http.source_address import source_address
from tollgate.web.http.unknown_callers import unknown_callers
from tollgate.web.services import Services
from tollgate.web.topics import IncludeTopic, TopicRoutes

# If the build wrote the OpenAPI document, a function never needs the generator.
_GENERATE_DOCUMENT: Final = DottedName[Callable[[FastAPI], dict[str, Any]]](
    "tollgate.web.openapi:openapi"
)

_SCIM_ERROR: Final = DottedName[Callable[[GatewayError, str], ErrorReply]](
    "tollgate.web.people.scim_shapes:scim_error"
)


def api_app(
    services: Services, limits: WebLimits, *, openapi: bytes | None = None, by_topic: bool = False
) -> FastAPI:
    """Return the app that serves every route except the metered ones.

    `openapi` is the OpenAPI document written by the build; without it, the app generates the
    document at the first request. With `by_topic`, the routes of a topic are declared at the
    topic's first request, which suits a process that starts for a single request.
    """
    topics = TopicRoutes(services, body_bytes_max=limits.body_bytes_max)
    app = FastAPI(
        title="Tollgate",
        version="1",
        openapi_url=None if openapi else OPENAPI,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            *source_address(limits),
            *unknown_callers(limits, services.clock),
            Middleware(RequestIds, ids=services.ids),
            Middleware(CanonicalPath),
            cors(limits),
            Middleware(HeadAsGet),
            Middleware(ErrorBoundary, journal=services.journal),
            Middleware(IncludeTopic, topics=topics),
        ],
    )
    if not by_topic:
        topics.include(app)
    if openapi:
        _serve_built_document(app, openapi)
    else:
        _generate_document(app)
    _render_errors(app)
    return app


def _serve_built_document(app: FastAPI, openapi: bytes) -> None:
    @app.get(OPENAPI, include_in_schema=False)
    async def show_document() -> Response:
        return Response(openapi, media_type="application/json")


def _generate_document(app: FastAPI) -> None:
    app.openapi = cache(partial(_GENERATE_DOCUMENT(), app))  # type: ignore[method-assign]  # as FastAPI documents


def _render_errors(app: FastAPI) -> None:
    """Render every error, including FastAPI's and Starlette's, in the client format's envelope."""

    def reply(request: Request, error: GatewayError) -> Response:
        render: Callable[[GatewayError, str], ErrorReply] = openai_reply
        if _is_of_anthropic(request):
            # Imported here, because most processes never serve a client that uses Anthropic's
            # format.
            from tollgate.ingress.messages.errors import anthropic_reply

            render = anthropic_reply
        if request.scope["path"].startswith(f"{SCIM}/"):
            render = _SCIM_ERROR()
        rendered = render(error, request_id_of(request.scope))
        headers = {"content-type": "application/json", **rendered.headers}
        return Response(rendered.body, rendered.status, headers)

    @app.exception_handler(GatewayError)
    async def reply_gateway_error(request: Request, error: GatewayError) -> Response:
        return reply(request, error)

    @app.exception_handler(RequestValidationError)
    async def reply_invalid_request(request: Request, error: RequestValidationError) -> Response:
        # FastAPI's errors are plain dicts with the fields of ErrorDetails.
        return reply(request, _invalid_request(error.errors()[0]))

    @app.exception_handler(HTTPException)
    async def reply_routing_error(request: Request, error: HTTPException) -> Response:
        method, path = request.method, request.url.path
        match error.status_code:
            case 404 if request.scope["path"] not in STREAMING_PATHS:
                refusal: GatewayError = no_route(method, path)
            case 404 | 405 if method == "POST" and request.scope["path"] in STREAMING_PATHS:
                refusal = wrong_function(path)
            case 404 | 405 if request.scope["path"] in STREAMING_PATHS - {VIDEOS.path}:
                # API Gateway sends POST to the streaming function, and other methods to this one.
                refusal = refuse_method(request.scope)
            case 404 | 405:
                refusal = MethodNotAllowed(
                    f"{method} {path} is not served.", _methods_at(app, request)
                )
            case _:
                refusal = invalid_request(str(error.detail))
        return reply(request, refusal)


def _is_of_anthropic(request: Request) -> bool:
    """Return whether a client uses Anthropic's format; Anthropic's SDKs always send a version."""
    named = request.scope["path"].startswith(MESSAGES.path)
    return named or ANTHROPIC_VERSION in request.headers


def _methods_at(app: FastAPI, request: Request) -> tuple[str, ...]:
    """Return the methods that a path accepts, including those that middleware or the streaming
    function handles.
    """
    served = {"OPTIONS", *(["POST"] if request.scope["path"] in STREAMING_PATHS else [])}
    for method in ("DELETE", "GET", "PATCH", "POST", "PUT"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in app.routes):
            served.add(method)
    return tuple(sorted(served | {"HEAD"} if "GET" in served else served))


def _invalid_request(first: ErrorDetails) -> RequestError:
    """Return the error for the first invalid field; its `loc` begins with `body` or `query`."""
    if first["type"] == "json_invalid":
        return invalid_request("The body is not valid JSON.")
    place = first["loc"][1:]
    if not place:
        return invalid_request(f"The {first['loc'][0]} cannot be read.")
    return field_error(first, place)
