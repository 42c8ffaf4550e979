"""What people come to the console for, from the first page to the last.

Keeps C92.
"""

import csv
from decimal import Decimal
from pathlib import Path

import httpx2

from tests.browser.visitor import Visitor
from tests.functional.test_login import ANA


def test_somebody_signs_in_by_the_issuer_works_and_signs_out(
    visitor: Visitor, api: httpx2.Client
) -> None:
    page = visitor.page
    visitor.sign_in_by_issuer(ANA["sub"])
    assert page.url == f"{visitor.host}/console/#/spend"
    assert page.locator(".who").inner_text() == ANA["email"]
    for view in ("keys", "credit", "audit", "playground"):
        visitor.open(view)
        assert page.locator(".notice.bad").count() == 0, visitor.text
    visitor.fill(model="test/echo", prompt="Hello by my own name")
    visitor.press("Send")
    page.get_by_role("link", name="bill").click()
    page.get_by_role("heading", name="Bill").wait_for()
    assert ANA["email"] in visitor.text
    secret = page.evaluate("sessionStorage.getItem('tollgate.secret')")
    bearer = {"authorization": f"Bearer {secret}"}
    assert api.get("session", headers=bearer).json()["data"]["member_id"] == ANA["email"]
    visitor.press("Sign out")
    page.get_by_text("You are signed out").wait_for()
    assert api.get("session", headers=bearer).status_code == 401


def test_c91_a_person_ends_a_session_of_their_own(visitor: Visitor, api: httpx2.Client) -> None:
    page, path = visitor.page, f"members/{ANA['email']}/sessions"
    visitor.sign_in_by_issuer(ANA["sub"])
    first, *others = api.get(path).json()["data"]
    visitor.open("teams")
    page.get_by_role("button", name=f"Sessions … {ANA['email']}").click()
    assert first["opened_at"][:10] in page.locator("dialog").inner_text()
    page.get_by_role("button", name=f"End the session {first['id']}").click()
    page.get_by_role("button", name=f"End the session {first['id']}").wait_for(state="detached")
    assert api.get(path).json()["data"] == others


def test_a_sign_in_that_was_not_begun_in_this_tab_is_refused(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.host}/console/?code=stolen&state=forged")
    visitor.page.get_by_text("This sign-in did not begin in this tab.").wait_for()
    assert visitor.page.url == f"{visitor.host}/console/"
    assert visitor.page.evaluate("sessionStorage.length") == 0


def test_finance_closes_a_month_without_a_terminal(
    visitor: Visitor, api: httpx2.Client, tmp_path: Path
) -> None:
    bearer = {"authorization": f"Bearer {visitor.server.key}"}
    said = [{"role": "user", "content": "Pay for this " * 50}]
    asked = api.post(
        "chat/completions", json={"model": "test/echo", "messages": said}, headers=bearer
    )
    assert asked.status_code == 200
    finance = api.post("keys", json={"name": "finance", "role": "read"}).json()["key"]
    visitor.sign_in(finance)
    page = visitor.page
    visitor.open("credit")
    page.get_by_text("local-start").wait_for()
    assert page.get_by_role("button", name="Grant credit …").count() == 0
    statement = api.get("statement").json()["data"]
    visitor.open(f"statement?month={statement['month']}")
    page.get_by_text("Closing balance").first.wait_for()
    balance = page.get_by_role("region", name="Balance").locator("tbody tr").all_inner_texts()
    shown = {name: Decimal(amount) for name, amount in (row.split("\t") for row in balance)}
    closing = shown.pop("Closing balance")
    assert sum(shown.values()) == closing
    assert float(closing) == statement["closing_balance"]
    with page.expect_download() as saved:
        visitor.press("Save as CSV")
    file = tmp_path / saved.value.suggested_filename
    saved.value.save_as(file)
    with file.open(newline="") as opened:
        amounts = [Decimal(row["amount"]) for row in csv.DictReader(opened)]
    assert sum(amounts[:-1]) == amounts[-1] == closing
    with page.expect_download() as saved:
        visitor.press("Save as a printable page")
    assert saved.value.suggested_filename == f"statement-default-{statement['month']}.html"


def test_c92_a_team_gets_a_budget_spends_it_and_sees_the_refusal(
    visitor: Visitor, api: httpx2.Client
) -> None:
    page = visitor.page
    visitor.sign_in()
    visitor.open("teams")
    visitor.press("Create a team …")
    visitor.fill(id="ranking", display_name="Ranking", limit_day="0.004", requests_per_minute="600")
    visitor.press("Create")
    page.get_by_role("article", name="Ranking").wait_for()
    visitor.open("keys")
    visitor.press("Create a key …")
    visitor.fill(name="ranking bot", team_id="ranking")
    visitor.press("Create")
    secret = page.locator("dialog code").inner_text()
    visitor.press("Done")
    page.get_by_role("article", name="Key ranking bot").wait_for()

    visitor.press("Sign out")
    visitor.sign_in(secret)
    visitor.open("playground")
    answer = page.get_by_role("region", name="Answer")
    visitor.fill(model="test/echo", prompt="Rank these " * 400, max_tokens="900")
    for _ in range(3):
        visitor.fill(prompt="Rank these " * 400)
        visitor.press("Send")
        page.get_by_role("button", name="Send").and_(page.locator(":enabled")).wait_for()
        if answer.get_by_role("alert").count():
            break
        record = page.get_by_role("link", name="bill").get_attribute("href")
    refusal = answer.get_by_role("alert").inner_text()
    assert "ranking" in refusal
    assert "per day" in refusal
    visitor.press("Sign out")
    visitor.sign_in()

    visitor.open("teams")
    card = page.get_by_role("article", name="Ranking").inner_text()
    [team] = [it for it in api.get("teams").json()["data"] if it["id"] == "ranking"]
    assert f"of ${team['limits']['day']}" in card
    assert "resets in" in card
    before = api.get("credits").json()["data"]["available"]
    page.goto(f"{visitor.host}/console/{record}")
    visitor.press("Refund …")
    visitor.fill(note="of a test")
    visitor.press("Refund")
    page.get_by_text("Refunded. Available now:").wait_for()
    assert api.get("credits").json()["data"]["available"] > before
    visitor.open("credit")
    page.get_by_text("of a test").wait_for()
    visitor.press("Sign out")
    page.get_by_text("You are signed out").wait_for()
