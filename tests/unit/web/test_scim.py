"""SCIM 2.0 as Okta and Entra send it: a leaver is disabled, never deleted.

The requests are those of the vendors' own pages (read 2026-11-27): "Okta and SCIM Version 2.0" in
github.com/okta/okta-developer-docs, reference/scim/scim-20; "Develop a SCIM endpoint" and "Known
issues … with SCIM 2.0 protocol compliance" in github.com/MicrosoftDocs/entra-docs, docs/identity/
app-provisioning, with and without the flag `aadOptscim062020`. Only ENTRA_OLDEST is quoted from
others.

Keeps C60, C90, C91.
"""

import json
from typing import Any

import pytest

from tests.asgi import request
from tests.unit.web.test_own import Household, household
from tollgate.stores.rules.webhook_events import event_type

PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
USERS = "/v1/scim/v2/Users"
OKTA: dict[str, Any] = {
    "schemas": [PATCH_OP],
    "Operations": [{"op": "replace", "value": {"active": False}}],
}
ENTRA: dict[str, Any] = {
    "schemas": [PATCH_OP],
    "Operations": [{"op": "Replace", "path": "active", "value": False}],
}
ENTRA_BEFORE: dict[str, Any] = {
    "schemas": [PATCH_OP],
    "Operations": [
        {"op": "Replace", "path": "displayName", "value": "Bob B."},
        {"op": "Replace", "path": "active", "value": "False"},
    ],
}
ENTRA_WITH_FLAG: dict[str, Any] = {
    "schemas": [PATCH_OP],
    "Operations": [{"op": "replace", "path": "active", "value": False}],
}
# What Entra sends for a changed profile, with and without the flag.
ENTRA_PROFILE: dict[str, Any] = {
    "schemas": [PATCH_OP],
    "Operations": [
        {"op": "replace", "path": 'emails[type eq "work"].value', "value": "new@acme.example"},
        {
            "op": "replace",
            "value": {
                "displayName": "Bjfe",
                "name.givenName": "Kkom",
                "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:employeeNumber": "1",
            },
        },
    ],
}
ENTRA_PROFILE_BEFORE: dict[str, Any] = {
    "schemas": [PATCH_OP],
    "Operations": [
        {"op": "Replace", "path": "userName", "value": "new@acme.example"},
        {"op": "Replace", "path": "name.familyName", "value": "Pkqf"},
        {"op": "Replace", "path": "externalId", "value": "Eqpj"},
        {"op": "Add", "path": "nickName", "value": "Babs"},
    ],
}
ENTRA_NEW: dict[str, Any] = {
    "schemas": [
        "urn:ietf:params:scim:schemas:core:2.0:User",
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
    ],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "dee@acme.example",
    "active": True,
    "emails": [{"primary": True, "type": "work", "value": "dee@acme.example"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "Dee E.", "familyName": "E.", "givenName": "Dee"},
    "roles": [],
}
OKTA_NEW: dict[str, Any] = {
    "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
    "userName": "cy@acme.example",
    "name": {"givenName": "Cy", "familyName": "D."},
    "emails": [{"primary": True, "value": "cy@acme.example", "type": "work"}],
    "displayName": "Cy",
    "locale": "en-US",
    "externalId": "00ujl29u0le5T6Aj10h7",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}
ENTRA_OLDEST: dict[str, Any] = {
    "schemas": [PATCH_OP],
    "Operations": [
        {"op": "Replace", "path": "active", "value": [{"$ref": None, "value": "False"}]}
    ],
}
OKTA_PUT: dict[str, Any] = {
    "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
    "id": "bob",
    "userName": "bob",
    "name": {"givenName": "Bob", "middleName": "", "familyName": "B"},
    "emails": [{"primary": True, "value": "bob@acme.example", "type": "work"}],
    "active": False,
    "groups": [],
    "meta": {"resourceType": "User"},
}


async def provision(home: Household, method: str, path: str, content: object = None) -> Any:
    """A call of the identity provider, which has a management key."""
    return await home.ask("acme management", method, f"{USERS}{path}", content)


@pytest.mark.parametrize(
    ("method", "content"),
    [
        ("PATCH", OKTA),
        ("PATCH", ENTRA),
        ("PATCH", ENTRA_WITH_FLAG),
        ("PATCH", ENTRA_BEFORE),
        ("PATCH", ENTRA_OLDEST),
        ("PUT", OKTA_PUT),
        ("DELETE", None),
    ],
)
async def test_c60_a_leaver_is_disabled_with_keys_and_sessions_and_comes_back(
    method: str, content: object
) -> None:
    home = await household()
    left = await provision(home, method, "/bob", content)
    assert left.status == (204 if method == "DELETE" else 200), left.body
    for caller in ("bob", "bob's key"):
        assert (await home.ask(caller, "GET", "/v1/key")).status == 401
    entries = home.them.home.stores.books.entries_of_audit
    [entry] = [entry for entry in entries if entry.action == "member.change"]
    assert (entry.target, entry.after) == ("bob", {"disabled": "true"})
    assert event_type(entry) == "member.disabled"
    member = await home.ask("acme management", "GET", "/v1/members/bob")
    assert (member.json["data"]["disabled"], member.json["data"]["removed_at"]) == (True, None)

    back = {"schemas": [PATCH_OP], "Operations": [{"op": "replace", "value": {"active": True}}]}
    assert (await provision(home, "PATCH", "/bob", back)).json["active"] is True
    assert (await home.ask("bob's key", "GET", "/v1/key")).status == 200


async def test_a_provider_finds_a_member_by_user_name_before_and_after_the_leave() -> None:
    home = await household()
    find = "?filter=userName%20eq%20%22Bob%22&startIndex=1&count=100"
    for active in (True, False):
        found = await provision(home, "GET", find)
        assert found.headers["content-type"] == "application/scim+json"
        [user] = found.json["Resources"]
        assert (found.json["totalResults"], user["id"], user["active"]) == (1, "bob", active)
        assert (await provision(home, "GET", "/bob")).json == user
        await provision(home, "PATCH", "/bob", ENTRA)
    nobody = await provision(home, "GET", "?filter=userName+eq+%22non-existent%22")
    assert (nobody.status, nobody.json["totalResults"], nobody.json["Resources"]) == (200, 0, [])
    page = await provision(home, "GET", "?startIndex=2&count=1")
    assert [it["id"] for it in page.json["Resources"]] == ["bob"]
    assert page.json["totalResults"] == 3


async def test_the_media_type_of_scim_is_read() -> None:
    home = await household()
    headers = {
        "authorization": f"Bearer {home.them.secrets['acme management']}",
        "content-type": "application/scim+json; charset=utf-8",
    }
    body = json.dumps(ENTRA).encode()
    reply = await request(home.them.call.app, "PATCH", f"{USERS}/bob", headers=headers, body=body)
    assert (reply.status, reply.json["active"]) == (200, False)


async def test_a_new_user_is_a_viewer_until_the_first_sign_in() -> None:
    home = await household()
    made = await provision(home, "POST", "", OKTA_NEW)
    assert (made.status, made.json["id"]) == (201, "cy@acme.example")
    member = (await home.ask("acme management", "GET", "/v1/members/cy@acme.example")).json["data"]
    assert (member["role"], member["display_name"]) == ("viewer", "Cy")
    assert (await provision(home, "POST", "", OKTA_NEW)).status == 409
    assert "1mz050nq" not in str(made.json)


async def test_entra_finds_a_new_user_by_name_and_by_address() -> None:
    home = await household()
    made = await provision(home, "POST", "", ENTRA_NEW)
    assert (made.status, made.json["userName"], made.json["active"]) == (
        201,
        "dee@acme.example",
        True,
    )
    for filter_ in ("userName%20eq%20", "emails%5Btype%20eq%20%22work%22%5D.value%20eq%20"):
        found = await provision(home, "GET", f"?filter={filter_}%22dee%40acme.example%22")
        assert [it["id"] for it in found.json["Resources"]] == [made.json["id"]], filter_


@pytest.mark.parametrize(
    ("method", "content"),
    [
        ("PATCH", ENTRA_PROFILE),
        ("PATCH", ENTRA_PROFILE_BEFORE),
        ("PUT", {key: value for key, value in OKTA_PUT.items() if key != "active"}),
    ],
)
async def test_c60_a_changed_profile_enables_no_leaver(method: str, content: object) -> None:
    home = await household()
    await provision(home, "PATCH", "/bob", OKTA)
    changed = await provision(home, method, "/bob", content)
    assert (changed.status, changed.json["active"]) == (200, False)
    assert (await home.ask("bob", "GET", "/v1/key")).status == 401


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("GET", "/nobody", None, 404),
        ("PATCH", "/nobody", OKTA, 404),
        ("DELETE", "/nobody", None, 404),
        ("GET", "?filter=title+pr", None, 400),
        ("PATCH", "/bob", {**OKTA, "schemas": ["urn:x"]}, 400),
        (
            "PATCH",
            "/bob",
            {**OKTA, "Operations": [{"op": "replace", "path": "active", "value": "no"}]},
            400,
        ),
    ],
)
async def test_a_refusal_has_the_form_of_scim(
    method: str, path: str, content: object, status: int
) -> None:
    home = await household()
    refused = await provision(home, method, path, content)
    assert refused.status == status
    assert refused.headers["content-type"] == "application/scim+json"
    assert refused.json["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert (refused.json["status"], bool(refused.json["detail"])) == (str(status), True)
    assert (await home.ask("bob", "GET", "/v1/key")).status == 200


async def test_c91_a_provider_does_not_disable_an_owner() -> None:
    home = await household()
    await home.them.sign_in("acme", "owner")
    for method, content in (("PATCH", ENTRA), ("PUT", OKTA_PUT), ("DELETE", None)):
        refused = await provision(home, method, "/the-owner", content)
        assert (refused.status, "owner" in refused.json["detail"]) == (403, True)
