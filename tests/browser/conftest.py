"""One server and one browser for all tests of pages; a context of its own for each of them.

Skipped where there is no Chromium: it comes with the system, not with a package of ours.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, ViewportSize, sync_playwright

from tests.browser.traffic import make_attacks, make_traffic
from tests.browser.visitor import Visitor
from tests.functional.test_login import ANA, ISSUER, free_port
from tests.local_server import LocalServer, local_server

ROOT = Path(__file__).parents[2]
PATIENCE_MS = 15_000
SCREEN: ViewportSize = {"width": 1200, "height": 850}
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# Screenshots for docs/ are written only when this is set.
SCREENSHOTS = "TOLLGATE_SCREENSHOTS"


# Of the package, not of the session: the driver's loop runs until it ends, beside which no
# asynchronous test can.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here: `apt-get install chromium` brings one")
    with sync_playwright() as driver:
        # A container's root has no namespaces for the sandbox; the pages are our own.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def issuer() -> Iterator[str]:
    """An issuer of identities, which knows Ana."""
    port = free_port()
    command = [str(ISSUER), "--port", str(port), "--user-claims", json.dumps(ANA)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(PATIENCE_MS / 1_000)


@pytest.fixture(scope="package")
def server(
    chromium: Browser, issuer: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    folder, port = tmp_path_factory.mktemp("console"), free_port()
    sign_in = {
        "public_url": f"http://localhost:{port}/api",
        "issuer": issuer,
        "client_id": "tollgate",
        "client_secret": {"env": "OIDC_CLIENT_WORD"},
        "rules": [{"claims": {"email": "*@acme.example"}, "workspace": "default", "role": "admin"}],
    }
    file = folder / "sign-in.json"
    extra = {"TOLLGATE_SIGN_IN_FILE": str(file), "OIDC_CLIENT_WORD": "hush"}
    file.write_text(json.dumps(sign_in))
    with local_server(folder / "state", extra=extra, port=port) as running:
        yield running


@pytest.fixture(scope="package")
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport=SCREEN, locale="en-US")
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def visitor(
    context: BrowserContext, server: LocalServer, seeded: dict[str, str]
) -> Iterator[Visitor]:
    """Somebody who opens the console; afterwards no script may have failed."""
    visitor = Visitor(context.new_page(), server)
    yield visitor
    assert visitor.faults == []


# Before anything is shown: figures of today may be a minute old.
@pytest.fixture(scope="package")
def attacked(api: httpx2.Client) -> dict[str, str]:
    return make_attacks(api)


@pytest.fixture(scope="package")
def seeded(request: pytest.FixtureRequest, api: httpx2.Client) -> dict[str, str]:
    if not os.environ.get(SCREENSHOTS):
        # Names that are markup are no sight for docs/.
        request.getfixturevalue("attacked")
    return make_traffic(api)


@pytest.fixture(scope="module")
def resident(chromium: Browser, server: LocalServer, seeded: dict[str, str]) -> Iterator[Visitor]:
    """Somebody who signed in once and goes from view to view, for all tests of a module."""
    with chromium.new_context(viewport=SCREEN, locale="en-US") as context:
        context.set_default_timeout(PATIENCE_MS)
        visitor = Visitor(context.new_page(), server)
        visitor.sign_in()
        yield visitor
        assert visitor.faults == []


@pytest.fixture(scope="package")
def api(server: LocalServer) -> Iterator[httpx2.Client]:
    """The public API with the management key."""
    headers = {"authorization": f"Bearer {server.management_key}"}
    with httpx2.Client(base_url=f"{server.base_url}/", headers=headers, timeout=20) as client:
        yield client


@pytest.fixture(scope="package")
def folder_of_screenshots() -> Path | None:
    return ROOT / "docs" / "screenshots" if os.environ.get(SCREENSHOTS) else None


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
