"""Routes of static pages: the landing page, the console and the API reference."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response
from msgspec import Struct

from tollgate.core.errors import not_found
from tollgate.web.admission import admitted_router
from tollgate.web.http.paths import has_slash_at_end
from tollgate.web.services import Services

FOLDER: Final = Path(__file__).parents[2] / "console"
_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Resources come only from this host, pages contain no inline scripts or styles and cannot be
# framed, and text never becomes markup: `trusted-types 'none'` blocks innerHTML.
PAGE_HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-cache",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class PageFile(Struct, frozen=True):
    """A static file, ready to send."""

    content: bytes
    media_type: str
    etag: str


def page_routes(services: Services) -> APIRouter:
    """Return the routes of the landing page and of the console's files."""
    router = admitted_router(services, prefix="", tag="pages")

    @router.get("/", include_in_schema=False)
    async def show_landing_page(request: Request) -> Response:
        return _reply(request, "landing.html")

    @router.get("/console", include_in_schema=False)
    async def show_console(request: Request) -> Response:
        # The redirect is relative, because the app does not know the stage in the URL.
        if not has_slash_at_end(request.scope):
            return Response(status_code=308, headers={"location": "console/"})
        return _reply(request, "index.html")

    @router.get("/console/{file}", include_in_schema=False)
    async def show_console_file(request: Request, file: str) -> Response:
        return _reply(request, file)

    return router


def _reply(request: Request, name: str) -> Response:
    page = _pages().get(name)
    if page is None:
        raise not_found("The console has no such file.")
    return reply_page(request, page, PAGE_HEADERS)


def reply_page(request: Request, page: PageFile, headers: Mapping[str, str]) -> Response:
    """Return a file, or 304 if the browser has the current version."""
    headers = {**headers, "etag": page.etag}
    if page.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(page.content, media_type=page.media_type, headers=headers)


def read_page(file: Path) -> PageFile:
    """Return a file, with the media type of its suffix."""
    content = file.read_bytes()
    return PageFile(content, _TYPES[file.suffix], f'"{sha256(content).hexdigest()[:32]}"')


@cache
def _pages() -> Mapping[str, PageFile]:
    """Return the files by name, which are read at the first request for a file."""
    return {file.name: read_page(file) for file in FOLDER.iterdir()}


# Only the viewer from the package is used; Redoc, and the page that loads files from a CDN, are not
# used.
_VIEWER: Final = "fastapi_offline"
_VIEWERS_FILES: Final = ("swagger-ui-bundle.js", "swagger-ui.css")
# The viewer sanitizes the descriptions that it renders, and its icons are data URLs. It gets no
# key, and requests only the document.
_REFERENCE_HEADERS: Final = {
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
        return reply_page(request, _files()["reference.html"], _REFERENCE_HEADERS)

    @router.get("/docs/{file}", include_in_schema=False)
    async def show_viewers_file(request: Request, file: str) -> Response:
        found = _files().get(file)
        if found is None:
            raise not_found("The reference has no such file.")
        return reply_page(request, found, _REFERENCE_HEADERS)

    return router


@cache
def _files() -> Mapping[str, PageFile]:
    """Return the files of the API reference at `/docs` by name; empty if the package that shows it
    is not installed."""
    spec = find_spec(_VIEWER)
    if spec is None or spec.origin is None:
        return {}
    static = Path(spec.origin).parent / "static"
    named = [*(static / name for name in _VIEWERS_FILES), *FOLDER.glob("reference.*")]
    return {file.name: read_page(file) for file in named}
