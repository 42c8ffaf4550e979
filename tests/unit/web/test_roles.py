"""Each route by each role, stated apart from the table of access that the app reads.

Keeps C61, C91.
"""

import json
from typing import get_args

import pytest

from tests.asgi import request
from tests.unit.web.routes import (
    BATCH_ROUTES,
    CACHE_CHANGES,
    EVERY_KEYS_ROUTES,
    FILE_ROUTES,
    KEY_CHANGES,
    KEY_LISTS,
    MONEY_LISTS,
    NEW_BATCHES,
    OPERATOR_CHANGES,
    OPERATOR_LISTS,
    PEOPLE_CHANGES,
    PEOPLE_LISTS,
    PLAYGROUND_ROUTES,
    RESPONSE_ROUTES,
    ROUTES,
    SCIM_ROUTES,
    SESSION_CHANGES,
    SESSION_LISTS,
    SETUP_LISTS,
    SUBJECT_ROUTES,
    WEBHOOK_ROUTES,
)
from tests.unit.web.test_chat_app import PATH, app_of
from tests.unit.web.test_permissions import OPERATORS, Tenants, tenants
from tollgate.core.errors import AccessError
from tollgate.core.principal import PLAYGROUND, KeyRole, MemberRole, Principal, Role
from tollgate.web.access import ACCESS, METERED, Access, authenticate

ALL = {*get_args(KeyRole), *get_args(MemberRole)}
MANAGERS = {"management", "owner", "admin"}
READERS = MANAGERS | {"read", "viewer"}
GENERATE = {"inference", "owner", "admin", "developer"}
SERVED_BY = [
    (EVERY_KEYS_ROUTES, ALL, {"acme", OPERATORS}),
    (SETUP_LISTS, READERS, {"acme", OPERATORS}),
    (KEY_LISTS, READERS | {"developer"}, {"acme", OPERATORS}),
    (PEOPLE_LISTS, READERS | {"developer", "billing"}, {"acme", OPERATORS}),
    (MONEY_LISTS, READERS | {"billing"}, {"acme", OPERATORS}),
    (KEY_CHANGES, MANAGERS | {"developer"}, {"acme", OPERATORS}),
    (CACHE_CHANGES, MANAGERS, {"acme", OPERATORS}),
    (PEOPLE_CHANGES, MANAGERS, {"acme", OPERATORS}),
    (SESSION_LISTS, READERS | {"developer", "billing"}, {"acme", OPERATORS}),
    (SESSION_CHANGES, MANAGERS | {"developer", "billing", "viewer"}, {"acme", OPERATORS}),
    (WEBHOOK_ROUTES, MANAGERS, {"acme", OPERATORS}),
    (SCIM_ROUTES, MANAGERS, {"acme", OPERATORS}),
    (SUBJECT_ROUTES, {"management", "owner"}, {"acme", OPERATORS}),
    (RESPONSE_ROUTES, MANAGERS | GENERATE, {"acme", OPERATORS}),
    (FILE_ROUTES, MANAGERS | GENERATE, {"acme", OPERATORS}),
    (BATCH_ROUTES, MANAGERS | GENERATE, {"acme", OPERATORS}),
    (NEW_BATCHES, GENERATE, {"acme", OPERATORS}),
    (PLAYGROUND_ROUTES, GENERATE | {"management"}, {"acme", OPERATORS}),
    (OPERATOR_LISTS, READERS, {OPERATORS}),
    (OPERATOR_CHANGES, MANAGERS, {OPERATORS}),
]


async def caller_of(them: Tenants, workspace: str, role: str) -> str:
    """The name of a caller of a role: a key, or a member who has signed in."""
    if role in get_args(MemberRole):
        return await them.sign_in(workspace, role)  # type: ignore[arg-type]  # checked above
    return f"{workspace} {role}"


@pytest.mark.parametrize("workspace", ["acme", OPERATORS])
@pytest.mark.parametrize("role", sorted(ALL))
async def test_c91_each_role_is_served_by_its_routes(role: str, workspace: str) -> None:
    them = await tenants()
    caller = await caller_of(them, workspace, role)
    for routes, roles, workspaces in SERVED_BY:
        if role not in roles or workspace not in workspaces:
            continue
        for method, path, content in routes:
            reply = await them.ask(caller, method, path, content)
            assert reply.status not in (401, 403), (method, path, reply.body)
            if method != "GET":
                them = await tenants()
                caller = await caller_of(them, workspace, role)


