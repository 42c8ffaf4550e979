"""The endpoints of the streaming application by path; some are imported at first use."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.ingress.errors import openai_reply
from tollgate.ingress.format_rows import IngressFormat
from tollgate.web.generation.entrance import Entrance
from tollgate.web.http.paths import no_route
from tollgate.web.http.request_id import request_id_of


class ByPath:
    """Passes a request on to the endpoint for its path; no path has variables."""

    def __init__(self, endpoints: Mapping[str, ASGIApp]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        await (endpoint or _reply_not_found)(scope, receive, send)


async def _reply_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse an unknown path with an error in the envelope of the API routes."""
    rendered = openai_reply(no_route(scope["method"], scope["path"]), request_id_of(scope))
    response = Response(rendered.body, rendered.status, dict(rendered.headers))
    await response(scope, receive, send)


class LazyCounting:
    """An endpoint that counts tokens, imported at the first request for a count."""

    def __init__(self, format_: IngressFormat, entrance: Entrance) -> None:
        self._format = format_
        self._entrance = entrance
        self._endpoint: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._endpoint is None:
            # Imported here because most processes never serve a count.
            from tollgate.web.generation.token_counts import CountEndpoint

            self._endpoint = CountEndpoint(self._format, self._entrance)
        await self._endpoint(scope, receive, send)
