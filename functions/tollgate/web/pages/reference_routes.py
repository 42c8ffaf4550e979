"""The API reference: a viewer of the OpenAPI document, on hosts where its package is installed."""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.web.admission import admitted_router
from tollgate.web.http.paths import has_slash_at_end
from tollgate.web.pages.page_routes import FOLDER, PAGE_HEADERS, PageFile, read_page, reply_page
from tollgate.web.services import Services

# Only the viewer of the package is used: neither Redoc nor the page that loads from a CDN.
_VIEWER: Final = "fastapi_offline"
_VIEWERS_FILES: Final = ("swagger-ui-bundle.js", "swagger-ui.css")
# The viewer sanitizes the descriptions that it renders, and has data URLs as icons. It gets no key,
# and requests only the document.
_HEADERS: Final = {
    **PAGE_HEADERS,
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


def reference_routes(services: Services) -> APIRouter:
    """Return the routes of the API reference.

    Where the viewer is not installed, as in a function, the routes redirect to the document.
    """
    router = admitted_router(services, prefix="", tag="pages")

    @router.get("/docs", include_in_schema=False)
    async def show_reference(request: Request) -> Response:
        up = "../" if has_slash_at_end(request.scope) else ""
        if not _files():
            return Response(status_code=302, headers={"location": f"{up}v1/openapi.json"})
        if up:
            return Response(status_code=308, headers={"location": "../docs"})
        return reply_page(request, _files()["reference.html"], _HEADERS)

    @router.get("/docs/{file}", include_in_schema=False)
    async def show_viewers_file(request: Request, file: str) -> Response:
        found = _files().get(file)
        if found is None:
            raise RequestError(ErrorCode.NOT_FOUND, "The reference has no such file.")
        return reply_page(request, found, _HEADERS)

    return router


@cache
def _files() -> Mapping[str, PageFile]:
    """Return the files of the reference by name; none if the viewer is not installed."""
    spec = find_spec(_VIEWER)
    if spec is None or spec.origin is None:
        return {}
    static = Path(spec.origin).parent / "static"
    named = [*(static / name for name in _VIEWERS_FILES), *FOLDER.glob("reference.*")]
    return {file.name: read_page(file) for file in named}
