"""Every route by every caller and every owner of what the route names, and a test of this table.

Keeps C91. The expectations are stated apart from the table of access that the app reads. Changes
that a caller may make are tested elsewhere; here each caller tries the ones that it may not make.
"""

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, Final, get_args

import pytest
from msgspec.structs import replace
from starlette.types import ASGIApp

from tests.asgi import Exchange, request
from tests.unit.web.routes import (
    BATCH_ROUTES,
    EVERY_KEYS_ROUTES,
    FILE_ROUTES,
    GENERATION_ID,
    KEY_ID,
    MEMBER_ID,
    OPERATOR_CHANGES,
    OPERATOR_LISTS,
    RESPONSE_ID,
    ROUTES,
    TEAM_ID,
    WORKSPACE,
)
from tests.unit.web.served_api import LIMITS
from tests.unit.web.test_own import Household, household
from tests.unit.web.test_permissions import OPERATORS
from tests.unit.web.test_roles import ALL, SERVED_BY
from tollgate.core.principal import MemberRole
from tollgate.web.access import ACCESS
from tollgate.web.api_app import api_app
from tollgate.web.own import Own

pytestmark = pytest.mark.nightly

Route = tuple[str, str, Any]
NOBODY: Final = "nobody"
OWNERS: Final = (NOBODY, "bob", "eve")
PLACEHOLDERS: Final = (KEY_ID, GENERATION_ID, RESPONSE_ID, MEMBER_ID, TEAM_ID)
# Routes on which the operator reaches other workspaces.
OPERATORS_REACH: Final = {
    "/v1/audit",
    *(path for _, path, _ in (*OPERATOR_LISTS, *OPERATOR_CHANGES)),
}

# The role of a new key is compared with its creator's once more.
CHECKED_TWICE: Final = {"POST /v1/keys"}

# Roles that reach the whole workspace, but only their own sessions on these routes.
OWN_SESSIONS: Final = {"GET": {"billing"}, "DELETE": {"billing", "viewer"}}


@dataclass(frozen=True)
class Caller:
    """A caller, and the owners in `acme` whose things it reaches."""

    name: str
    role: str
    workspace: str = "acme"
    reaches: frozenset[str] = frozenset(OWNERS)

    def reaches_on(self, method: str, path: str) -> frozenset[str]:
        """Return the owners whose things the caller reaches on a route."""
        if "/sessions" in path and self.role in OWN_SESSIONS[method]:
            return frozenset()
        return self.reaches


CALLERS: Final = (
    Caller("acme inference", "inference", reaches=frozenset({NOBODY})),
    Caller("bob", "developer", reaches=frozenset({"bob"})),
    Caller("bob's key", "inference", reaches=frozenset({"bob"})),
    Caller("eve's key", "inference", reaches=frozenset({"eve"})),
    *(Caller(f"acme {role}", role) for role in ("management", "read")),
    *(Caller(f"acme {role}", role) for role in get_args(MemberRole) if role != "developer"),
    *(
        Caller(f"{workspace} {role}", role, workspace, frozenset())
        for workspace in ("other", OPERATORS)
        for role in ("inference", "management", "read")
    ),
)


@dataclass(frozen=True)
class World:
    """A workspace with things of three owners, in front of one app."""

    home: Household
    app: ASGIApp

    def words(self, owner: str) -> tuple[bytes, ...]:
        """The ids that only things of an owner have."""
        return self.home.keys[owner].encode(), self.home.generations[owner].encode()

    def fill(self, text: str, owner: str) -> str:
        """Return a path or body that names the things of an owner."""
        names = {
            KEY_ID: self.home.keys[owner],
            GENERATION_ID: self.home.generations[owner],
            RESPONSE_ID: f"resp_{self.home.generations[owner]}",
            MEMBER_ID: "ana" if owner == NOBODY else owner,
            TEAM_ID: "search" if owner != "bob" else "bobs",
            WORKSPACE: "acme",
        }
        for placeholder, name in names.items():
            text = text.replace(placeholder, name)
        return text

    async def ask(self, caller: Caller, route: Route, owner: str) -> Exchange:
        method, path, content = route
        headers = {"authorization": f"Bearer {self.home.them.secrets[caller.name]}"}
        body = b"" if content is None else self.fill(json.dumps(content), owner).encode()
        if body:
            headers["content-type"] = "application/json"
        return await request(self.app, method, self.fill(path, owner), headers=headers, body=body)


