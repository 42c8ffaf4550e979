"""What goes wrong while somebody works in the console, and that the work goes on.

Keeps C92.
"""

import httpx2

from tests.browser.visitor import Visitor
from tests.functional.test_login import ANA


def test_the_link_that_skips_to_the_content_stays_in_the_view(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.open("audit?actor=nobody")
    page = visitor.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.url.endswith("#/audit?actor=nobody")
    page.get_by_text("No change matches.").wait_for()


def test_a_session_that_ends_is_renewed_once_for_calls_side_by_side(
    visitor: Visitor, api: httpx2.Client
) -> None:
    page = visitor.page
    page.goto(f"{visitor.host}/console/")
    visitor.press("Sign in with your organisation")
    page.locator("input[name=sub]").fill(ANA["sub"])
    page.locator("input[name=sub]").press("Enter")
    visitor.wait()
    # Pages of the issuer load what is not here.
    visitor.faults.clear()
    asked: list[str] = []
    page.on("request", lambda it: asked.append(it.url))
    for view in ("credit", "teams"):
        secret = page.evaluate("sessionStorage.getItem('tollgate.secret')")
        ended = api.delete("session", headers={"authorization": f"Bearer {secret}"})
        assert ended.status_code == 200
        visitor.go(view)
    assert page.locator("h1").inner_text() == "Teams"
    assert len([it for it in asked if it.endswith("/oauth/token")]) == 2
