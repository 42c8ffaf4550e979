"""The audit log as the api shows it: to whom, of whom, and in which form.

Keeps C90, C91.
"""

import asyncio
import csv
import io
from typing import Any

import pytest

from tests.asgi import Exchange
from tests.cells import cells
from tests.unit.web.routes import KEY_ID, OPERATOR_CHANGES, WORKSPACE_CHANGES
from tests.unit.web.test_permissions import OPERATORS, Tenants, tenants
from tollgate.core.clock import DAY_S
from tollgate.core.records.audit import AuditSeal
from tollgate.stores.rules.audit_chain import last_closed_day


async def listed(them: Tenants, caller: str, query: str = "") -> list[dict[str, Any]]:
    reply = await them.ask(caller, "GET", f"/v1/audit?{query}", None)
    assert reply.status == 200, reply.body
    entries: list[dict[str, Any]] = reply.json["data"]
    return entries


async def disabled(them: Tenants, caller: str = "acme management") -> Exchange:
    """A key of acme is disabled: the reply."""
    await asyncio.sleep(1)
    path = f"/v1/keys/{KEY_ID}"
    if caller.startswith(OPERATORS):
        path = f"/v1/workspaces/acme{path.removeprefix('/v1')}"
    return await them.ask(caller, "PATCH", path, {"disabled": True})


async def test_c90_an_entry_names_the_key_the_request_and_where_it_came_from() -> None:
    them = await tenants()
    changed = await disabled(them)
    [entry] = (await listed(them, "acme management", "limit=1"))[:1]
    own = (await them.ask("acme management", "GET", "/v1/key", None)).json["data"]
    assert entry | {"id": "", "created_at": ""} == {
        "id": "",
        "created_at": "",
        "action": "key.change",
        "actor_type": "key",
        "actor": own["id"],
        "actor_name": "admin",
        "actor_member_id": None,
        "actor_workspace_id": "acme",
        "origin": "127.0.0.1",
        "request_id": changed.headers["x-request-id"],
        "commit": None,
        "workspace_id": "acme",
        "target": them.home.principal.key_id,
        "target_name": "test",
        "before": {"disabled": "false"},
        "after": {"disabled": "true"},
    }


@pytest.mark.parametrize(
    ("stated", "recorded"),
    [("5c1d0e7+", "5c1d0e7+"), ("a" * 65, None), ("no commit\t", None), ("", None)],
)
async def test_c90_an_entry_has_the_commit_that_the_request_states(
    stated: str, recorded: str | None
) -> None:
    them = await tenants()
    headers = {"x-tollgate-commit": stated}
    created = await them.call(
        "POST",
        "/v1/teams",
        key=them.secrets["acme management"],
        content={"id": "ranking"},
        headers=headers,
    )
    assert created.status == 201, created.body
    [entry] = (await listed(them, "acme management", "limit=1"))[:1]
    assert (entry["target"], entry["commit"]) == ("ranking", recorded)


@cells(
    ("caller", "method", "path", "content"),
    [
        *(("acme management", *route) for route in WORKSPACE_CHANGES if route[0] != "GET"),
        *(("acme owner", *route) for route in WORKSPACE_CHANGES if route[0] != "GET"),
        *((f"{OPERATORS} management", *route) for route in OPERATOR_CHANGES if route[0] != "GET"),
    ],
)
async def test_c90_every_route_that_changes_something_makes_one_entry_of_its_caller(
    caller: str, method: str, path: str, content: object
) -> None:
    them = await tenants()
    if caller.endswith("owner"):
        await them.sign_in("acme", "owner")
    if path.endswith("adjustments"):
        grant = {"id": "first", "amount": 5, "workspace_id": "acme"}
        await them.ask(f"{OPERATORS} management", "POST", "/v1/credits/grants", grant)
    before = len(them.home.stores.books.entries_of_audit)
    reply = await them.ask(caller, method, path, content)
    assert reply.status in (200, 201)
    [entry] = them.home.stores.books.entries_of_audit[before:]
    own = (await them.ask(caller, "GET", "/v1/key", None)).json["data"]
    assert entry.actor.id == own["id"]
    assert entry.actor.request_id == reply.headers["x-request-id"]
    signed_in = caller.endswith("owner")
    assert (entry.actor.kind, entry.actor.member_id) == (
        ("session", "the-owner") if signed_in else ("key", None)
    )


