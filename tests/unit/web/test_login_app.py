"""The app that signs people in, as browsers, Claude Code and the command line see it."""

import asyncio
import json
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.deployment import PATIENCE_S
from tests.unit.sign_in.signing_in import PUBLIC_URL, house
from tests.unit.web.browsing import DEVICE_GRANT, Browser, bearer
from tollgate.sign_in.codes import challenge_of
from tollgate.web.sign_in.sign_in_paths import LOGIN_PATHS

VERIFIER = "v" * 43


async def test_the_endpoints_are_described_and_of_one_origin() -> None:
    reply = await Browser(house()).ask("GET", "/.well-known/oauth-authorization-server")
    described = reply.json
    assert described["issuer"] == PUBLIC_URL
    assert described["gateway_protocol_version"] == 1
    for name, value in described.items():
        if name.endswith("_endpoint"):
            assert value.startswith(PUBLIC_URL + "/")


async def test_a_program_signs_in_by_its_codes() -> None:
    browser = Browser(house())
    reply = await browser.form("/oauth/device_authorization")
    codes = reply.json
    assert reply.headers["cache-control"] == "no-store"
    assert (codes["interval"], codes["expires_in"]) == (5, 600)
    assert codes["verification_uri"] == f"{PUBLIC_URL}/device"
    fields = {"grant_type": DEVICE_GRANT, "device_code": codes["device_code"]}
    waiting = await browser.form("/oauth/token", **fields)
    assert (waiting.status, waiting.json["error"]) == (400, "authorization_pending")
    hurried = await browser.form("/oauth/token", **fields)
    assert (hurried.status, hurried.json["error"]) == (429, "slow_down")
    page = await browser.ask("GET", f"/device?user_code={codes['user_code']}")
    assert codes["user_code"] in page.body.decode()
    assert "<script" not in page.body.decode()
    sent = await browser.ask(
        "POST",
        "/device",
        urlencode({"user_code": codes["user_code"]}).encode(),
        origin="https://gateway.example",
    )
    cookie = sent.headers["set-cookie"]
    for part in ("HttpOnly", "Secure", "SameSite=lax", "Path=/api/oauth/callback"):
        assert part in cookie
    done = await browser.ask("GET", browser.back(sent))
    assert (done.status, "Ana" in done.body.decode()) == (200, True)
    reply = await browser.form("/oauth/token", **fields)
    assert reply.headers["cache-control"] == "no-store"
    tokens = reply.json
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3_600)
    shown = await browser.ask("GET", "/v1/session", **bearer(tokens["access_token"]))
    assert shown.json["data"] == {
        "workspace_id": "acme",
        "member_id": "ana@acme.example",
        "team_id": "search",
        "role": "developer",
    }
    again = await browser.form("/oauth/token", **fields)
    assert (again.status, again.json["error"]) == (400, "expired_token")


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://gateway.example"])
async def test_a_form_of_another_page_is_refused(origin: str | None) -> None:
    browser = Browser(house())
    codes = (await browser.form("/oauth/device_authorization")).json
    headers = {} if origin is None else {"origin": origin}
    body = urlencode({"user_code": codes["user_code"]}).encode()
    reply = await browser.ask("POST", "/device", body, **headers)
    assert reply.status == 403
    assert "location" not in reply.headers


async def test_codes_cannot_be_tried_out() -> None:
    browser = Browser(house())
    statuses = []
    for _ in range(12):
        reply = await browser.ask(
            "POST", "/device", b"user_code=BCDF-GHJK", origin="https://gateway.example"
        )
        statuses.append(reply.status)
    assert statuses == [400] * 10 + [429] * 2
    # The same code is counted from all addresses together.
    for number, status in ((8, 429), (9, 429)):
        reply = await browser.ask(
            "POST",
            "/device",
            b"user_code=bcdf-ghjk",
            origin="https://gateway.example",
            address=f"192.0.2.{number}",
        )
        assert reply.status == status
    begun = [(await browser.form("/oauth/device_authorization")).status for _ in range(31)]
    assert begun == [200] * 30 + [429]
    other = await browser.ask("POST", "/oauth/device_authorization", address="192.0.2.8")
    assert other.status == 200


