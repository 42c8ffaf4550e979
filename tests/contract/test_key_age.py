"""A workspace ends secrets by their age, and its settings reach all its keys.

Keeps C30, C60, C64.
"""

import asyncio

import pytest
from msgspec.structs import replace

from tests.contract.test_workspaces import KEY, Inbox, maintenance
from tests.memory.workspaces import MemoryWorkspaceStore
from tests.stores import TESTER, DynamoStores, MemoryStores
from tollgate.core.clock import DAY_S
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.records.audit import AuditFilter
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings, WorkspaceStore
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.stores.rules.webhook_events import event_type

AnyStores = MemoryStores | DynamoStores
DAYS = 90
EVER = AuditFilter(since_s=0, until_s=2**40)


def workspaces_of(stores: AnyStores) -> WorkspaceStore:
    if isinstance(stores, MemoryStores):
        return MemoryWorkspaceStore(stores.books, stores.clock)
    return stores.workspaces


async def is_refused(stores: AnyStores, secret: str) -> bool:
    # A result of authentication is used for five seconds.
    stores.clock.now += 6
    try:
        await stores.keys.authenticate(secret)
    except AccessError as refused:
        return refused.code is ErrorCode.INVALID_API_KEY
    return False


async def test_c60_a_secret_is_refused_at_the_age_that_its_workspace_admits(
    stores: AnyStores,
) -> None:
    workspaces = workspaces_of(stores)
    await workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    made = await stores.keys.create(NewKey(workspace_id="acme", label="old"), by=TESTER)
    made_s = made.summary.secret_created_s
    await workspaces.change("acme", lambda it: replace(it, key_days=DAYS), by=TESTER)
    stores.clock.now = made_s + DAYS * DAY_S - 60
    assert not await is_refused(stores, made.secret)
    rotated = await stores.keys.rotate("acme", made.summary.id, grace_s=3_600, by=TESTER)
    assert rotated is not None
    assert rotated.summary.secret_created_s > made_s
    assert rotated.summary.created_s == made_s
    stores.clock.now = made_s + DAYS * DAY_S
    # The grace of a rotation does not extend the age of the old secret.
    assert await is_refused(stores, made.secret)
    assert not await is_refused(stores, rotated.secret)
    later = await stores.keys.create(NewKey(workspace_id="acme", label="later"), by=TESTER)
    stores.clock.now += DAYS * DAY_S
    assert await is_refused(stores, rotated.secret)
    assert await is_refused(stores, later.secret)
    await workspaces.change("acme", lambda it: replace(it, key_days=None), by=TESTER)
    assert not await is_refused(stores, rotated.secret)


async def test_c60_networks_reach_all_keys_old_and_new(stores: AnyStores) -> None:
    workspaces = workspaces_of(stores)
    await workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    new = NewKey(workspace_id="acme", label="k", allowed_ips="2001:db8::/32")
    first = await stores.keys.create(new, by=TESTER)
    await workspaces.change("acme", lambda it: replace(it, allowed_ips="192.0.2.0/24"), by=TESTER)
    later = await stores.keys.create(NewKey(workspace_id="acme", label="later"), by=TESTER)
    stores.clock.now += 6
    shown = [await stores.keys.authenticate(it.secret) for it in (first, later)]
    assert [it.allowed_ips for it in shown] == ["2001:db8::/32", None]
    assert {it.workspace_ips for it in shown} == {"192.0.2.0/24"}
    await workspaces.change("acme", lambda it: replace(it, allowed_ips=None), by=TESTER)
    stores.clock.now += 6
    assert (await stores.keys.authenticate(later.secret)).workspace_ips is None
    with pytest.raises(RequestError, match="allowed_ips"):
        WorkspaceSettings(allowed_ips="10.0.0.1/8")


async def test_c30_the_frame_with_usage_is_a_setting_of_keys_old_and_new(stores: AnyStores) -> None:
    workspaces = workspaces_of(stores)
    await workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    own = NewKey(workspace_id="acme", label="k", usage_on="frame")
    first = await stores.keys.create(own, by=TESTER)
    old = await stores.keys.create(NewKey(workspace_id="acme", label="old"), by=TESTER)
    await workspaces.change("acme", lambda it: replace(it, usage_on="finish"), by=TESTER)
    later = await stores.keys.create(NewKey(workspace_id="acme", label="later"), by=TESTER)
    stores.clock.now += 6
    shown = [await stores.keys.authenticate(it.secret) for it in (first, old, later)]
    assert [it.usage_on for it in shown] == ["frame", "finish", "finish"]
    workspace = await workspaces.get("acme")
    assert workspace is not None
    assert workspace.settings.usage_on == "finish"
    await workspaces.change("acme", lambda it: replace(it, usage_on=None), by=TESTER)
    stores.clock.now += 6
    assert (await stores.keys.authenticate(later.secret)).usage_on is None