async def test_c90_entries_are_found_by_the_member_that_made_them() -> None:
    them = await tenants()
    await them.sign_in("acme", "owner")
    await disabled(them, "acme owner")
    [entry] = await listed(them, "acme read", "actor=the-owner")
    assert (entry["actor_type"], entry["actor_member_id"]) == ("session", "the-owner")
    assert entry["actor_name"] == "session:the-owner"
    assert await listed(them, "acme read", "actor=the-admin") == []


async def test_c90_a_tenant_sees_the_operator_but_not_where_it_sits() -> None:
    them = await tenants()
    await disabled(them, f"{OPERATORS} management")
    [theirs] = await listed(them, "acme read", "limit=1")
    [ours] = await listed(them, f"{OPERATORS} read", "limit=1")
    assert (theirs["actor_workspace_id"], theirs["origin"]) == (OPERATORS, None)
    assert ours == theirs | {"origin": "127.0.0.1"}


async def test_c90_c91_others_see_their_own_workspace_and_the_operator_all() -> None:
    them = await tenants()
    for caller, workspaces in (
        ("acme read", {"acme"}),
        ("other management", {"other"}),
        (f"{OPERATORS} management", {"acme", "other", OPERATORS}),
    ):
        assert {it["workspace_id"] for it in await listed(them, caller)} == workspaces
    named = await listed(them, f"{OPERATORS} read", "workspace=other")
    assert {it["workspace_id"] for it in named} == {"other"}
    assert await listed(them, "acme read", "workspace=acme") != []
    refused = await them.ask("acme management", "GET", "/v1/audit?workspace=other", None)
    assert (refused.status, refused.error["code"]) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("actor=admin", 1),
        ("actor=sweeper", 0),
        ("target=test", 2),
        ("target=nobody", 0),
        ("since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z", 0),
        ("since=2020-01-01T00:00:00Z&target=test", 2),
    ],
)
async def test_c90_entries_are_filtered(query: str, count: int) -> None:
    them = await tenants()
    await disabled(them)
    assert len(await listed(them, "acme read", query)) == count


async def test_c90_a_day_that_was_changed_is_named_to_its_workspace_and_the_operator() -> None:
    them = await tenants()
    books = them.home.stores.books
    day = last_closed_day(them.home.stores.clock.now_s())
    before_day = last_closed_day(them.home.stores.clock.now_s() - DAY_S)
    for workspace_id in ("acme", None):
        books.seals[workspace_id] = {day: AuditSeal(day=day, entries=4, hash="f" * 64, previous="")}
    for caller, query in (
        ("acme read", ""),
        (f"{OPERATORS} read", ""),
        (f"{OPERATORS} read", "&workspace=acme"),
    ):
        path = f"/v1/audit/days?since={before_day}{query}"
        reply = await them.ask(caller, "GET", path, None)
        before, after = reply.json["data"]
        assert (before["day"], before["hash"], before["problem"]) == (before_day, None, None)
        assert (after["entries"], after["sealed_entries"]) == (0, 4)
        assert after["problem"].startswith("The log was changed after the last entry")
    refused = await them.ask("acme read", "GET", "/v1/audit/days?workspace=other", None)
    assert refused.status == 403
    long = await them.ask("acme read", "GET", "/v1/audit/days?since=1970-01-01", None)
    assert (long.status, long.error["param"]) == (400, "since")


async def test_c90_pages_and_csv_have_every_entry() -> None:
    them = await tenants()
    await disabled(them)
    whole = await listed(them, "acme read")
    first = (await them.ask("acme read", "GET", "/v1/audit?limit=2", None)).json
    cursor = first["next_cursor"]
    assert first["data"] + await listed(them, "acme read", f"cursor={cursor}") == whole
    table = await them.ask("acme read", "GET", "/v1/audit?format=csv", None)
    rows = list(csv.DictReader(io.StringIO(table.body.decode())))
    assert [row["id"] for row in rows] == [it["id"] for it in whole]
    assert (rows[0]["before"], rows[0]["after"]) == ("disabled=false", "disabled=true")
    refused = await them.ask("acme read", "GET", "/v1/audit?cursor=x", None)
    assert (refused.status, refused.error["param"]) == (400, "cursor")
