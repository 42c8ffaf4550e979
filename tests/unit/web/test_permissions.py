"""Each route by each role: a key reaches its own workspace, and only the operator's reaches others.

Keeps C2, C41, C60, C64, C66, C67.
"""

import json
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from tests.asgi import Exchange
from tests.cells import cells
from tests.gateways import House
from tests.memory.people import MemorySessionStore
from tests.memory.workspaces import MemoryWorkspaceStore
from tests.stores import PREFIX, TESTER
from tests.unit.routing.catalogs import catalog, endpoint, model
from tests.unit.web.routes import (
    EVERY_KEYS_ROUTES,
    GENERATION_ID,
    KEY_ID,
    MEMBER_ID,
    OPERATOR_LISTS,
    OPERATOR_ROUTES,
    RESPONSE_ID,
    RESPONSE_ROUTES,
    SESSION_ID,
    TEAM_ID,
    WORKSPACE,
    WORKSPACE_LISTS,
    WORKSPACE_ROUTES,
)
from tests.unit.web.stored_content import KeptContents, KeptResponse, kept_hold, kept_session
from tests.unit.web.test_api_app import Api, api
from tollgate.core.principal import KeyRole, MemberRole
from tollgate.routing.planning.catalog import Catalog
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

OPERATORS = "platform"


class Tenants:
    """Three workspaces of one gateway: `acme` has resources, `other` none, `platform` operates."""

    def __init__(self, call: Api, secrets: dict[str, str]) -> None:
        self.call = call
        self.secrets = secrets

    @property
    def home(self) -> House:
        return self.call.home

    async def sign_in(self, workspace: str, role: MemberRole) -> str:
        """Add a member of a role, `the-<role>`, and open a session: the caller's name."""
        stores, member_id = self.home.stores, f"the-{role}"
        settings = MemberSettings(role=role)
        await self.call.services.members.create(workspace, member_id, settings, by=TESTER)
        sessions = MemorySessionStore(
            stores.books, self.home.gateway.ids, stores.clock, stores.keys, PREFIX
        )
        session = await sessions.open(workspace, member_id, lifetime_s=3_600, by=TESTER)
        assert session is not None
        self.secrets[f"{workspace} {role}"] = session.secret
        return f"{workspace} {role}"

    async def ask(self, caller: str, method: str, path: str, content: object) -> Exchange:
        """Call a route as one of the keys, with the placeholders filled in from `acme`."""
        names = {
            KEY_ID: self.home.principal.key_id,
            WORKSPACE: "acme",
            GENERATION_ID: f"gen-{self.home.record.id}",
            TEAM_ID: "search",
            MEMBER_ID: "ana",
            SESSION_ID: "ses-of-ana",
            RESPONSE_ID: f"resp_{self.home.record.id}",
        }
        body = json.dumps(content)
        for placeholder, name in names.items():
            path, body = path.replace(placeholder, name), body.replace(placeholder, name)
        sent = None if content is None else json.loads(body)
        return await self.call(method, path, key=self.secrets[caller], content=sent)

    async def state(self) -> object:
        """Everything that is stored, apart from when each key was used last, and accesses."""
        books = pickle.loads(pickle.dumps(self.home.stores.books))
        books.entries_of_audit = [it for it in books.entries_of_audit if it.kind == "change"]
        for key in books.keys.values():
            key.used_s.clear()
        workspaces = await self.call.services.workspaces.list()
        return books, workspaces.found


@dataclass(frozen=True)
class Canary:
    """Catalogs of which one key is served by another than the live one."""

    live: Catalog
    key_id: str
    candidate: Catalog

    async def for_key(self, key_id: str | None) -> Catalog:
        return self.candidate if key_id == self.key_id else self.live


