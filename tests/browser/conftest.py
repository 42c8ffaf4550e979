"""One server and one browser for all tests of pages; a context of its own for each of them.

Skipped where there is no Chromium: it comes with the system, not with a package of ours.
"""

import os
import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.visitor import Visitor
from tests.local_server import LocalServer, local_server

ROOT = Path(__file__).parents[2]
PATIENCE_MS = 15_000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
# Screenshots for docs/ are written only when this is set.
SCREENSHOTS = "TOLLGATE_SCREENSHOTS"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here: `apt-get install chromium` brings one")
    with sync_playwright() as driver:
        # A container's root has no namespaces for the sandbox; the pages are our own.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with local_server(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture(scope="session")
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1200, "height": 850}, locale="en-US")
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def visitor(context: BrowserContext, server: LocalServer) -> Iterator[Visitor]:
    """Somebody who opens the console; afterwards no script may have failed."""
    visitor = Visitor(context.new_page(), server)
    yield visitor
    assert visitor.faults == []


@pytest.fixture(scope="session")
def api(server: LocalServer) -> Iterator[httpx2.Client]:
    """The public API with the management key."""
    headers = {"authorization": f"Bearer {server.management_key}"}
    with httpx2.Client(base_url=f"{server.base_url}/", headers=headers, timeout=20) as client:
        yield client


@pytest.fixture(scope="session")
def folder_of_screenshots() -> Path | None:
    return ROOT / "docs" / "screenshots" if os.environ.get(SCREENSHOTS) else None


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
