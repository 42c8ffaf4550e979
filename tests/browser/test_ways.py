"""Ways through the console: the command palette, other workspaces, and the playground's secret.

Keeps C91.
"""

import httpx2
import pytest

from tests.browser.test_views import violations
from tests.browser.visitor import Visitor


def test_the_palette_leads_to_views_models_keys_and_generations_by_keyboard(
    visitor: Visitor, seeded: dict[str, str], axe: str
) -> None:
    visitor.sign_in()
    page = visitor.page
    page.get_by_role("link", name="Audit").focus()
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Go to")
    box.wait_for()
    assert violations(visitor, axe) == []
    options = page.get_by_role("listbox", name="Commands").get_by_role("option")
    for text, kind, address in (
        ("team", "View", "#/teams"),
        ("search production", "Key", "#/keys?find="),
        ("test/fallback", "Route", "#/models?id="),
        (seeded["SERVED"], "Generation", f"#/generation?id={seeded['SERVED']}"),
    ):
        if not box.count():
            page.keyboard.press("Control+k")
        box.fill(text)
        options.filter(has_text=kind).first.wait_for()
        first = options.first
        assert first.get_attribute("aria-selected") == "true"
        assert box.get_attribute("aria-activedescendant") == first.get_attribute("id")
        while kind not in options.and_(page.locator("[aria-selected=true]")).inner_text():
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{address}*")
        visitor.wait()
    page.keyboard.press("Control+k")
    box.fill("nothing has this name")
    page.get_by_text("Nothing has this name.").wait_for()
    page.keyboard.press("Escape")
    assert box.count() == 0


def test_an_operator_shows_another_workspace_and_returns(
    visitor: Visitor, api: httpx2.Client, axe: str
) -> None:
    assert api.post("workspaces", json={"id": "globex"}).status_code in (201, 409)
    api.post("workspaces/globex/keys", json={"name": "globex bot"})
    visitor.sign_in()
    page = visitor.page
    switch = page.get_by_label("Workspace", exact=True)
    switch.select_option("globex")
    page.get_by_text("Nothing was spent in").wait_for()
    assert violations(visitor, axe) == []
    shown = page.locator("nav a").all_inner_texts()
    assert shown == ["Spend", "Keys", "Credit", "Statement", "Models", "Routing"]
    for view, text in (("keys", "globex bot"), ("credit", "Available"), ("statement", "Usage")):
        visitor.go(view)
        page.locator("main").get_by_text(text).first.wait_for()
        assert "search production" not in visitor.text
        assert page.get_by_role("alert").count() == 0, visitor.text
    # The choice is the tab's, and views that cannot show it lead to one that can.
    visitor.open("teams")
    page.wait_for_url("**/#/spend")
    switch.select_option("default")
    visitor.go("keys")
    page.get_by_role("article", name="Key search production").wait_for()
    assert "globex bot" not in visitor.text


@pytest.mark.parametrize("leave", ["sign out", "close"])
def test_c91_the_playground_has_a_secret_that_only_generates_and_ends_with_the_tab(
    visitor: Visitor, api: httpx2.Client, leave: str
) -> None:
    used: list[str] = []

    def note(request: object) -> None:
        if request.url.endswith("/chat/completions"):  # type: ignore[attr-defined]
            used.append(request.headers["authorization"])  # type: ignore[attr-defined]

    visitor.page.on("request", note)
    visitor.sign_in()
    visitor.go("playground")
    visitor.fill(model="test/echo", prompt="Hello")
    visitor.press("Send")
    visitor.page.get_by_role("link", name="bill").click()
    visitor.page.get_by_text("playground", exact=True).first.wait_for()
    [bearer] = used
    stored = visitor.page.evaluate("Object.values(sessionStorage).join()")
    assert bearer.removeprefix("Bearer ") not in stored
    assert bearer != f"Bearer {visitor.server.management_key}"
    visitor.go("playground")
    visitor.fill(model="test/echo", prompt="Hello")
    visitor.press("Send")
    visitor.page.get_by_role("link", name="bill").wait_for()
    last = {"authorization": used[-1]}
    refused = api.get("keys", headers=last)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "permission_denied")
    if leave == "close":
        visitor.page.goto("about:blank")
    else:
        visitor.press("Sign out")
    said = [{"role": "user", "content": "Hello"}]
    for _ in range(50):
        answer = api.post(
            "chat/completions", json={"model": "test/echo", "messages": said}, headers=last
        )
        if answer.status_code == 401:
            break
    assert answer.status_code == 401
