"""Every view: its headings, its accessibility in both themes, a phone's width, the first paint."""

import json
import re
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from playwright.sync_api import Request, Route

from tests.browser.conftest import SCREEN, slug
from tests.browser.visitor import Visitor
from tests.nightly import first

# The address of each view, a text that it shows once it is drawn.
VIEWS = {
    "spend": "Month so far",
    "spend?by=team": "Spend a day by team",
    "spend?range=7d&by=team&then=model&show=tokens": "Tokens a day by team",
    "spend?month=2026-01": "The records of 2026-01 have expired.",
    "generations": "test/echo",
    "generations?live=1": "Live:",
    "generations?model=nobody": "No generations match.",
    "generation?id=SERVED": "Input",
    "generation?id=FAILED": "provider_rate_limit",
    "batches": "of 2 lines",
    "keys": "search production",
    "teams": "Add a member …",
    "statement": "Closing balance",
    "credit": "local-start",
    "models?find=test/echo": "test/echo:429",
    "models?id=test/fallback": "Endpoints of",
    "routing?model=test/fallback": "test/fallback",
    "playground": "Maximum output tokens",
    "audit": "key.create",
    "audit?target=nobody": "No changes match.",
}
_NAMES = ("weather", "time")
THEMES = ("light", "dark")
# The views in docs/console.md, with their themes.
PICTURES = {
    "spend": "dark",
    "generation?id=SERVED": "light",
    "routing?model=test/fallback": "dark",
    "teams": "light",
}
PHONE = {"width": 390, "height": 844}
LOADED_MAX = 12
LOADED_BYTES_MAX = 45_000
SCREENSHOT_BYTES_MAX = 150_000
SDKS = ("openai", "anthropic")
HELLO = [{"role": "user", "content": "Hello"}]


def address(view: str, seeded: dict[str, str]) -> str:
    return re.sub("SERVED|FAILED", lambda found: seeded[found[0]], view)


@pytest.mark.parametrize("view", first(3, VIEWS))
def test_a_view_is_accessible_in_both_themes_and_fits_a_phone(
    resident: Visitor,
    seeded: dict[str, str],
    axe: str,
    view: str,
    folder_of_screenshots: Path | None,
) -> None:
    page = resident.page
    page.set_viewport_size(SCREEN)
    resident.go(address(view, seeded))
    page.locator("main").get_by_text(VIEWS[view]).locator("visible=true").first.wait_for()
    assert page.locator("h1").count() == 1
    assert page.locator(".notice.bad").count() == 0, resident.text
    # An element in a string.
    assert "[object" not in resident.text
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert violations(resident, axe) == []
        if folder_of_screenshots is not None and PICTURES.get(view) == theme:
            picture = folder_of_screenshots / f"{slug(view.partition('?')[0])}-{theme}.png"
            page.screenshot(path=picture)
            assert picture.stat().st_size <= SCREENSHOT_BYTES_MAX
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def violations(visitor: Visitor, axe: str) -> list[tuple[str, str]]:
    """Return the rules that the page breaks, each with an element that does."""
    found = visitor.page.evaluate(f"{axe}; axe.run(document, {{resultTypes: ['violations']}})")
    return [(it["id"], it["nodes"][0]["html"]) for it in found["violations"]]


def test_axe_finds_what_is_not_accessible(visitor: Visitor, axe: str) -> None:
    visitor.page.goto(f"{visitor.host}/console/")
    visitor.page.locator("h1").evaluate(
        "it => { it.style.color = 'rgb(200, 200, 200)'; it.append(document.createElement('img')); }"
    )
    assert {"image-alt", "color-contrast"} <= {rule for rule, _ in violations(visitor, axe)}