class Kept:
    """A store of one workspace that has something for every generation."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        return self._content if workspace_id == "acme" else None

    async def delete(self, workspace_id: str, generation_id: str, *, by: object) -> bool:
        return workspace_id == "acme"


async def world() -> World:
    """Return the world over an app that reads the present table of access."""
    home = await household()
    them = home.them
    them.call.changes |= {
        "contents": Kept(b'{"id": "gen-x", "request": {}, "choices": []}'),
        "responses": Kept(b'{"response":{"output":[]},"input":[]}'),
    }
    for role in get_args(MemberRole):
        if role != "developer":
            await them.sign_in("acme", role)
    home.keys[NOBODY] = them.home.principal.key_id
    [home.generations[NOBODY]] = {id_ for _, id_ in them.home.stores.books.records} - {
        *home.generations.values()
    }
    return World(home, api_app(them.call.services, LIMITS))


def owners_of(path: str) -> Iterable[str]:
    """Return the owners whose things a path may name; members and teams own themselves."""
    if not any(placeholder in path for placeholder in PLACEHOLDERS):
        return (NOBODY,)
    return OWNERS[1:] if MEMBER_ID in path or TEAM_ID in path else OWNERS


async def find_violations(here: World) -> AsyncIterator[tuple[str, str]]:
    """Yield each wrong reply: the route, as method and path, and what is wrong."""
    for routes, roles, workspaces in SERVED_BY:
        for route in routes:
            method, path, _ = route
            for caller in CALLERS:
                for owner in owners_of(path):
                    wrong = await _wrong(here, route, caller, owner, roles, workspaces)
                    if wrong is not None:
                        yield f"{method} {path}", f"{caller.name}, {owner}'s: {wrong}"


async def _wrong(
    here: World, route: Route, caller: Caller, owner: str, roles: set[str], workspaces: set[str]
) -> str | None:
    """Return what is wrong with a reply, None if it is right or the change is tested elsewhere."""
    method, path, _ = route
    is_served = caller.role in roles and (
        workspaces != {OPERATORS} or caller.workspace == OPERATORS
    )
    names_a_thing = owners_of(path) != (NOBODY,) and route not in FILE_ROUTES + BATCH_ROUTES
    is_reached = owner in caller.reaches_on(method, path) or path in OPERATORS_REACH
    if is_served and method != "GET" and (is_reached or not names_a_thing):
        return None
    reply = await here.ask(caller, route, owner)
    if not is_served and reply.status != 403:
        return f"status {reply.status} in place of 403"
    if is_served and names_a_thing:
        # A key that stores no responses is told so, whichever response it names.
        expected = {200} if is_reached else {400, 404} if RESPONSE_ID in path else {404}
        if reply.status not in expected:
            return f"status {reply.status} in place of {expected}"
    hidden = set() if path in OPERATORS_REACH and is_served else set(OWNERS) - caller.reaches
    leaked = [it for it in hidden if any(word in reply.body for word in here.words(it))]
    return f"shows things of {leaked}" if leaked else None


async def test_c91_every_cell_of_routes_callers_and_owners_is_right() -> None:
    assert [wrong async for wrong in find_violations(await world())] == []


def rows_of(routes: Iterable[Route]) -> set[str]:
    return {f"{method} {path}" for method, path, _ in routes}


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        # The table of access, made wrong in one column, and the routes that must show it.
        (
            {"own": frozenset()},
            rows_of(it for it in ROUTES if len(list(owners_of(it[1]))) > 1)
            - rows_of(FILE_ROUTES + BATCH_ROUTES)
            - rows_of([it for it in ROUTES if it[1].startswith("/v1/workspaces")])
            - rows_of([it for it in ROUTES if it[0] != "GET" and "/v1/keys" not in it[1]]),
        ),
        ({"roles": frozenset(ALL)}, rows_of(ROUTES) - rows_of(EVERY_KEYS_ROUTES) - CHECKED_TWICE),
        ({"operator": False}, rows_of([*OPERATOR_LISTS, *OPERATOR_CHANGES])),
    ],
    ids=["own", "roles", "operator"],
)
async def test_the_cells_show_a_table_that_is_wrong_in_any_row(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], concerned: set[str]
) -> None:
    for key, access in ACCESS.items():
        changed = {name: value for name, value in change.items() if access.roles}
        monkeypatch.setitem(ACCESS, key, replace(access, **changed))  # type: ignore[arg-type]
    found = {route async for route, _ in find_violations(await world())}
    assert concerned - found == set()


@pytest.mark.parametrize("method", ["has_key", "has_member", "has_team", "has_record"])
async def test_the_cells_show_an_owner_who_is_not_compared(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(Own, method, lambda *_: True)
    assert [wrong async for wrong in find_violations(await world())] != []
