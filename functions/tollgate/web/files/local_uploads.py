"""The endpoint that receives file contents at signed addresses, for servers without a bucket.

It stands in for S3, so it is not a route of the API, and deployments do not have it.
"""

from collections.abc import AsyncIterator

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from tollgate.core.errors import GatewayError
from tollgate.core.files.stored import LOCAL_UPLOADS
from tollgate.core.ids import IdSource
from tollgate.ingress.errors import openai_reply
from tollgate.stores.ports.administration import SignedContents
from tollgate.web.http.cors import WebLimits, cors
from tollgate.web.http.request_id import RequestIds, request_id_of


def local_uploads_app(uploads: SignedContents, limits: WebLimits, ids: IdSource) -> ASGIApp:
    """Return the app that receives contents below `LOCAL_UPLOADS`, by PUT."""

    async def receive(request: Request) -> Response:
        try:
            await uploads.receive(
                request.path_params["token"],
                request.headers.get("content-type", ""),
                _chunks(request),
            )
        except GatewayError as refused:
            rendered = openai_reply(refused, request_id_of(request.scope))
            return Response(rendered.body, rendered.status, dict(rendered.headers))
        return Response()

    route = Route(f"{LOCAL_UPLOADS}{{token}}", receive, methods=["PUT"])
    return Router(routes=[route], middleware=[Middleware(RequestIds, ids=ids), cors(limits)])


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        yield chunk
