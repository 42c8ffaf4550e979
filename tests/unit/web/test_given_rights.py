"""Nobody gives a role, or a key, above their own; a workspace keeps an owner.

Keeps C61, C90, C91.
"""

import asyncio
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from tests.gateways import Always
from tests.stores import TESTER
from tests.unit.routing.catalogs import catalog
from tests.unit.web.test_own import Household, household
from tests.unit.web.test_permissions import OPERATORS, Tenants, tenants
from tollgate.core.principal import KeyRole, MemberRole
from tollgate.stores.rules.level_settings import MemberSettings

ROLES = get_args(MemberRole)


async def people(**roles: MemberRole) -> Tenants:
    """Members of acme besides ana, who is a viewer, and a session of each role."""
    them = await tenants()
    for role in ROLES:
        await them.sign_in("acme", role)
    for name, role in roles.items():
        settings = MemberSettings(role=role)
        await them.call.services.members.create("acme", name, settings, by=TESTER)
    return them


async def ask(them: Tenants, caller: str, method: str, path: str, content: object = None) -> Any:
    return await them.call(method, path, key=them.secrets[f"acme {caller}"], content=content)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("caller", ["owner", "admin", "management"])
async def test_c91_only_owners_give_take_and_touch_the_role_of_owners(
    caller: str, role: MemberRole
) -> None:
    them = await people(some=role)
    may = caller == "owner" or role != "owner"
    made = await ask(them, caller, "POST", "/v1/members", {"id": "new", "role": role})
    assert made.status == (201 if may else 403)
    given = await ask(them, caller, "PATCH", "/v1/members/ana", {"role": role})
    assert given.status == (200 if may else 403)
    for content in ({"role": "viewer"}, {"limits": {"day": 5}}, {"email": "a@b.example"}):
        touched = await ask(them, caller, "PATCH", "/v1/members/some", content)
        assert touched.status == (200 if may else 403) or content["role"] == "viewer"
        if not may:
            assert touched.error["code"] == "permission_denied"
            assert "owner" in touched.error["message"]


@pytest.mark.parametrize("caller", ["admin", "management"])
async def test_c91_only_owners_remove_owners(caller: str) -> None:
    them = await people(second="owner")
    refused = await ask(them, caller, "DELETE", "/v1/members/second")
    assert (refused.status, refused.error["code"]) == (403, "permission_denied")
    assert (await ask(them, "owner", "DELETE", "/v1/members/second")).json["removed"] is True
    again = await ask(them, "owner", "DELETE", "/v1/members/second")
    assert again.json == {"id": "second", "removed": False}


async def test_c91_a_workspace_keeps_its_last_owner() -> None:
    them = await people()
    demoted = await ask(them, "owner", "PATCH", "/v1/members/the-owner", {"role": "admin"})
    assert (demoted.status, demoted.error["param"]) == (400, "role")
    removed = await ask(them, "owner", "DELETE", "/v1/members/the-owner")
    assert (removed.status, removed.error["param"]) == (400, "member_id")
    path = "/v1/workspaces/acme/members/the-owner"
    by_operator = await them.ask(f"{OPERATORS} management", "PATCH", path, {"role": "viewer"})
    assert by_operator.status == 400


async def test_c91_others_than_owners_do_not_change_their_own_limits() -> None:
    them = await people(second="owner")
    mine = "/v1/members/the-admin"
    for content in ({"limits": {"day": 9}}, {"role": "developer"}, {"team_id": "search"}):
        refused = await ask(them, "admin", "PATCH", mine, content)
        assert (refused.status, refused.error["param"]) == (403, "member_id")
    named = await ask(them, "admin", "PATCH", mine, {"display_name": "Ada"})
    assert named.json["data"]["display_name"] == "Ada"
    own = await ask(them, "owner", "PATCH", "/v1/members/the-owner", {"limits": {"day": 9}})
    assert own.json["data"]["limits"] == {"day": 9.0}


async def test_c91_the_operator_adds_the_first_owner_of_a_workspace() -> None:
    them = await tenants()
    path = "/v1/workspaces/acme/members"
    first = {"id": "eva@acme.example", "role": "owner"}
    made = await them.ask(f"{OPERATORS} management", "POST", path, first)
    assert (made.status, made.json["data"]["role"]) == (201, "owner")
    listed = await them.ask(f"{OPERATORS} read", "GET", path, None)
    assert [it["id"] for it in listed.json["data"]] == ["ana", "eva@acme.example"]


@pytest.mark.parametrize("role", get_args(KeyRole))
@pytest.mark.parametrize("caller", ROLES)
async def test_c91_a_key_has_no_role_above_its_makers(caller: str, role: KeyRole) -> None:
    them = await people()
    reply = await ask(them, caller, "POST", "/v1/keys", {"name": "new", "role": role})
    may = caller in ("owner", "admin") or (caller, role) == ("developer", "inference")
    assert reply.status == (201 if may else 403)
    if caller == "developer" and may:
        assert reply.json["data"]["member_id"] == "the-developer"


