"""What people do in the console every day: look where requests went, and try another."""

import csv
import json
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Route

from tests.browser.test_views import THEMES, violations
from tests.browser.visitor import Visitor


def test_c3_a_provider_without_a_key_does_not_look_ready(visitor: Visitor, axe: str) -> None:
    visitor.sign_in()
    visitor.go("models?id=fast")
    states = visitor.page.get_by_role("table", name="Endpoints of openai/gpt-oss-120b")
    states.get_by_text("no key").first.wait_for()
    assert "in service" not in visitor.text
    visitor.go("routing?model=fast")
    visitor.page.get_by_text("No endpoint has a usable key").wait_for()
    for theme in THEMES:
        visitor.page.emulate_media(color_scheme=theme)
        assert violations(visitor, axe) == []
    visitor.go("models?id=test/echo")
    visitor.page.get_by_text("in service").wait_for()


def test_somebody_looks_where_the_money_went_by_two_groups(
    visitor: Visitor, axe: str, tmp_path: Path
) -> None:
    visitor.sign_in()
    page = visitor.page
    page.get_by_role("link", name="7 days").click()
    page.locator("[name=by]").select_option("team")
    page.get_by_role("heading", name="Spend a day by team").wait_for()
    page.locator("[name=then]").select_option("model")
    table = page.get_by_role("table", name="Spend by team")
    table.get_by_role("columnheader", name="Model").wait_for()
    page.locator("[name=show]").focus()
    page.locator("[name=show]").select_option("errors")
    table = page.get_by_role("table", name="Errors by team")
    table.wait_for()
    assert page.evaluate("document.activeElement.name") == "show"
    first = table.locator("tbody tr").first
    assert "search" in first.inner_text()
    assert "test/echo:429" in first.inner_text()
    table.get_by_role("button", name="Requests").click()
    assert table.locator("[aria-sort]").inner_text().startswith("Requests")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Reasoning").check()
    table.get_by_role("columnheader", name="Reasoning").wait_for()
    assert violations(visitor, axe) == []
    with page.expect_download() as saved:
        visitor.press("Save as CSV")
    file = tmp_path / "spend.csv"
    saved.value.save_as(file)
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    failed = [row for row in rows if row["model"] == "test/echo:429"]
    [requests] = [int(row["failed"]) for row in failed]
    # A row leads to the requests behind its figure, wherever the row is pressed.
    row = table.locator("tbody tr").filter(has_text="test/echo:429")
    row.locator("td").last.click(force=True)
    found = page.get_by_role("table", name="Generations").locator("tbody tr")
    found.first.wait_for()
    assert found.count() == requests
    assert "provider_rate_limit" in found.first.inner_text()


def test_requests_appear_as_they_come(visitor: Visitor, api: httpx2.Client) -> None:
    visitor.sign_in()
    page = visitor.page
    visitor.open("generations?live=1&model=test/echo")
    rows = page.get_by_role("table", name="Generations").locator("tbody tr")
    rows.first.wait_for()
    before = rows.count()
    bearer = {"authorization": f"Bearer {visitor.server.key}"}
    body = {"model": "test/echo", "messages": [{"role": "user", "content": "Live"}]}
    made = api.post("chat/completions", json=body, headers=bearer)
    page.locator("tr.fresh").wait_for()
    assert rows.count() == before + 1
    rows.first.locator("td").nth(3).click(force=True)
    page.get_by_role("heading", name="Bill").wait_for()
    assert made.headers["x-generation-id"] in page.url


def test_a_key_is_changed_whole_and_what_changes_is_shown_first(
    visitor: Visitor, api: httpx2.Client, axe: str
) -> None:
    visitor.sign_in()
    page = visitor.page
    visitor.open("keys")
    visitor.press("Create a key …")
    visitor.fill(name="night batch", team_id="research", tokens_per_minute="9000", limit_day="2")
    visitor.press("Create")
    visitor.press("Done")
    page.get_by_role("button", name="Change … night batch").click()
    visitor.fill(
        models="test/*, smart", expires_at="2031-05-06", limit_day="0.5", response_days="7"
    )
    page.locator("[name=tokens_per_minute]").fill("")
    shown = page.locator("dialog .changes li").all_inner_texts()
    assert [line.partition(":")[0] for line in shown] == [
        "Models",
        "Expires (UTC)",
        "Tokens per minute",
        "Days to store responses",
        "Limit of the day, $",
    ]
    assert "2 0.5" in shown[-1]
    assert "$0.00 of it are spent." in shown[-1]
    assert violations(visitor, axe) == []
    visitor.press("Save")
    page.locator("dialog").wait_for(state="detached")
    [key] = [it for it in api.get("keys").json()["data"] if it["name"] == "night batch"]
    assert (key["models"], key["limits"]) == (["test/*", "smart"], {"day": 0.5})
    assert key["expires_at"] == "2031-05-06T23:59:59Z"
    assert (key["tokens_per_minute"], key["response_days"]) == (None, 7)
    # What the form left as it was is not sent.
    assert (key["team_id"], key["requests_per_minute"]) == ("research", 60)