@pytest.mark.parametrize("workspace", ["acme", OPERATORS])
@pytest.mark.parametrize("role", sorted(ALL))
async def test_c91_each_role_is_refused_by_all_other_routes(role: str, workspace: str) -> None:
    them = await tenants()
    caller = await caller_of(them, workspace, role)
    before = await them.state()
    for routes, roles, workspaces in SERVED_BY:
        if role in roles and workspace in workspaces:
            continue
        for method, path, content in routes:
            reply = await them.ask(caller, method, path, content)
            refusal = (reply.status, reply.error["code"])
            assert refusal == (403, "permission_denied"), (method, path, reply.body)
        assert await them.state() == before, routes


@pytest.mark.parametrize("role", sorted(ALL))
async def test_c91_who_may_generate_is_served_and_all_others_are_refused(role: str) -> None:
    them = await tenants()
    secret = them.secrets[await caller_of(them, "acme", role)]
    content = {"model": "acme/small", "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"authorization": f"Bearer {secret}"}
    app = app_of(them.home)
    reply = await request(app, "POST", PATH, headers=headers, body=json.dumps(content).encode())
    if role in GENERATE:
        assert reply.status == 200, reply.body
    else:
        assert (reply.status, reply.error["code"]) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("role", "session", "served", "needed"),
    [
        ("read", False, ACCESS["GET", "/v1/session"], "session of a member who has signed in"),
        ("viewer", True, Access(roles=frozenset({"inference"})), "key"),
        ("read", False, ACCESS["POST", "/v1/files"], "key of role inference or management"),
        ("viewer", True, ACCESS["POST", "/v1/teams"], "member of role admin or owner"),
    ],
)
async def test_c91_a_refusal_names_who_is_served(
    role: Role, session: bool, served: Access, needed: str
) -> None:
    caller = Principal(key_id="k", workspace_id="acme", role=role, label="k", session=session)

    class Keys:
        async def authenticate(self, secret: str) -> Principal:
            return caller

    with pytest.raises(AccessError, match=f"This needs a {needed}, not ") as refused:
        await authenticate(Keys(), {"x-api-key": "sk-tg-1"}, served.roles, source=None)
    assert refused.value.message.endswith(f"{role}.")


def test_c91_every_route_of_the_table_is_in_the_matrix() -> None:
    listed = [route for routes, _, _ in SERVED_BY for route in routes]
    assert sorted(listed, key=str) == sorted(ROUTES, key=str)
    keyed = [key for key, access in ACCESS.items() if access.roles and not access.keyless]
    # Routes that generate, the end of a playground, and the routes of the app that signs people in
    # have tests of their own.
    tested = (METERED.roles, {PLAYGROUND}, {*get_args(MemberRole)})
    others = [key for key in keyed if ACCESS[key].roles in tested]
    assert len(keyed) - len(others) == len(ROUTES)


@pytest.mark.parametrize("role", ["billing", "viewer"])
@pytest.mark.parametrize("workspace", ["acme", OPERATORS])
async def test_c91_members_who_only_look_change_nothing_and_see_no_content(
    workspace: str, role: str
) -> None:
    them = await tenants()
    caller = await caller_of(them, workspace, role)
    before = await them.state()
    for method, path, content in ROUTES:
        reply = await them.ask(caller, method, path, content)
        assert b"kept words" not in reply.body, (method, path)
    assert await them.state() == before


@pytest.mark.parametrize("workspace", ["acme", OPERATORS])
async def test_c91_a_read_key_changes_nothing_and_sees_no_content(workspace: str) -> None:
    them = await tenants()
    before = await them.state()
    digests = {key.digest.encode() for key in them.home.stores.books.keys.values()}
    hidden = [b"kept words", *digests, *(secret.encode() for secret in them.secrets.values())]
    for method, path, content in ROUTES:
        reply = await them.ask(f"{workspace} read", method, path, content)
        assert not any(words in reply.body for words in hidden), (method, path)
    assert await them.state() == before