@pytest.mark.parametrize(
    ("content", "param"),
    [
        ({"member_id": "eve"}, "member_id"),
        ({"team_id": "search"}, "team_id"),
        ({"tier": "gold"}, "tier"),
        ({"role": "read"}, "role"),
        ({"labels": {"team": "search"}}, "labels.team"),
        ({"labels": {"member": "eve"}}, "labels.member"),
    ],
)
async def test_c91_a_developer_makes_keys_of_their_own_and_nothing_more(
    content: dict[str, object], param: str
) -> None:
    home = await household()
    if "tier" in content:
        tiers = catalog(key_tiers={"gold": {}})
        home.them.call.changes["catalogs"] = Always(tiers)
    refused = await home.ask("bob", "POST", "/v1/keys", {"name": "new", **content})
    assert (refused.status, refused.error["param"]) == (403, param)
    labels = {"team": "bobs", "member": "bob", "environment": "laptop"}
    new = {"name": "new", "team_id": "bobs", "labels": labels}
    made = await home.ask("bob", "POST", "/v1/keys", new)
    assert made.status == 201
    data = made.json["data"]
    assert (data["role"], data["member_id"], data["team_id"]) == ("inference", "bob", "bobs")


@pytest.mark.parametrize(
    "content",
    [
        {"limits": {"day": 500}},
        {"requests_per_minute": 900},
        {"models": None},
        {"team_id": "search"},
        {"member_id": "eve"},
        {"member_id": None},
        {"labels": {"team": "search"}},
    ],
)
async def test_c91_a_developer_renames_and_disables_own_keys_and_changes_no_limit(
    content: dict[str, object],
) -> None:
    home = await household()
    path = f"/v1/keys/{home.keys['bob']}"
    limited = {"limits": {"day": 5}, "models": ["acme/*"], "name": "given"}
    assert (await home.ask("acme management", "PATCH", path, limited)).status == 200
    refused = await home.ask("bob", "PATCH", path, content)
    assert (refused.status, refused.error["code"]) == (403, "permission_denied")
    renamed = await home.ask("bob", "PATCH", path, {"name": "mine"})
    assert renamed.json["data"]["name"] == "mine"
    assert (await home.ask("bob", "PATCH", path, {"disabled": True})).status == 200
    enabled = await home.ask("bob", "PATCH", path, {"disabled": False})
    assert (enabled.status, enabled.error["code"]) == (403, "permission_denied")
    assert (await home.ask("acme management", "PATCH", path, {"disabled": False})).status == 200


async def session_key(home: Household) -> str:
    listed = (await home.ask("acme management", "GET", "/v1/keys?member=bob")).json["data"]
    [found] = [it["id"] for it in listed if it["name"] == "session:bob"]
    return str(found)


@pytest.mark.parametrize("caller", ["bob", "acme management"])
async def test_c91_the_key_of_sessions_is_not_managed_as_a_key(caller: str) -> None:
    home = await household()
    path = f"/v1/keys/{await session_key(home)}"
    rotated = await home.ask(caller, "POST", f"{path}/rotate", {})
    assert (rotated.status, rotated.error["param"]) == (400, "key_id")
    deleted = await home.ask(caller, "DELETE", path)
    assert (deleted.status, deleted.error["param"]) == (400, "key_id")
    for content in (
        {"disabled": True},
        {"limits": {"day": 1}},
        {"name": "mine"},
        {"requests_per_minute": 1},
        {"member_id": None},
        {"team_id": "search"},
    ):
        changed = await home.ask(caller, "PATCH", path, content)
        assert (changed.status, changed.error["param"]) == (400, "key_id")
    for named in (
        await home.ask(caller, "POST", "/v1/keys", {"name": "session:eve"}),
        await home.ask(caller, "PATCH", f"/v1/keys/{home.keys['bob']}", {"name": "session:x"}),
    ):
        assert (named.status, named.error["param"]) == (400, "name")
    assert (await home.ask("bob", "GET", "/v1/key")).status == 200


async def test_c91_a_session_key_that_was_once_disabled_and_limited_is_only_freed() -> None:
    home = await household()
    key_id = await session_key(home)
    key = home.them.home.stores.books.keys[key_id]
    key.change(replace(key.settings, disabled=True, limits_nano_usd={"day": 5, "month": 9}))
    path = f"/v1/keys/{key_id}"
    lower = {"disabled": False, "limits": {"day": 0.000000001}}
    assert (await home.ask("acme management", "PATCH", path, lower)).status == 400
    freed = {"disabled": False, "limits": {"day": None}}
    assert (await home.ask("acme management", "PATCH", path, freed)).status == 200
    assert (await home.ask("bob", "GET", "/v1/key")).status == 200


