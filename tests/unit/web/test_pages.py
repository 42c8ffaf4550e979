"""The landing page and the console as files: their size, what they may load, their headers.

Keeps C1, C3.
"""

import gzip
import re
from pathlib import Path

import pytest

from tests.asgi import Exchange
from tests.cells import cells
from tests.unit.web.test_api_app import api
from tollgate.web.pages import page_routes as reference
from tollgate.web.pages.page_routes import FOLDER, PAGE_HEADERS

FIRST_VIEW_BYTES, VIEW_BYTES = 60_000, 30_000
FILES = sorted(FOLDER.iterdir())
PAGES = [it for it in FILES if it.suffix == ".html"]
MODULES = [it for it in FILES if it.suffix == ".js"]
# What makes markup or code of a text, and what another tab or a server's reply could read.
REFUSED = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
    r"|srcdoc|localStorage|document\.cookie|indexedDB"
)


async def get(path: str, **headers: str) -> Exchange:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await (await api())("GET", path, headers=named)


def _loads(module: str) -> set[str]:
    """Return a module and the modules that it imports before it runs."""
    found, waiting = set(), [module]
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            text = (FOLDER / name).read_text()
            waiting += re.findall(r'^import .*"\./([^"]+)";$', text, re.MULTILINE)
    return found


def _compressed_bytes(names: set[str]) -> int:
    return sum(len(gzip.compress((FOLDER / name).read_bytes())) for name in names)


def test_a_first_view_loads_60_kb_and_each_other_view_30_kb() -> None:
    frame = {"index.html", "console.css", "icon.svg", *_loads("main.js")}
    views = {it.name: _loads(it.name) for it in MODULES if it.name.startswith("view_")}
    assert len(views) > 10
    assert max(_compressed_bytes(frame | loaded) for loaded in views.values()) <= FIRST_VIEW_BYTES
    assert max(_compressed_bytes(loaded - frame) for loaded in views.values()) <= VIEW_BYTES


@pytest.mark.parametrize("page", PAGES, ids=lambda it: it.name)
def test_a_page_has_no_script_or_style_of_its_own_and_loads_from_its_own_host(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|<base|<iframe", text)
    addresses = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert addresses
    # Relative ones work under a stage: `/console/main.js` is not there behind API Gateway.
    assert [it for it in addresses if re.match(r"/|[a-z]+:", it)] == []


@cells("module", MODULES, ids=lambda it: it.name)
def test_a_module_never_makes_markup_of_a_text_nor_keeps_a_secret_beyond_its_tab(
    module: Path,
) -> None:
    text = module.read_text()
    assert REFUSED.findall(text) == []
    assert text.startswith("/** ")
    imported = re.findall(r'^import .*"([^"]+)";$|import\("([^"]+)"\)', text, re.MULTILINE)
    named = {(static or loaded).removeprefix("./") for static, loaded in imported}
    assert named <= {it.name for it in MODULES}


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/console/", "text/html; charset=utf-8"),
        ("/api/console/", "text/html; charset=utf-8"),
        ("/console/main.js", "text/javascript; charset=utf-8"),
        ("/console/console.css", "text/css; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
    ],
)
async def test_c3_a_page_needs_no_key_and_says_what_it_may_load(path: str, media_type: str) -> None:
    reply = await get(path)
    assert (reply.status, reply.headers["content-type"]) == (200, media_type)
    assert {name: reply.headers[name] for name in PAGE_HEADERS} == PAGE_HEADERS
    policy = reply.headers["content-security-policy"]
    assert "unsafe" not in policy
    for directive in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"):
        assert directive in policy


async def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    first = await get("/console/main.js")
    again = await get("/console/main.js", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert (await get("/console/main.js", if_none_match='"another"')).status == 200


@pytest.mark.parametrize("path", ["/console", "/api/console"])
async def test_c1_the_console_without_its_slash_is_sent_there_by_a_relative_address(
    path: str,
) -> None:
    # `console/` of `/api/console` is `/api/console/`, under whatever stage that lies.
    reply = await get(path)
    assert (reply.status, reply.headers["location"]) == (308, "console/")


@pytest.mark.parametrize("name", ["nothing.js", "..", "%2e%2e%2fpaths.py", "__init__.py"])
async def test_only_the_files_of_the_console_are_served(name: str) -> None:
    assert (await get(f"/console/{name}")).status == 404


async def test_the_reference_has_a_policy_of_its_own_and_runs_nothing_of_another_host() -> None:
    reply = await get("/docs")
    policy = reply.headers["content-security-policy"]
    assert (reply.status, reply.headers["x-frame-options"]) == (200, "DENY")
    assert "unsafe" not in policy
    assert "script-src 'self'; style-src 'self'" in policy
    for file in ("swagger-ui-bundle.js", "swagger-ui.css", "reference.js"):
        assert (await get(f"/docs/{file}")).status == 200
    assert (await get("/docs/redoc.standalone.js")).status == 404


@pytest.mark.parametrize(("path", "place"), [("/docs", "v1/"), ("/docs/", "../v1/")])
async def test_without_the_viewer_the_reference_is_the_document(
    monkeypatch: pytest.MonkeyPatch, path: str, place: str
) -> None:
    # As in a function, which does not carry the package.
    monkeypatch.setattr(reference, "_VIEWER", "no_such_package")
    reference._files.cache_clear()
    reply = await get(path)
    assert (reply.status, reply.headers["location"]) == (302, f"{place}openapi.json")
    assert (await get("/docs/swagger-ui.css")).status == 404
    reference._files.cache_clear()
