"""The routes of legal holds and erasures, and what a hold refuses.

Keeps C99.
"""

from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from tests.stores import TESTER
from tests.unit.web.routes import HOLD_ID
from tests.unit.web.stored_content import kept_hold
from tests.unit.web.test_permissions import OPERATORS, Tenants, tenants
from tollgate.core.records.subjects import PrivacySubject

EVE = {"kind": "user", "id": "eve"}
OF_ACME = "/v1/workspaces/acme"


async def ask(them: Tenants, method: str, path: str, content: Any = None, who: str = "acme") -> Any:
    return await them.ask(f"{who} management", method, path, content)


async def test_c99_a_hold_refuses_an_erasure_until_it_is_released() -> None:
    them = await tenants()
    [shown] = (await ask(them, "GET", "/v1/holds")).json["data"]
    assert (shown["id"], shown["subject"], shown["preserved_at"]) == (HOLD_ID, "eve", None)
    again = await ask(them, "POST", "/v1/holds", {**EVE, "reason": "other"})
    assert (again.status, again.error["param"]) == (400, "id")
    refused = await ask(them, "POST", "/v1/erasures", EVE)
    assert (refused.status, refused.error["code"]) == (403, "permission_denied")
    assert (await ask(them, "DELETE", f"/v1/holds/{HOLD_ID}", who="other")).status == 404

    assert (await ask(them, "DELETE", f"/v1/holds/{HOLD_ID}")).status == 200
    requested = (await ask(them, "POST", "/v1/erasures", EVE)).json["data"]
    assert (requested["subject"], requested["finished_at"]) == ("eve", None)
    assert (await ask(them, "GET", "/v1/erasures")).json["data"] == [requested]
    assert (await ask(them, "GET", "/v1/erasures", who="other")).json["data"] == []
    found = them.home.stores.books.entries_of_audit[-2:]
    assert [it.action for it in found] == ["hold.release", "erasure.request"]
    assert {it.target for it in found} == {sha256(b"eve").hexdigest()}


async def test_c99_a_tenant_cannot_release_the_operators_hold() -> None:
    them = await tenants()
    placed = await ask(
        them,
        "POST",
        f"{OF_ACME}/holds",
        {"kind": "workspace", "id": "acme", "reason": "court order"},
        OPERATORS,
    )
    hold = placed.json["data"]
    assert hold["by_operator"]
    refused = await ask(them, "DELETE", f"/v1/holds/{hold['id']}")
    assert (refused.status, refused.error["code"]) == (403, "permission_denied")
    released = await ask(them, "DELETE", f"{OF_ACME}/holds/{hold['id']}", None, OPERATORS)
    assert released.json == {"id": hold["id"], "released": True}


@pytest.mark.parametrize(
    ("path", "content", "who", "status", "param"),
    [
        ("/v1/erasures", {"kind": "team", "id": "x"}, "acme", 400, "kind"),
        ("/v1/erasures", {"kind": "user", "id": ""}, "acme", 400, "id"),
        ("/v1/erasures", {"kind": "member", "id": "ana"}, "acme", 400, "id"),
        ("/v1/erasures", {"kind": "member", "id": "nobody"}, "acme", 400, "id"),
        ("/v1/erasures", {"kind": "workspace", "id": "acme"}, "acme", 403, "kind"),
        (f"{OF_ACME}/erasures", {"kind": "workspace", "id": "acme"}, OPERATORS, 400, "id"),
        (f"{OF_ACME}/erasures", {"kind": "workspace", "id": "other"}, OPERATORS, 400, "id"),
        ("/v1/holds", {**EVE, "reason": ""}, "acme", 400, "reason"),
        ("/v1/holds", {"kind": "workspace", "id": "other", "reason": "x"}, "acme", 400, "id"),
        ("/v1/workspaces/none/holds", {**EVE, "reason": "x"}, OPERATORS, 404, "workspace_id"),
    ],
)
async def test_c99_a_bad_subject_is_refused(
    path: str, content: Any, who: str, status: int, param: str
) -> None:
    them = await tenants()
    await them.home.stores.subjects.release(kept_hold(), by=TESTER)
    reply = await ask(them, "POST", path, content, who)
    assert (reply.status, reply.error["param"]) == (status, param), reply.body


@pytest.mark.parametrize("held", [True, False])
async def test_c99_a_response_on_hold_is_not_deleted(held: bool) -> None:
    them = await tenants()
    if held:
        acme = PrivacySubject(workspace_id="acme", kind="workspace", id="acme")
        await them.home.stores.subjects.hold(replace(kept_hold(), subject=acme), by=TESTER)
    reply = await ask(them, "DELETE", "/v1/responses/resp_x")
    assert reply.status == (403 if held else 200), reply.body
