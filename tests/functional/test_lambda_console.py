"""The console behind API Gateway, under the stage path, from the function's own files.

Keeps C1, C3.
"""

import re

import pytest
from playwright.async_api import async_playwright
from yarl import URL

from tests.browser.conftest import CHROMIUM
from tests.deployment import Deployment, Workspace

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_c1_each_address_of_the_pages_is_there_under_the_stage(
    deployment: Deployment,
) -> None:
    url = deployment.emulator.url
    assert url.endswith("/api")
    async with deployment.http.get(f"{url}/console", allow_redirects=False) as moved:
        assert (moved.status, moved.headers["location"]) == (308, "console/")
    for place in (f"{url}/", f"{url}/console/"):
        async with deployment.http.get(place) as page:
            assert page.status == 200
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
            text = await page.text()
            base = page.url
        for address in re.findall(r'(?:src|href)="([^"#]+)"', text):
            found = base.join(URL(address))
            assert found.path.startswith("/api/"), address
            async with deployment.http.get(found) as reply:
                assert reply.status == 200, address


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: `apt-get install chromium`")
async def test_c1_the_console_works_under_the_stage(
    deployment: Deployment, workspace: Workspace
) -> None:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(f"{deployment.emulator.url}/console")
        await page.get_by_label("Key", exact=True).fill(workspace.management.secret)
        await page.get_by_role("button", name="Sign in").click()
        for view in ("credit", "keys", "models", "audit"):
            await page.goto(f"{deployment.emulator.url}/console/#/{view}")
            await page.locator(".view:not([aria-busy])").wait_for()
            assert await page.locator(".notice.bad").count() == 0
        assert page.url.startswith(f"{deployment.emulator.url}/console/")
        assert faults == []
        await browser.close()
