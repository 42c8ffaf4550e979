"""What a stranger could try on whoever is signed in: markup in texts, forged requests, frames."""

import json

import httpx2
import pytest

from tests.browser.traffic import attack
from tests.browser.visitor import Visitor

FOREIGN = "http://127.0.0.1"


def assert_harmless(visitor: Visitor) -> None:
    page = visitor.page
    assert page.evaluate("window.owned") is None
    assert page.locator("main img, main script, main svg[onload]").count() == 0


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("spend?by=team", "label"),
        ("spend?by=key", "name"),
        ("spend?by=environment", "window.owned=2"),
        ("generations", "name"),
        ("generation?id=SERVED", "user"),
        ("generation?id=ADAPTED", "adapted"),
        ("keys", "name"),
        ("credit", "note"),
        ("audit", "name"),
        ("models?find=%3Cimg%20src%3Dx%20onerror%3Dwindow.owned%3D3%3E", ""),
        ("models?id=%3Cimg%20src%3Dx%20onerror%3Dwindow.owned%3D3%3E", "onerror"),
        ("spend?month=%3Cimg%20src%3Dx%3E&by=__proto__", "Month so far"),
    ],
)
def test_a_text_that_is_markup_stays_a_text(
    resident: Visitor, attacked: dict[str, str], view: str, shown: str
) -> None:
    for name in ("served", "adapted"):
        view = view.replace(name.upper(), attacked[name])
    resident.page.evaluate("view => { location.hash = `#/${view}`; }", view)
    place = resident.page.locator("main").get_by_text(shown).locator("visible=true")
    place.first.wait_for()
    assert_harmless(resident)


def test_an_answer_and_an_error_that_are_markup_stay_texts(
    visitor: Visitor, attacked: dict[str, str]
) -> None:
    visitor.sign_in(attacked["secret"])
    visitor.open("playground")
    answer = visitor.page.get_by_role("region", name="Answer")
    visitor.fill(model="test/echo", prompt=attack("answer"))
    visitor.press("Send")
    answer.get_by_text(attack("answer")).wait_for()
    visitor.fill(model=attack("error"), prompt=attack("answer"))
    visitor.press("Send")
    answer.get_by_role("alert").get_by_text("onerror").first.wait_for()
    assert_harmless(visitor)


def test_an_address_of_another_scheme_is_left_out(resident: Visitor) -> None:
    made = resident.page.evaluate(
        "import('./dom.js').then(({h}) => ['javascript:alert(1)', ' javascript:alert(1)',"
        " 'data:text/html,x', '//evil.example', '#/spend'].map(it => h('a', {href: it})"
        ".getAttribute('href')))"
    )
    assert made == [None, None, None, None, "#/spend"]


@pytest.mark.parametrize(
    "attempt",
    [
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.owned=1>')",
        "document.querySelector('main').innerHTML = '<b>x</b>'",
        "document.body.setAttribute('onclick', 'window.owned = 1')",
        "Object.assign(document.createElement('script'), {src: 'https://evil.example/x.js'})",
    ],
)
def test_the_browser_refuses_markup_and_code_that_are_made_of_texts(
    resident: Visitor, attempt: str
) -> None:
    refused = resident.page.evaluate(
        f"(() => {{ try {{ {attempt} }} catch (it) {{ return it.name }} }})()"
    )
    assert refused == "TypeError"
    resident.faults.clear()


def test_the_page_talks_to_no_other_host(resident: Visitor) -> None:
    refused = resident.page.evaluate("fetch('https://evil.example/').then(() => 0, it => it.name)")
    assert refused == "TypeError"
    assert any("Content Security Policy" in it for it in resident.faults)
    resident.faults.clear()


@pytest.fixture
def foreign(visitor: Visitor) -> str:
    """A page of another origin, which the same browser opens while somebody is signed in."""
    visitor.sign_in()
    origin = visitor.host.removesuffix("/api").replace("http://localhost", FOREIGN)
    # An answer of the API: a document without a policy of its own, as a stranger's would be.
    visitor.page.goto(f"{origin}/v1/health/live")
    return origin


def test_a_page_of_another_origin_changes_nothing_in_the_name_of_whoever_is_signed_in(
    visitor: Visitor, api: httpx2.Client, foreign: str
) -> None:
    before = api.get("keys").json()["data"]
    forged = json.dumps({"name": "forged"})
    for content_type in ("text/plain", "application/json"):
        status = visitor.page.evaluate(
            f"fetch('{visitor.host}/v1/keys', {{method: 'POST', credentials: 'include', body:"
            f" '{forged}', headers: {{'content-type': '{content_type}'}}}}).then(it => it.status,"
            " it => it.name)"
        )
        assert status in {401, "TypeError"}
    assert [it["id"] for it in api.get("keys").json()["data"]] == [it["id"] for it in before]
    assert visitor.page.context.cookies() == []
    visitor.faults.clear()


def test_the_console_is_shown_in_no_frame(visitor: Visitor, foreign: str) -> None:
    framed = {}
    for path in ("/v1/health/live", "/console/", "/"):
        with visitor.page.expect_event("framenavigated"):
            visitor.page.evaluate(
                "source => { const it = document.createElement('iframe'); it.src = source;"
                " document.body.replaceChildren(it); }",
                f"{visitor.host}{path}",
            )
        framed[path] = visitor.page.frames[-1].url
    # What may be framed shows that frames load here at all.
    assert framed.pop("/v1/health/live") == f"{visitor.host}/v1/health/live"
    assert set(framed.values()) == {"chrome-error://chromewebdata/"}
    visitor.faults.clear()


def test_another_tab_and_a_tab_that_signed_out_know_no_key(visitor: Visitor) -> None:
    visitor.sign_in()
    other = visitor.page.context.new_page()
    other.goto(f"{visitor.host}/console/")
    other.get_by_role("heading", name="Sign in").wait_for()
    visitor.press("Sign out")
    visitor.page.get_by_text("You are signed out").wait_for()
    assert visitor.page.evaluate("sessionStorage.length + localStorage.length") == 0
    visitor.page.reload()
    visitor.page.get_by_role("heading", name="Sign in").wait_for()