async def tenants() -> Tenants:
    call = await api()
    await call.home.serve()
    workspaces = MemoryWorkspaceStore(call.home.stores.books, call.home.stores.clock)
    await workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    call.changes = {
        "operator_workspace": OPERATORS,
        "workspaces": workspaces,
        "contents": KeptContents("acme", call.home.record.id),
        "responses": KeptResponse("acme", call.home.record.id),
    }
    secrets = {"acme management": call.management, "other management": call.stranger}
    roles: list[tuple[str, KeyRole]] = [
        *((workspace, "inference") for workspace in ("acme", "other", OPERATORS)),
        (OPERATORS, "management"),
        ("acme", "read"),
        ("other", "read"),
        (OPERATORS, "read"),
    ]
    for workspace, role in roles:
        new = NewKey(workspace_id=workspace, label=f"{workspace} {role}", role=role)
        secrets[new.label] = (await call.home.stores.keys.create(new, by=TESTER)).secret
    services = call.services
    await services.subjects.hold(kept_hold(), by=TESTER)
    await services.teams.create("acme", "search", LevelSettings(), by=TESTER)
    await services.members.create("acme", "ana", MemberSettings(role="viewer"), by=TESTER)
    call.home.stores.books.sign_ins["acme", "ana", "ses-of-ana"] = kept_session("ses-of-ana", "ana")
    return Tenants(call, secrets)


@cells("caller", ["acme management", "other management"])
@cells(("method", "path", "content"), OPERATOR_ROUTES)
async def test_c41_a_tenants_management_key_is_refused_by_operator_routes_and_changes_nothing(
    method: str, path: str, content: object, caller: str
) -> None:
    them = await tenants()
    before = await them.state()
    reply = await them.ask(caller, method, path, content)
    assert (reply.status, reply.error["code"]) == (403, "permission_denied")
    assert OPERATORS in reply.error["message"]
    assert await them.state() == before


@cells(
    ("caller", "method", "path", "content"),
    [
        *((f"{OPERATORS} management", *route) for route in OPERATOR_ROUTES),
        *(("acme management", *route) for route in WORKSPACE_ROUTES),
        *(("acme management", *route) for route in EVERY_KEYS_ROUTES[:2]),
        *(("acme inference", *route) for route in EVERY_KEYS_ROUTES[:2]),
        *((f"{OPERATORS} read", *route) for route in OPERATOR_LISTS),
        *(("acme read", *route) for route in WORKSPACE_LISTS + EVERY_KEYS_ROUTES[:2]),
    ],
)
async def test_c41_the_key_that_a_route_needs_is_served(
    caller: str, method: str, path: str, content: object
) -> None:
    reply = await (await tenants()).ask(caller, method, path, content)
    assert reply.status in (200, 201), reply.body


@pytest.mark.parametrize("caller", ["acme inference", "acme management"])
@pytest.mark.parametrize(("method", "path", "content"), RESPONSE_ROUTES)
async def test_c80_a_stored_response_is_for_keys_that_generate_or_manage(
    method: str, path: str, content: object, caller: str
) -> None:
    reply = await (await tenants()).ask(caller, method, path, content)
    if path.endswith("/cancel"):
        assert (reply.status, reply.error["param"]) == (400, "response_id")
        assert "synchronous" in reply.error["message"]
    else:
        assert reply.status == 200, reply.body


@pytest.mark.parametrize("caller", ["other management", f"{OPERATORS} management"])
@pytest.mark.parametrize(("method", "path", "content"), RESPONSE_ROUTES)
async def test_c80_a_stored_response_of_another_workspace_is_like_one_that_is_not(
    method: str, path: str, content: object, caller: str
) -> None:
    them = await tenants()
    reply = await them.ask(caller, method, path, content)
    unknown = await them.ask(caller, method, path.replace(RESPONSE_ID, "resp_" + "0" * 15), content)
    assert reply.status == unknown.status == 404
    assert reply.error["message"] == unknown.error["message"]
    assert not them.call.changes["responses"].deleted


@pytest.mark.parametrize(("method", "path", "content"), RESPONSE_ROUTES)
async def test_c80_keys_that_see_no_content_see_no_response(
    method: str, path: str, content: object
) -> None:
    reply = await (await tenants()).ask("acme read", method, path, content)
    assert (reply.status, reply.error["code"]) == (403, "permission_denied")


