"""Each route by each role, stated apart from the table of access that the app reads.

Keeps C61, C91.
"""

from typing import get_args

import pytest

from tests.unit.web.routes import (
    EVERY_KEYS_ROUTES,
    OPERATOR_CHANGES,
    OPERATOR_LISTS,
    ROUTES,
    WEBHOOK_ROUTES,
    WORKSPACE_CHANGES,
    WORKSPACE_LISTS,
)
from tests.unit.web.test_permissions import OPERATORS, tenants
from tollgate.core.principal import KeyRole

SERVED_BY = [
    (EVERY_KEYS_ROUTES, {"inference", "read", "management"}, {"acme", OPERATORS}),
    (WORKSPACE_LISTS, {"read", "management"}, {"acme", OPERATORS}),
    (WORKSPACE_CHANGES, {"management"}, {"acme", OPERATORS}),
    (WEBHOOK_ROUTES, {"management"}, {"acme", OPERATORS}),
    (OPERATOR_LISTS, {"read", "management"}, {OPERATORS}),
    (OPERATOR_CHANGES, {"management"}, {OPERATORS}),
]


@pytest.mark.parametrize("workspace", ["acme", OPERATORS])
@pytest.mark.parametrize("role", get_args(KeyRole))
@pytest.mark.parametrize(
    ("method", "path", "content", "roles", "workspaces"),
    [(*route, roles, places) for routes, roles, places in SERVED_BY for route in routes],
)
async def test_c91_each_role_is_served_by_its_routes_and_refused_by_all_others(
    method: str,
    path: str,
    content: object,
    roles: set[str],
    workspaces: set[str],
    role: str,
    workspace: str,
) -> None:
    them = await tenants()
    before = await them.state()
    reply = await them.ask(f"{workspace} {role}", method, path, content)
    if role in roles and workspace in workspaces:
        assert reply.status != 403, reply.body
    else:
        assert (reply.status, reply.error["code"]) == (403, "permission_denied")
        assert await them.state() == before


@pytest.mark.parametrize("workspace", ["acme", OPERATORS])
@pytest.mark.parametrize(("method", "path", "content"), ROUTES)
async def test_c91_a_read_key_changes_nothing_and_sees_no_content(
    method: str, path: str, content: object, workspace: str
) -> None:
    them = await tenants()
    before = await them.state()
    reply = await them.ask(f"{workspace} read", method, path, content)
    assert await them.state() == before
    assert b"kept words" not in reply.body
    assert not any(secret.encode() in reply.body for secret in them.secrets.values())
    digests = {key.digest.encode() for key in them.home.stores.books.keys.values()}
    assert not any(digest in reply.body for digest in digests)