@pytest.mark.parametrize("caller", ["admin", "management"])
async def test_c91_only_an_owner_ends_the_sessions_of_an_owner(caller: str) -> None:
    them = await people()
    sessions = "/v1/members/the-owner/sessions"
    [session] = (await ask(them, caller, "GET", sessions)).json["data"]
    listed = (await ask(them, caller, "GET", "/v1/keys")).json["data"]
    [key] = [it["id"] for it in listed if it["name"] == "session:the-owner"]
    for method, path, content in (
        ("PATCH", f"/v1/keys/{key}", {"disabled": True}),
        ("DELETE", f"/v1/keys/{key}", None),
        ("DELETE", sessions, None),
        ("DELETE", f"{sessions}/{session['id']}", None),
    ):
        assert (await ask(them, caller, method, path, content)).status in (400, 403)
    assert (await ask(them, "owner", "GET", "/v1/key")).status == 200
    # A key of the owner's does not act as the owner.
    new = {"name": "new", "member_id": "the-owner", "role": "management"}
    made = await ask(them, caller, "POST", "/v1/keys", new)
    them.secrets["acme owner's key"] = made.json["key"]
    assert (await ask(them, "owner's key", "DELETE", sessions)).status == 403
    ended = await ask(them, "owner", "DELETE", f"{sessions}/{session['id']}")
    assert ended.json == {"id": session["id"], "ended": True}
    assert (await ask(them, "owner", "GET", "/v1/key")).status == 401


@pytest.mark.parametrize("caller", ["owner", "admin", "management"])
async def test_c91_sessions_are_listed_and_ended_one_by_one_or_all_of_a_person(caller: str) -> None:
    them = await people()
    sessions = "/v1/members/the-developer/sessions"
    await asyncio.sleep(1)
    await them.sign_in("acme", "developer")
    first, second = (await ask(them, caller, "GET", sessions)).json["data"]
    assert (first["member_id"], first["renewable"]) == ("the-developer", False)
    page = await ask(them, caller, "GET", f"{sessions}?limit=1&cursor={first['id']}")
    assert [it["id"] for it in page.json["data"]] == [second["id"]]

    ended = await ask(them, caller, "DELETE", f"{sessions}/{first['id']}")
    assert ended.status == 200
    again = await ask(them, caller, "DELETE", f"{sessions}/{first['id']}")
    assert (again.status, again.error["param"]) == (404, "session_id")
    assert (await ask(them, "developer", "GET", "/v1/key")).status == 200
    assert (await ask(them, caller, "DELETE", sessions)).status == 200
    assert (await ask(them, "developer", "GET", "/v1/key")).status == 401
    assert (await ask(them, caller, "GET", sessions)).json["data"] == []


@pytest.mark.parametrize("role", ["developer", "billing", "viewer"])
async def test_c91_everybody_ends_their_own_sessions_and_no_other(role: str) -> None:
    them = await people()
    for path in ("/v1/members/the-owner/sessions", "/v1/members/the-owner/sessions/x"):
        refused = await ask(them, role, "DELETE", path)
        assert (refused.status, refused.error["param"]) == (404, "member_id")
    listed = await ask(them, role, "GET", "/v1/members/the-admin/sessions")
    assert listed.status == (200 if role == "viewer" else 404)
    own = f"/v1/members/the-{role}/sessions"
    assert len((await ask(them, role, "GET", own)).json["data"]) == 1
    assert (await ask(them, role, "DELETE", own)).status == 200
    assert (await ask(them, role, "GET", own)).status == 401


async def test_c60_a_disabled_member_is_refused_with_every_key_and_session_until_enabled() -> None:
    home = await household()
    path = "/v1/members/bob"
    for disabled, status in ((True, 401), (False, 200)):
        changed = await home.ask("acme management", "PATCH", path, {"disabled": disabled})
        assert changed.json["data"]["disabled"] is disabled
        for caller in ("bob", "bob's key"):
            assert (await home.ask(caller, "GET", "/v1/key")).status == status


@pytest.mark.parametrize("caller", ["admin", "management"])
async def test_c91_only_owners_disable_owners_and_one_stays(caller: str) -> None:
    them = await people(second="owner")
    off = {"disabled": True}
    assert (await ask(them, caller, "PATCH", "/v1/members/second", off)).status == 403
    own = await ask(them, "admin", "PATCH", "/v1/members/the-admin", off)
    assert (own.status, own.error["param"]) == (403, "member_id")
    assert (await ask(them, "owner", "PATCH", "/v1/members/second", off)).status == 200
    for content, param in ((off, "disabled"), ({"role": "admin"}, "role")):
        last = await ask(them, "owner", "PATCH", "/v1/members/the-owner", content)
        assert (last.status, last.error["param"]) == (400, param)
    last = await ask(them, "owner", "DELETE", "/v1/members/the-owner")
    assert (last.status, last.error["param"]) == (400, "member_id")


async def test_c60_a_removed_member_is_refused_with_every_key_and_session() -> None:
    home = await household()
    for caller in ("bob", "bob's key"):
        assert (await home.ask(caller, "GET", "/v1/key")).status == 200
    assert (await home.ask("acme management", "DELETE", "/v1/members/bob")).status == 200
    for caller in ("bob", "bob's key"):
        refused = await home.ask(caller, "GET", "/v1/key")
        assert (refused.status, refused.error["code"]) == (401, "invalid_api_key")