@pytest.mark.parametrize("path", ["/console/", "/"])
def test_the_pages_that_need_no_key_are_accessible_and_small(
    visitor: Visitor, axe: str, path: str
) -> None:
    page = visitor.page
    page.goto(f"{visitor.host}{path}")
    page.locator("h1").wait_for()
    # Milliseconds are a figure of the machine; what they are made of is not.
    loaded = page.evaluate("performance.getEntriesByType('resource').map(it => it.encodedBodySize)")
    assert len(loaded) <= LOADED_MAX
    assert sum(loaded) <= LOADED_BYTES_MAX
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert violations(visitor, axe) == []
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_landing_page_has_the_base_urls_with_which_the_sdks_work(visitor: Visitor) -> None:
    server = visitor.server
    asked: Any = {"model": "test/echo", "messages": HELLO, "max_tokens": 9}
    visitor.page.goto(f"{visitor.host}/")
    visitor.page.get_by_text(f"export TOLLGATE_URL={server.base_url}", exact=True).wait_for()
    shown = {name: visitor.page.locator(f"#{name} code").inner_text() for name in SDKS}
    assert shown["anthropic"] == visitor.host
    with openai.OpenAI(base_url=shown["openai"], api_key=server.key) as client:
        assert client.chat.completions.create(**asked).choices
    with anthropic.Anthropic(base_url=shown["anthropic"], api_key=server.key) as client:
        assert client.messages.create(**asked).content
    visitor.page.get_by_role("link", name="Console").click()
    visitor.page.get_by_role("heading", name="Sign in").wait_for()
    assert visitor.page.url == f"{visitor.host}/console/"


def test_the_keyboard_reaches_everything_and_the_skip_link_comes_first(visitor: Visitor) -> None:
    visitor.sign_in()
    page = visitor.page
    page.reload()
    visitor.wait()
    reached = []
    for _ in range(24):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim()"))
    assert reached[0] == "Skip to content"
    assert {"Tollgate", "Spend", "Generations", "Audit", "Sign out", "Last month"} <= set(reached)


def test_a_key_that_is_refused_is_told_why_and_may_try_again(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.host}/console/")
    page.get_by_label("Key", exact=True).fill("sk-tg-nobody")
    visitor.press("Sign in")
    page.get_by_role("alert").get_by_text("key").wait_for()
    assert page.evaluate("sessionStorage.length") == 0
    page.get_by_label("Key", exact=True).fill(visitor.server.management_key)
    visitor.press("Sign in")
    visitor.wait()


def test_an_inference_key_sees_itself_and_what_it_may_call(visitor: Visitor) -> None:
    visitor.sign_in(visitor.server.key)
    links = visitor.page.locator("nav a").all_inner_texts()
    assert links == ["Generations", "Keys", "Batches", "Models", "Routing", "Playground"]
    visitor.open("keys")
    assert "local inference" in visitor.text
    visitor.page.goto(f"{visitor.host}/console/#/audit")
    visitor.page.wait_for_url("**/#/generations")


def test_the_playground_streams_an_answer_with_its_cost_and_its_code(visitor: Visitor) -> None:
    visitor.sign_in(visitor.server.key)
    visitor.open("playground")
    page = visitor.page
    visitor.fill(model="test/echo", prompt="Say it's fine", picture="https://example.org/a.png")
    page.get_by_label("This request as").select_option("typescript")
    shown = page.locator(".copyable code").inner_text()
    assert '"url": "https://example.org/a.png"' in shown
    assert "process.env.TOLLGATE_API_KEY" in shown
    page.get_by_label("This request as").select_option("curl")
    visitor.fill(picture="")
    visitor.press("Send")
    page.get_by_role("link", name="bill").wait_for()
    answer = page.get_by_role("region", name="Answer")
    assert answer.inner_text().strip() == "Say it's fine"
    visitor.press("Show code")
    code = page.locator(".copyable code").inner_text()
    assert f"curl -N {visitor.server.base_url}/chat/completions" in code
    assert "'\\''" in code
    assert visitor.server.key not in code
    visitor.fill(model="test/echo:429", prompt="And now?")
    page.get_by_label("Prompt").press("Control+Enter")
    answer.get_by_role("alert").wait_for()
    assert "Request" in answer.inner_text()
    # Neither the figures nor the bill of the run before.
    assert page.get_by_role("link", name="bill").count() == 0
    assert "Tokens" not in visitor.text.partition("Show code")[2]
    visitor.fill(model="test/echo")
    visitor.press("Send")
    page.get_by_role("link", name="bill").wait_for()
    visitor.press("Show code")
    sent = page.locator(".copyable code").inner_text()
    # The refused prompt was sent again once, after the first turn.
    assert [sent.count(text) for text in ("it'\\''s fine", "And now?")] == [2, 1]
    visitor.press("New conversation")
    assert page.locator(".turn").count() == 0