CREDIT_AMOUNTS = ("total_credits", "total_usage", "available", "held", "credit_limit", "owed")
NOTHING: dict[str, object] = {"data": [], "next_cursor": None, "unreadable": []}
OWN = {
    "/v1/keys": {"data": 3, "next_cursor": None, "unreadable": []},
    "/v1/credits": {"data": {**dict.fromkeys(CREDIT_AMOUNTS, 0.0), "expiring": []}},
    "/v1/credits/ledger": NOTHING,
    "/v1/teams": NOTHING,
    "/v1/members": NOTHING,
    "/v1/generations": NOTHING,
    "/v1/activity": {
        **{key: [] for key in ("data", "partial_days", "closed_days", "missing_days")},
        "total": 0.0,
        "live_days": 31,
        "next_cursor": None,
        "last_record_at": None,
    },
    "/v1/statement": [],
}


@cells("workspace", ["other", OPERATORS])
@cells(("method", "path", "content"), WORKSPACE_ROUTES)
async def test_c60_c64_c67_a_management_key_never_reaches_another_workspace(
    method: str, path: str, content: object, workspace: str
) -> None:
    them = await tenants()
    before = await them.state()
    reply = await them.ask(f"{workspace} management", method, path, content)
    if method == "POST" and path in ("/v1/members", "/v1/teams"):
        books = them.home.stores.books
        made_people = books.teams if path.endswith("teams") else books.members
        assert made_people[workspace, "new"].id == reply.json["data"]["id"]
        return
    if (method, path) == ("POST", "/v1/keys"):
        made = them.home.stores.books.keys[reply.json["data"]["id"]]
        assert made.workspace_id == workspace
        return
    if path == "/v1/cache":
        assert reply.json == {"deleted": 0}
        [entry] = them.home.stores.books.entries_of_audit[-1:]
        assert (entry.action, entry.workspace_id) == ("cache.clear", workspace)
        return
    assert await them.state() == before
    if path == "/v1/audit":
        shown = {entry["workspace_id"] for entry in reply.json["data"]}
        assert shown == ({"acme", "other", OPERATORS} if workspace == OPERATORS else {workspace})
    elif path == "/v1/audit/days":
        assert {day["entries"] for day in reply.json["data"]} == {0}
    elif path == "/v1/catalog":
        # One catalog serves all workspaces; who published it is the operator's to know.
        assert (reply.status, reply.json["data"]["history"]) == (200, [])
    elif path not in OWN:
        assert (reply.status, reply.error["code"]) == (404, "not_found")
    else:
        shown = reply.json
        if path == "/v1/keys":
            ids = [key["id"] for key in shown["data"]]
            books = them.home.stores.books
            assert {books.keys[id_].workspace_id for id_ in ids} == {workspace}
            shown["data"] = len(ids)
        if path == "/v1/activity":
            shown["live_days"] = len(shown["live_days"])
        if path == "/v1/statement":
            assert shown["data"]["workspace_id"] == workspace
            shown = shown["data"]["lines"]
        assert (reply.status, shown) == (200, OWN[path])


