"""Which reads and refusals the routes record, and which they do not.

Keeps C98.
"""

from collections.abc import Sequence

import pytest

from tests.asgi import request
from tests.gateways import house as gateway_house
from tests.stores import TESTER
from tests.unit.sign_in.signing_in import house
from tests.unit.web.browsing import DEVICE_GRANT, Browser
from tests.unit.web.routes import GENERATION_ID, RESPONSE_ID
from tests.unit.web.test_chat_app import app_of
from tests.unit.web.test_permissions import Tenants, tenants
from tollgate.core.records.audit import AuditEntry
from tollgate.stores.ports.administration import NewKey

READS = [
    (f"/v1/generation/content?id={GENERATION_ID}", "content.read"),
    (f"/v1/responses/{RESPONSE_ID}", "response.read"),
    (f"/v1/responses/{RESPONSE_ID}/input_items", "response.read"),
]


def accesses(them: Tenants) -> Sequence[AuditEntry]:
    return [it for it in them.home.stores.books.entries_of_audit if it.kind == "access"]


@pytest.mark.parametrize(("path", "action"), READS)
async def test_c98_a_manager_who_reads_content_is_recorded_with_its_address(
    path: str, action: str
) -> None:
    them = await tenants()
    for caller in ("acme management", await them.sign_in("acme", "owner")):
        reply = await them.ask(caller, "GET", path, None)
        assert reply.status == 200, reply.body
    by_key, by_session = accesses(them)
    assert {by_key.action, by_session.action} == {action}
    assert by_key.target.endswith(them.home.record.id)
    assert (by_key.workspace_id, by_key.actor.name) == ("acme", "admin")
    assert by_session.actor.member_id == "the-owner"
    assert (by_key.actor.origin, by_key.before, by_key.after) == ("127.0.0.1", {}, {})


async def test_c98_a_program_that_reads_its_own_response_is_not_recorded() -> None:
    them = await tenants()
    reply = await them.ask("acme inference", "GET", f"/v1/responses/{RESPONSE_ID}", None)
    assert reply.status == 200
    assert accesses(them) == []


@pytest.mark.parametrize(("path", "action"), READS)
async def test_c98_content_that_another_workspace_does_not_get_is_not_recorded(
    path: str, action: str
) -> None:
    them = await tenants()
    assert (await them.ask("other management", "GET", path, None)).status == 404
    assert accesses(them) == []


async def test_c98_refused_calls_name_their_key_route_and_code() -> None:
    them = await tenants()
    assert (await them.ask("acme read", "POST", "/v1/keys", {"name": "x"})).status == 403
    assert (await them.ask("acme management", "GET", "/v1/workspaces", None)).status == 403
    first, second = accesses(them)
    assert (first.action, first.target) == ("call.refused", "POST /v1/keys")
    assert (second.target, second.after) == ("GET /v1/workspaces", {"code": "permission_denied"})
    assert second.actor.name == "admin"


async def test_c98_a_refused_generation_is_recorded_too() -> None:
    home = await gateway_house()
    management = NewKey(workspace_id="acme", label="admin", role="management")
    secret = (await home.stores.keys.create(management, by=TESTER)).secret
    for key, status in (("sk-tg-nobody", 401), ("sk-tg-nobody", 401), (secret, 403)):
        headers = {"authorization": f"Bearer {key}"}
        reply = await request(
            app_of(home), "POST", "/v1/chat/completions", headers=headers, body=b"{"
        )
        assert reply.status == status
    first, second = [it for it in home.stores.books.entries_of_audit if it.kind == "access"]
    assert (first.actor.id, first.workspace_id) == ("unauthenticated", None)
    assert (second.actor.name, second.workspace_id) == ("admin", "acme")
    assert {first.target, second.target} == {"POST /v1/chat/completions"}


async def test_c98_calls_without_a_valid_key_are_the_operators_to_see() -> None:
    them = await tenants()
    for key in ("sk-tg-nobody", "sk-tg-nothing", "x"):
        assert (await them.call("GET", "/v1/keys", key=key)).status == 401
    [entry] = accesses(them)
    assert (entry.actor.id, entry.actor.origin) == ("unauthenticated", "127.0.0.1")
    assert (entry.workspace_id, entry.after) == (None, {"code": "invalid_api_key"})
    shown = await them.ask("platform read", "GET", "/v1/audit?kind=access", None)
    assert [it["action"] for it in shown.json["data"]] == ["call.refused"]
    theirs = await them.ask("acme read", "GET", "/v1/audit?kind=access", None)
    assert theirs.json["data"] == []


async def test_c98_a_failed_sign_in_is_recorded_and_a_waiting_device_is_not() -> None:
    browser = Browser(house())
    books = browser.home.books
    codes = (await browser.form("/oauth/device_authorization")).json
    fields = {"grant_type": DEVICE_GRANT, "device_code": codes["device_code"]}
    waiting = await browser.form("/oauth/token", **fields)
    assert waiting.json["error"] == "authorization_pending"
    assert [it for it in books.entries_of_audit if it.kind == "access"] == []

    for device_code in ("guessed", "guessed again"):
        await browser.form("/oauth/token", grant_type=DEVICE_GRANT, device_code=device_code)
    await browser.ask("GET", "/oauth/callback?state=x&error=denied", address="192.0.2.8")
    token = b'{"token": "no.identity.token"}'
    refused = await browser.ask("POST", "/v1/session", token, address="192.0.2.9")
    assert refused.status == 401
    found = [it for it in books.entries_of_audit if it.kind == "access"]
    assert [(it.action, it.target, it.after["code"], it.actor.origin) for it in found] == [
        ("sign_in.refused", "POST /oauth/token", "expired_token", "192.0.2.7"),
        ("sign_in.refused", "GET /oauth/callback", "permission_denied", "192.0.2.8"),
        ("sign_in.refused", "POST /v1/session", "invalid_api_key", "192.0.2.9"),
    ]