@pytest.mark.nightly
def test_the_playground_calls_tools_whose_results_the_person_types(visitor: Visitor) -> None:
    sent: list[Any] = []

    def note(request: Request) -> None:
        if request.url.endswith("/chat/completions"):
            sent.append(request.post_data_json)

    place = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Bern"]}}}
    tools = [
        {"type": "function", "function": {"name": name, "parameters": place}} for name in _NAMES
    ]
    page = visitor.page
    page.on("request", note)
    visitor.sign_in(visitor.server.key)
    visitor.open("playground")
    visitor.fill(model="test/tools", prompt="Is it sunny?", tools="{}")
    visitor.press("Send")
    assert page.locator("[name=tools]:invalid").count() == 1
    visitor.fill(tools=json.dumps(tools), temperature="0")
    for language in ("python", "typescript", "curl"):
        page.get_by_label("This request as").select_option(language)
        code = page.locator(".copyable code").inner_text().replace("\\", "")
        assert ["temperature" in code, '"weather"' in code] == [True, True]
    visitor.press("Send")
    page.get_by_role("link", name="bill").wait_for()
    answer = page.get_by_role("region", name="Answer")
    assert answer.inner_text().split("\n") == [f'{name}({{"city":"Bern"}})' for name in _NAMES]
    for name, result in zip(_NAMES, ("Rain", "Noon"), strict=True):
        page.get_by_label(f"Result of {name}").fill(result)
        visitor.press("Send")
    answer.get_by_text("The tool answered: Noon").wait_for()
    first, second = sent
    assert (first["tools"], first["temperature"]) == (tools, 0)
    *_, called, rain, noon = second["messages"]
    ids = [call["id"] for call in called["tool_calls"]]
    assert [rain["tool_call_id"], noon["tool_call_id"]] == ids
    assert page.get_by_label("Prompt").input_value() == ""


def test_a_gateway_that_is_away_is_said_with_what_to_do(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.page.route("**/v1/activity*", lambda route: route.abort())
    visitor.page.goto(f"{visitor.host}/console/#/spend?by=key")
    visitor.page.get_by_text("The gateway cannot be reached.").wait_for()
    visitor.page.unroute("**/v1/activity*")
    visitor.press("Try again")
    table = visitor.page.get_by_role("table", name="Spend by key")
    table.get_by_text("search production").wait_for()
    assert visitor.faults == ["Failed to load resource: net::ERR_FAILED"]
    visitor.faults.clear()


def test_spend_of_too_many_keys_is_by_key_and_by_day_and_not_by_both(visitor: Visitor) -> None:
    def refuse(route: Route) -> None:
        if "by=day&by=key" in route.request.url:
            route.fulfill(status=400, json={"error": {"message": "by: too many", "code": "x"}})
        else:
            route.continue_()

    visitor.sign_in()
    visitor.page.route("**/v1/activity*", refuse)
    visitor.go("spend?by=key")
    table = visitor.page.get_by_role("table", name="Spend by key")
    table.get_by_text("search production").wait_for()
    days = "".join(visitor.page.locator("svg title").all_text_contents())
    assert "all others" in days
    assert "search production" not in days
    visitor.page.unroute("**/v1/activity*")
    visitor.faults.clear()


@pytest.mark.nightly
def test_the_reference_shows_every_route_and_asks_for_no_key(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.host}/docs/")
    chat = page.locator('[data-path="/v1/chat/completions"]')
    # The server writes the document at the first request, and the viewer draws every route.
    page.locator("#operations-tag-chat").click(timeout=60_000)
    chat.wait_for()
    assert page.url == f"{visitor.host}/docs#/chat"
    chat.click()
    page.get_by_text("Request body").first.wait_for()
    for name in ("Try it out", "Authorize"):
        assert page.get_by_role("button", name=name).count() == 0