@pytest.mark.parametrize("role", ["inference", "management"])
async def test_c60_c66_every_key_reads_itself_and_no_generation_of_another_workspace(
    role: str,
) -> None:
    them = await tenants()
    for workspace in ("other", OPERATORS):
        caller = f"{workspace} {role}"
        own = (await them.ask(caller, "GET", "/v1/key", None)).json["data"]
        assert them.home.stores.books.keys[own["id"]].workspace_id == workspace
        reply = await them.ask(caller, "GET", f"/v1/generation?id={GENERATION_ID}", None)
        assert (reply.status, reply.error["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "content"), [route for route in OPERATOR_ROUTES if WORKSPACE in route[1]]
)
async def test_c60_a_workspace_that_does_not_exist_is_404_and_stays_so(
    method: str, path: str, content: object
) -> None:
    them = await tenants()
    before = await them.state()
    path = path.replace(WORKSPACE, "missing")
    reply = await them.ask(f"{OPERATORS} management", method, path, content)
    assert (reply.status, reply.error["param"]) == (404, "workspace_id")
    assert await them.state() == before


@pytest.mark.parametrize(
    ("authorization", "refused"),
    [
        ("Bearer {}", None),
        ("bearer {}", None),
        ("Bearer  {} ", None),
        ("Basic {}", "Send your API key"),
        ("{}", "Send your API key"),
        ("Bearer", "Send your API key"),
        ("Bearer  ", "Send your API key"),
        ("Bearer {}x", "The API key"),
        ("Bearer x {}", "The API key"),
    ],
)
async def test_c2_an_authorization_header_is_a_bearer_token_and_nothing_else(
    authorization: str, refused: str | None
) -> None:
    call = await api()
    headers = {"authorization": authorization.format(call.home.secret)}
    reply = await call("GET", "/v1/key", headers=headers)
    assert reply.status == (200 if refused is None else 401)
    if refused is not None:
        assert reply.error["message"].startswith(refused)


@pytest.mark.parametrize(
    ("caller", "path", "is_noted"),
    [
        ("acme inference", "/v1/key", True),
        ("acme management", "/v1/keys", True),
        ("acme inference", "/v1/models", True),
        ("acme inference", "/v1/route/explain", False),
    ],
)
async def test_c60_the_last_use_of_a_key_is_noted_except_by_an_explanation(
    caller: str, path: str, is_noted: bool
) -> None:
    them = await tenants()
    content = {"model": "acme/small", "messages": [{"role": "user", "content": "Hi"}]}
    explains = path == "/v1/route/explain"
    method, body = ("POST", content) if explains else ("GET", None)
    for key in them.home.stores.books.keys.values():
        key.used_s.clear()
    reply = await them.ask(caller, method, path, body)
    assert reply.status == 200
    used = {
        key.settings.label
        for key in them.home.stores.books.keys.values()
        if key.used_s.get(False) is not None
    }
    label = "admin" if caller == "acme management" else caller
    assert used == ({label} if is_noted else set())


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("POST", "/v1/keys", {"name": "new", "content_days": 1}),
        ("PATCH", f"/v1/keys/{KEY_ID}", {"content_days": 1}),
        ("POST", f"/v1/workspaces/{WORKSPACE}/keys", {"name": "new", "content_days": 1}),
        ("PATCH", f"/v1/keys/{KEY_ID}", {"response_days": 1}),
        ("POST", "/v1/workspaces", {"id": "new", "response_days": 1}),
        ("PATCH", f"/v1/workspaces/{WORKSPACE}", {"response_days": 1}),
    ],
)
async def test_c60_a_key_keeps_content_only_where_there_is_a_bucket(
    method: str, path: str, content: dict[str, Any]
) -> None:
    them = await tenants()
    caller = f"{OPERATORS if 'workspaces' in path else 'acme'} management"
    before = await them.state()
    them.call.changes["contents"] = None
    refused = await them.ask(caller, method, path, content)
    assert (refused.status, refused.error["param"]) == (400, [*content][-1])
    assert await them.state() == before
    them.call.changes["contents"] = KeptContents("acme", "x")
    assert (await them.ask(caller, method, path, content)).status in (200, 201)


async def test_c3_a_key_is_offered_no_name_of_a_model_that_it_may_not_use() -> None:
    call = await api()
    near_miss = "/v1/models/acme/larg"
    everyone = await call("GET", near_miss)
    assert "acme/large" in everyone.error["message"]
    new = NewKey(workspace_id="acme", label="few", models=("other/*",))
    secret = (await call.home.stores.keys.create(new, by=TESTER)).secret
    refused = await call("GET", near_miss, key=secret)
    assert refused.status == 404
    assert "acme/large" not in refused.error["message"]


async def test_c3_models_and_explanations_are_those_of_the_keys_own_catalog() -> None:
    call = await api()
    new_model = {"new/model": model(endpoint("near", "new-1"))}
    candidate = catalog(models=new_model, aliases={}, routes={})
    call.changes["catalogs"] = Canary(call.home.catalog, call.home.principal.key_id, candidate)
    for key, name in ((call.home.secret, "new/model"), (call.management, "acme/small")):
        listed = (await call("GET", "/v1/models", key=key)).json["data"]
        assert (name == "new/model") == ([it["id"] for it in listed] == ["new/model"])
        content = {"model": name, "messages": [{"role": "user", "content": "Hi"}]}
        explained = await call("POST", "/v1/route/explain", key=key, content=content)
        expected = candidate if name == "new/model" else call.home.catalog
        assert explained.json["catalog_sha"] == expected.sha