async def test_strangers_behind_the_same_unknown_proxy_stop_nobodys_sign_in() -> None:
    browser = Browser(house(), knows_callers=False)
    forwarded = {"origin": "https://gateway.example", "x_forwarded_for": "198.51.100.1"}
    codes = (await browser.ask("POST", "/oauth/device_authorization", **forwarded)).json
    letters = "BCDFGHJKLMNPQRSTVWXZ"
    for letter in letters:
        typed = f"user_code=BCDF-GHJ{letter}".encode()
        assert (await browser.ask("POST", "/device", typed, **forwarded)).status == 400
        reply = await browser.ask("POST", "/oauth/device_authorization", **forwarded)
        assert reply.status == 200
    typed = urlencode({"user_code": codes["user_code"]}).encode()
    assert (await browser.ask("POST", "/device", typed, **forwarded)).status == 303
    # A caller that comes directly is counted by its address.
    direct = {"origin": "https://gateway.example", "address": "192.0.2.9"}
    statuses = [
        (await browser.ask("POST", "/device", f"user_code=BCDF-GHJ{it}".encode(), **direct)).status
        for it in letters[:11]
    ]
    assert statuses == [400] * 10 + [429]


@pytest.mark.parametrize(
    "path",
    ["/device", "/oauth/device_authorization", "/oauth/revoke", "/oauth/token", "/v1/session"],
)
async def test_a_stranger_does_not_hold_a_connection_by_a_body_that_never_ends(path: str) -> None:
    browser = Browser(house(), body_s=0.05)
    app = browser.app

    async def trickling(scope: Scope, _: Receive, send: Send) -> None:
        pieces = [{"type": "http.request", "body": b"a", "more_body": True}]

        async def receive() -> Message:
            if not pieces:
                await asyncio.Event().wait()
            return pieces.pop()

        await app(scope, receive, send)

    browser.app = trickling
    async with asyncio.timeout(PATIENCE_S):
        reply = await browser.ask("POST", path)
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")
    assert "within 0.05 s" in reply.error["message"]


async def test_what_a_page_shows_of_a_link_is_text() -> None:
    hostile = urlencode({"user_code": '"><script>alert(1)</script>'})
    reply = await Browser(house()).ask("GET", f"/device?{hostile}")
    assert "<script" not in reply.body.decode()
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


async def test_the_console_signs_in_by_a_code_and_its_verifier() -> None:
    browser = Browser(house())
    query = {
        "response_type": "code",
        "redirect_uri": f"{PUBLIC_URL}/console/",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "state": "of the page",
    }
    reply = await browser.ask("GET", f"/oauth/authorize?{urlencode(query)}")
    back = await browser.ask("GET", browser.back(reply))
    assert back.status == 303
    returned = urlsplit(back.headers["location"])
    found = {name: values[0] for name, values in parse_qs(returned.query).items()}
    assert found["state"] == "of the page"
    # The session is in no address.
    assert set(found) == {"code", "state"}
    tokens = await browser.form(
        "/oauth/token",
        grant_type="authorization_code",
        code=found["code"],
        code_verifier=VERIFIER,
        redirect_uri=f"{PUBLIC_URL}/console/",
    )
    assert tokens.status == 200
    shown = await browser.ask("GET", "/v1/session", **bearer(tokens.json["access_token"]))
    assert shown.json["data"]["member_id"] == "ana@acme.example"


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uri": "https://evil.example"},
        {"code_challenge_method": "plain"},
        {"response_type": "token"},
        {"code_challenge": "short"},
        {"state": ""},
    ],
)
async def test_an_address_that_leads_elsewhere_is_a_page_and_no_redirect(
    changes: dict[str, str],
) -> None:
    query = {
        "response_type": "code",
        "redirect_uri": "http://127.0.0.1:49152/",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "state": "s",
    }
    reply = await Browser(house()).ask("GET", f"/oauth/authorize?{urlencode(query | changes)}")
    assert reply.status == 400
    assert "location" not in reply.headers


async def test_a_refused_sign_in_is_told_to_the_page_that_began_it() -> None:
    browser = Browser(house())
    query = {
        "response_type": "code",
        "redirect_uri": "http://127.0.0.1:49152/",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "state": "s",
    }
    reply = await browser.ask("GET", f"/oauth/authorize?{urlencode(query)}")
    state = parse_qs(urlsplit(reply.headers["location"]).query)["state"][0]
    back = await browser.ask("GET", f"/oauth/callback?state={state}&error=access_denied")
    assert back.headers["location"] == "http://127.0.0.1:49152/?error=access_denied&state=s"


