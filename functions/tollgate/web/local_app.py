"""The app of a single server, which also stands in for API Gateway (and for S3 if there is no
bucket).
"""

from typing import Final

from starlette.middleware import Middleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.errors import GatewayError
from tollgate.core.files.stored import LOCAL_UPLOADS
from tollgate.core.ids import IdSource
from tollgate.ingress.formats import VIDEOS
from tollgate.stores.ports.administration import SignedContents
from tollgate.web.http.cors import WebLimits, cors
from tollgate.web.http.error_boundary import error_response
from tollgate.web.http.paths import STREAMING_PATHS, canonical_path
from tollgate.web.http.request_id import RequestIds
from tollgate.web.sign_in.sign_in_paths import LOGIN_PATHS

# Compression reduces lists of models and records to an eighth, and takes 5 ms per MB. Metered
# replies are not compressed: a chat reply would shrink by only 1.5 KB, and embeddings take 16 ms
# per MB.
_COMPRESSED_FROM_BYTES: Final = 2_000
_COMPRESS_LEVEL: Final = 1
_READ_BY_API: Final = frozenset({("GET", VIDEOS.path), ("HEAD", VIDEOS.path)})
_INCOMPRESSIBLE: Final = ("application/octet-stream", "application/pdf")


class LocalApp:
    """Sends requests for streaming paths to the chat app, and all others to the API app.

    `uploads` receives content at signed URLs if there is no bucket. `login` is the sign-in app.
    """

    def __init__(
        self,
        chat: ASGIApp,
        api: ASGIApp,
        uploads: ASGIApp | None = None,
        login: ASGIApp | None = None,
    ) -> None:
        self._chat = chat
        self._api = GZipMiddleware(
            api,
            _COMPRESSED_FROM_BYTES,
            _COMPRESS_LEVEL,
            exclude_content_types=(*DEFAULT_EXCLUDED_CONTENT_TYPES, *_INCOMPRESSIBLE),
        )
        self._login = login
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._uploads is not None and _is_upload(scope):
            await self._uploads(scope, receive, send)
            return
        await self._app_of(scope)(scope, receive, send)

    def _app_of(self, scope: Scope) -> ASGIApp:
        path = canonical_path(scope["path"]) if scope["type"] == "http" else None
        if path in STREAMING_PATHS and (scope["method"], path) not in _READ_BY_API:
            return self._chat
        return self._login if self._login is not None and path in LOGIN_PATHS else self._api


def _is_upload(scope: Scope) -> bool:
    return scope["type"] == "http" and str(scope["path"]).startswith(LOCAL_UPLOADS)


def local_uploads_app(uploads: SignedContents, limits: WebLimits, ids: IdSource) -> ASGIApp:
    """Return the app that receives file content at signed URLs, for servers without a bucket.

    The app stands in for S3, so its route is not part of the API.
    """

    async def receive(request: Request) -> Response:
        try:
            await uploads.receive(
                request.path_params["token"],
                request.headers.get("content-type", ""),
                request.stream(),
            )
        except GatewayError as refused:
            return error_response(refused, request.scope)
        return Response()

    route = Route(f"{LOCAL_UPLOADS}{{token}}", receive, methods=["PUT"])
    return Router(routes=[route], middleware=[Middleware(RequestIds, ids=ids), cors(limits)])
