"""What goes wrong while somebody works in the console, and that the work goes on.

Keeps C92.
"""

import csv
import re
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Route

from tests.browser.conftest import SCREEN
from tests.browser.visitor import Visitor
from tests.functional.test_login import ANA

PAGE_ROWS = 5
RIGHTS_MS = 5_500
ROW_PX = 160


def test_the_link_that_skips_to_the_content_stays_in_the_view(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.open("audit?actor=nobody")
    page = visitor.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.url.endswith("#/audit?actor=nobody")
    page.get_by_text("No changes match.").wait_for()


def test_a_session_that_ends_is_renewed_once_for_calls_side_by_side(
    visitor: Visitor,
) -> None:
    page = visitor.page
    visitor.sign_in_by_issuer(ANA["sub"])
    asked: list[str] = []
    page.on("request", lambda it: asked.append(it.url))
    expired: set[str | None] = set()

    def answer(route: Route) -> None:
        if route.request.headers.get("authorization") in expired:
            route.fulfill(status=401, json={"error": {"message": "expired"}})
        else:
            route.continue_()

    page.route("**/api/v1/**", answer)
    for view in ("credit", "teams"):
        secret = page.evaluate("sessionStorage.getItem('tollgate.secret')")
        expired.add(f"Bearer {secret}")
        visitor.go(view)
    assert page.locator("h1").inner_text() == "Teams"
    assert len([it for it in asked if it.endswith("/oauth/token")]) == 2


def test_a_saved_table_has_the_rows_of_all_pages_and_a_refusal_is_shown(
    visitor: Visitor, api: httpx2.Client, tmp_path: Path
) -> None:
    visitor.sign_in()
    visitor.open("generations")
    page = visitor.page
    made = len(api.get("generations", params={"limit": 1000}).json()["data"])
    assert made > PAGE_ROWS
    tables = re.compile(r"/v1/generations\?.*format=csv")
    few = f"limit={PAGE_ROWS}"
    page.route(tables, lambda it: it.continue_(url=it.request.url.replace("limit=1000", few)))
    with page.expect_download() as saved:
        visitor.press("Save as CSV")
    saved.value.save_as(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len({row["id"] for row in rows}) == made
    page.unroute(tables)
    page.route(tables, lambda it: it.abort())
    visitor.press("Save as CSV")
    page.get_by_text("The gateway cannot be reached.").wait_for()
    assert visitor.faults == ["Failed to load resource: net::ERR_FAILED"]
    visitor.faults.clear()


def test_a_filter_that_is_refused_stays_to_be_changed(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.open("generations?label=search")
    visitor.page.get_by_text("label: must be name:value.").wait_for()
    visitor.fill(label="team:search")
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_role("table").get_by_text("test/echo").first.wait_for()


def test_a_month_that_does_not_exist_is_read_as_this_one(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.open("spend?month=2026-99")
    visitor.page.get_by_text("Month so far").wait_for()


@pytest.mark.nightly
@pytest.mark.parametrize("role", ["developer", "billing", "viewer"])
def test_each_role_is_shown_views_that_the_api_serves_to_it(
    visitor: Visitor, api: httpx2.Client, role: str
) -> None:
    page = visitor.page
    visitor.sign_in_by_issuer(ANA["sub"])
    member = f"members/{ANA['email']}"
    assert api.patch(member, json={"role": role}).json()["data"]["role"] == role
    # Rights of a session are as old as its key's, at most.
    page.wait_for_timeout(RIGHTS_MS)
    page.reload()
    visitor.wait()
    for view in page.locator("nav a").all_inner_texts():
        visitor.go(view.lower())
        assert page.locator("h1").inner_text() == view
        assert page.locator(".notice.bad").count() == 0, visitor.text
    assert api.patch(member, json={"role": "admin"}).status_code == 200


def test_what_was_sought_stays_when_a_key_is_changed(visitor: Visitor, api: httpx2.Client) -> None:
    visitor.sign_in()
    visitor.open("keys")
    page = visitor.page
    page.get_by_label("Find by name").fill("support")
    visitor.press("Disable support bot")
    page.get_by_role("button", name="Enable support bot").wait_for()
    assert page.get_by_role("article").count() == 1
    visitor.press("Enable support bot")
    page.get_by_role("button", name="Disable support bot").wait_for()
    visitor.press("Create a key …")
    visitor.fill(name="shown once")
    visitor.press("Create")
    secret = page.locator("dialog code").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("dialog code").inner_text() == secret


def test_long_names_leave_room_for_the_other_columns(visitor: Visitor, api: httpx2.Client) -> None:
    long = {"id": f"{'x' * 100}@long.example", "role": "viewer"}
    assert api.post("members", json=long).status_code == 201
    visitor.sign_in()
    visitor.open("audit?target=" + long["id"])
    row = visitor.page.locator("tbody tr").bounding_box()
    changes = visitor.page.locator(".changes").bounding_box()
    assert row is not None
    assert changes is not None
    assert changes["x"] + changes["width"] <= SCREEN["width"]
    assert row["height"] < ROW_PX


def test_credit_that_expires_and_credit_that_is_lent_are_shown(
    visitor: Visitor, api: httpx2.Client
) -> None:
    body = {"id": "plan", "amount": 7, "expires_at": "2099-01-01T00:00:00Z"}
    assert api.post("credits/grants", json=body).status_code == 200
    assert api.patch("workspaces/default", json={"credit_limit": 40}).status_code == 200
    visitor.sign_in()
    visitor.open("credit")
    expiring = visitor.page.get_by_role("region", name="Credit that expires")
    assert "plan\t2099-01-01" in expiring.locator("tbody tr").inner_text()
    assert "Credit limit\n$40.00\n$0.00 owed" in visitor.text
    granted = api.get("credits").json()["data"]["total_credits"] - 40
    assert f"Granted\n${granted:,.2f}" in visitor.text
    assert api.patch("workspaces/default", json={"credit_limit": 0}).status_code == 200