async def test_an_identity_token_opens_a_session_that_ends_an_hour_after_it_was_issued() -> None:
    browser = Browser(house())
    upstream, clock = browser.home.upstream, browser.home.clock
    token = upstream.token(exp=int(clock.at_s) + 86_400)
    clock.at_s += 3_000
    reply = await browser.ask("POST", "/v1/session", json.dumps({"token": token}).encode())
    assert (reply.status, reply.json["expires_in"]) == (201, 600)
    assert reply.json["data"]["role"] == "developer"
    shown = await browser.ask("GET", "/v1/session", **bearer(reply.json["key"]))
    assert shown.status == 200
    clock.at_s += 601
    for status in (
        (await browser.ask("GET", "/v1/session", **bearer(reply.json["key"]))).status,
        (await browser.ask("POST", "/v1/session", json.dumps({"token": token}).encode())).status,
    ):
        assert status == 401


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"", 400, None),
        (b"[]", 400, None),
        (b"{}", 400, "token"),
        (b'{"token": 1}', 400, "token"),
        (b'{"token": "x"}', 401, None),
        (b'{"token": "x", "role": "owner"}', 400, "role"),
        (b'{"token": "' + b"x" * 20_000 + b'"}', 400, "token"),
        (b" " * 70_000, 413, None),
    ],
)
async def test_what_is_no_identity_is_refused_with_its_field(
    body: bytes, status: int, param: str | None
) -> None:
    reply = await Browser(house()).ask("POST", "/v1/session", body)
    assert (reply.status, reply.error["param"]) == (status, param)


async def test_signing_out_ends_the_session() -> None:
    browser = Browser(house())
    tokens = await browser.sign_in()
    reply = await browser.ask("DELETE", "/v1/session", **bearer(tokens["access_token"]))
    assert reply.json == {"closed": True}
    gone = await browser.ask("GET", "/v1/session", **bearer(tokens["access_token"]))
    assert gone.status == 401
    assert (await browser.form("/oauth/revoke", token=tokens["refresh_token"])).status == 200
    fields = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    refused = await browser.form("/oauth/token", **fields)
    assert (refused.status, refused.json["error"]) == (401, "invalid_grant")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "unsupported_grant_type"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": DEVICE_GRANT}, "invalid_request"),
        ({"grant_type": "refresh_token"}, "invalid_request"),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, "invalid_grant"),
        ({"grant_type": "authorization_code", "code": "x"}, "invalid_request"),
    ],
)
async def test_a_request_for_tokens_is_refused_in_oauths_words(
    fields: dict[str, str], error: str
) -> None:
    reply = await Browser(house()).form("/oauth/token", **fields)
    assert reply.json["error"] == error
    assert reply.status in (400, 401)


@pytest.mark.parametrize("body", [b"\xff", b"a=1&a=2", b"&".join([b"a=1"] * 30)])
async def test_what_is_no_form_is_refused(body: bytes) -> None:
    assert (await Browser(house()).ask("POST", "/oauth/token", body)).status == 400


async def test_without_an_issuer_the_paths_say_so() -> None:
    browser = Browser(None)
    for method, path in (
        ("GET", "/.well-known/oauth-authorization-server"),
        ("POST", "/oauth/device_authorization"),
        ("POST", "/oauth/token"),
        ("GET", "/device"),
        ("POST", "/v1/session"),
        ("GET", "/readyz"),
    ):
        reply = await browser.ask(method, path, b'{"token": "x"}')
        assert reply.status == 404, path
        assert "not configured" in reply.error["message"]


async def test_every_path_is_served_and_others_are_not() -> None:
    browser = Browser(house())
    for path in LOGIN_PATHS:
        assert (await browser.ask("PUT", path)).status == 405, path
    assert (await browser.ask("GET", "/v1/nothing")).status == 404
    assert (await browser.ask("GET", "/healthz")).body == b"ok"
    assert (await browser.ask("GET", "/readyz")).body == b"ok"