def test_an_id_is_explained_in_words(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.open("teams")
    visitor.press("Create a team …")
    visitor.fill(id="Growth Team")
    visitor.press("Create")
    field = visitor.page.locator("dialog [name=id]")
    assert field.evaluate("it => it.validity.patternMismatch")
    visitor.page.get_by_text("Use lower-case letters, digits, . _ -").wait_for()
    assert "^[" not in visitor.page.locator("dialog").inner_text()


@pytest.mark.parametrize("width", [360, 390])
def test_a_statement_of_large_sums_fits_a_phone(visitor: Visitor, width: int) -> None:
    def enlarge(route: Route) -> None:
        reply = route.fetch().json()
        sums = {"usage": 1_234_567.891234567, "closing_balance": -9_876_543.219876543}
        reply["data"] |= {**sums, "credit_limit": 25_000_000.123456789}
        route.fulfill(body=json.dumps(reply), content_type="application/json")

    visitor.sign_in()
    visitor.page.route("**/v1/statement*", enlarge)
    visitor.page.set_viewport_size({"width": width, "height": 800})
    visitor.go("statement")
    visitor.page.get_by_text("$1,234,567.89").wait_for()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
    spilt = "them => them.filter(it => it.scrollWidth > it.clientWidth).length"
    assert visitor.page.locator(".figures > div").evaluate_all(spilt) == 0


def test_the_key_is_asked_for_at_once_and_a_wrong_one_is_an_error(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.host}/console/")
    page.get_by_role("heading", name="Sign in").wait_for()
    page.keyboard.type("sk-tg-nobody")
    page.keyboard.press("Enter")
    page.locator(".notice.bad").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type(visitor.server.key)
    page.keyboard.press("Enter")
    visitor.wait()
    # An inference key is offered no view that its role cannot open.
    assert page.get_by_role("link", name="Members").count() == 0
    visitor.press("Sign out")
    page.get_by_text("You are signed out").wait_for()
    assert page.locator(".notice.bad").count() == 0


def test_c102_a_shadow_leads_to_its_original_and_a_route_states_its_share(
    visitor: Visitor, seeded: dict[str, str]
) -> None:
    def add_shadow(route: Route) -> None:
        reply = route.fetch()
        answer = reply.json()
        if "data" in answer:
            answer["data"]["shadow"] = {"generation_id": seeded["SERVED"]}
            answer["data"]["notes"] = [f"shadow of {seeded['SERVED']} on route chat"]
            repeated = {"generation_id": seeded["SERVED"], "is_readable": True}
            answer["data"]["shadowed_by"] = repeated
            policy = {"owner": "key", "regions": ["eu"], "no_training": True, "no_retention": False}
            answer["data"]["trace"] |= {"budget_left_percent": 15, "prompt_policies": [policy]}
        else:
            answer["shadow"] = {"model": "test/silent", "share": 5, "used": None, "unused": None}
        route.fulfill(response=reply, json=answer)

    visitor.sign_in()
    page = visitor.page
    page.route("**/v1/generation?*", add_shadow)
    page.route("**/v1/route/explain", add_shadow)
    visitor.go(f"generation?id={seeded['FAILED']}")
    note = page.get_by_role("listitem").filter(has_text="on route chat")
    assert note.inner_text() == f"shadow of {seeded['SERVED']} on route chat"
    assert "Budget left\n15 %" in visitor.text
    assert "Prompt policies\nkey: eu, no_training" in visitor.text
    shadow = page.locator("dl.facts > div").filter(has_text="Shadow")
    assert shadow.get_by_role("link").inner_text() == seeded["SERVED"]
    page.unroute("**/v1/generation?*")
    note.get_by_role("link").click()
    page.locator(".path").get_by_text(seeded["SERVED"]).wait_for()
    for name in ("on route chat", "Budget left", "Prompt policies", "Preset"):
        assert name not in visitor.text
    visitor.go("routing?model=test/fallback")
    page.get_by_text("5 % of the route's requests also go to test/silent").wait_for()