async def test_c60_an_old_secret_without_a_date_has_the_age_of_its_key(
    dynamo: DynamoStores,
) -> None:
    await dynamo.workspaces.create("acme", WorkspaceSettings(key_days=DAYS), by=TESTER)
    made = await dynamo.keys.create(KEY, by=TESTER)
    rows = await dynamo.client.call("Scan", {"TableName": dynamo.tables.core})
    [row] = [row for row in rows["Items"] if "md" in row]
    del row["md"]
    await dynamo.client.call("PutItem", {"TableName": dynamo.tables.core, "Item": row})
    dynamo.clock.now = made.summary.created_s + DAYS * DAY_S - 60
    assert not await is_refused(dynamo, made.secret)
    dynamo.clock.now += 60
    assert await is_refused(dynamo, made.secret)


async def test_c60_sessions_do_not_age_with_their_key(dynamo: DynamoStores) -> None:
    await dynamo.workspaces.create("acme", WorkspaceSettings(key_days=1), by=TESTER)
    await dynamo.members.create("acme", "ana", MemberSettings(), by=TESTER)
    await dynamo.sessions.open("acme", "ana", lifetime_s=60, by=TESTER)
    dynamo.clock.now += 2 * DAY_S
    session = await dynamo.sessions.open("acme", "ana", lifetime_s=3_600, by=TESTER)
    assert session is not None
    assert not await is_refused(dynamo, session.secret)
    await maintenance(dynamo, Inbox()).run()
    entries = (await dynamo.audit_log.page("acme", EVER, limit=50)).found
    assert "key.rotation_due" not in {entry.action for entry in entries}


async def test_c64_a_rotation_is_announced_once_for_each_secret(dynamo: DynamoStores) -> None:
    await dynamo.workspaces.create("acme", WorkspaceSettings(key_days=DAYS), by=TESTER)
    made = await dynamo.keys.create(KEY, by=TESTER)

    async def announced() -> list[str]:
        for _ in range(2):
            await maintenance(dynamo, Inbox()).run()
        page = await dynamo.audit_log.page("acme", EVER, limit=50)
        due = [it for it in page.found if it.action == "key.rotation_due"]
        assert {event_type(it) for it in due} <= {"key.rotation_due"}
        assert {(it.target, it.target_name, it.actor.kind) for it in due} <= {
            (made.summary.id, KEY.label, "process")
        }
        return [it.after["secret"] for it in reversed(due)]

    dynamo.clock.now += (DAYS - 15) * DAY_S
    assert await announced() == []
    dynamo.clock.now += DAY_S
    assert await announced() == [f"…{made.secret[-4:]}"]
    rotated = await dynamo.keys.rotate("acme", made.summary.id, grace_s=0, by=TESTER)
    assert rotated is not None
    dynamo.clock.now += (DAYS - 15) * DAY_S
    assert len(await announced()) == 1
    dynamo.clock.now += DAY_S
    assert await announced() == [f"…{made.secret[-4:]}", f"…{rotated.secret[-4:]}"]


async def test_c60_a_key_that_is_created_during_a_change_has_the_new_networks(
    dynamo: DynamoStores,
) -> None:
    """The setting is copied to the keys that exist; a key with the earlier one is not written."""
    await dynamo.workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    read = dynamo.keys._workspace
    changed = asyncio.Event()

    async def read_and_change(workspace_id: str) -> object:
        item = await read(workspace_id)
        if not changed.is_set():
            changed.set()
            await dynamo.workspaces.change(
                "acme", lambda it: replace(it, allowed_ips="192.0.2.0/24"), by=TESTER
            )
        return item

    dynamo.keys._workspace = read_and_change  # type: ignore[method-assign, assignment]
    made = await dynamo.keys.create(KEY, by=TESTER)
    assert (await dynamo.keys.authenticate(made.secret)).workspace_ips == "192.0.2.0/24"
