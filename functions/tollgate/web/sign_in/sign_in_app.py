"""The sign-in application."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tollgate.core.errors import GatewayError, MethodNotAllowed, invalid_request
from tollgate.sign_in.browser import CALLBACK
from tollgate.web.http.cors import WebLimits, cors
from tollgate.web.http.error_boundary import ErrorBoundary, error_response
from tollgate.web.http.paths import CanonicalPath, HeadAsGet, no_route
from tollgate.web.http.request_id import RequestIds
from tollgate.web.http.source_address import source_address
from tollgate.web.sign_in.oauth_routes import OAuthRoutes
from tollgate.web.sign_in.session_routes import SessionRoutes
from tollgate.web.sign_in.sign_in_paths import (
    AUTHORIZE,
    DEVICE_AUTHORIZATION,
    DEVICE_PAGE,
    DISCOVERY,
    MANAGED_SETTINGS,
    REVOKE,
    SESSION,
    TELEMETRY,
    TOKEN,
)
from tollgate.web.sign_in.sign_in_services import LoginServices

_Handler = Callable[[Request], Awaitable[Response]]
_METHODS: Final = ("DELETE", "GET", "POST")


def login_app(services: LoginServices, limits: WebLimits) -> Starlette:
    """Return the app that serves the paths of `web.sign_in.sign_in_paths`."""
    oauth, sessions = OAuthRoutes(services), SessionRoutes(services)
    handlers: dict[tuple[str, str], _Handler] = {
        ("GET", DISCOVERY): oauth.discover,
        ("POST", DEVICE_AUTHORIZATION): oauth.authorize_device,
        ("GET", DEVICE_PAGE): oauth.show_device,
        ("POST", DEVICE_PAGE): oauth.confirm_device,
        ("GET", AUTHORIZE): oauth.authorize,
        ("GET", CALLBACK): oauth.return_from_issuer,
        ("POST", TOKEN): oauth.give_tokens,
        ("POST", REVOKE): oauth.revoke,
        ("POST", SESSION): sessions.open,
        ("GET", SESSION): sessions.show,
        ("DELETE", SESSION): sessions.close,
        ("GET", MANAGED_SETTINGS): sessions.show_settings,
        **{("POST", path): sessions.take_telemetry for path in TELEMETRY},
        ("GET", "/healthz"): sessions.is_alive,
        ("GET", "/readyz"): sessions.is_ready,
    }
    app = Starlette(
        routes=[
            Route(path, handle, methods=[method]) for (method, path), handle in handlers.items()
        ],
        middleware=[
            *source_address(limits),
            Middleware(RequestIds, ids=services.ids),
            Middleware(CanonicalPath),
            cors(limits),
            Middleware(HeadAsGet),
            Middleware(ErrorBoundary, journal=services.journal),
        ],
    )

    async def reply_error(request: Request, error: Exception) -> Response:
        refusal = error if isinstance(error, GatewayError) else _routing_error(request, error)
        return error_response(refusal, request.scope)

    def _routing_error(request: Request, error: Exception) -> GatewayError:
        method, path = request.method, request.url.path
        allowed = tuple(name for name in _METHODS if (name, request.scope["path"]) in handlers)
        match error:
            case HTTPException(status_code=405):
                return MethodNotAllowed(f"{method} {path} is not served.", ("OPTIONS", *allowed))
            case HTTPException(status_code=404):
                return no_route(method, path)
            case _:
                return invalid_request("The request cannot be read.")

    app.add_exception_handler(GatewayError, reply_error)
    app.add_exception_handler(HTTPException, reply_error)
    return app
