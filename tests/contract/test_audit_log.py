"""The audit log on everything the stores run on: who changed what, when, and from what to what.

Keeps C90.
"""

import json
from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from tests.memory.workspaces import MemoryWorkspaceStore
from tests.stores import (
    TESTER,
    DynamoStores,
    MemoryStores,
    an_entry,
    funded_key,
    record_of,
)
from tollgate.aws.failures import TransactionCancelled
from tollgate.core.clock import DAY_S
from tollgate.core.errors import GatewayError, RequestError
from tollgate.core.records.audit import SWEEPER, Actor, AuditEntry, AuditFilter
from tollgate.core.routing.publication import Signature, publish_canary, publish_to_all
from tollgate.stores.keys.secret import secret_hash
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings, WorkspaceStore
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.records.audit_log import entry_puts

AnyStores = MemoryStores | DynamoStores
KEY = NewKey(workspace_id="acme", label="search", limits_nano_usd={"day": 5 * 10**9})
ADMIN = Actor(
    kind="key",
    id="5g0DOBgUqHItj5y",
    name="admin",
    workspace_id="acme",
    origin="192.0.2.7",
    request_id="5g0DOBgUqHItj5z",
)


async def entries(
    stores: AnyStores, workspace_id: str | None = None, **wanted: str | None
) -> Sequence[AuditEntry]:
    """All entries of the last sixty days, the first one first."""
    now_s = int(stores.clock.now)
    selection = AuditFilter(since_s=now_s - 60 * DAY_S, until_s=now_s + 1, **wanted)
    page = await stores.audit_log.page(workspace_id, selection, limit=1000)
    assert (page.next, page.unreadable) == (None, ())
    return page.found[::-1]


def workspaces_of(stores: AnyStores) -> WorkspaceStore:
    if isinstance(stores, DynamoStores):
        return stores.workspaces
    return MemoryWorkspaceStore(stores.books, stores.clock)


async def test_c90_every_change_of_a_key_is_an_entry_without_its_secrets(
    stores: AnyStores,
) -> None:
    created = await stores.keys.create(KEY, by=ADMIN)
    key_id, last = created.summary.id, created.summary.last_four
    changes = (
        lambda old: replace(old, limits_nano_usd={"day": 10**9, "month": 2 * 10**10}),
        lambda old: replace(old, label="renamed", labels={"team": "blue"}, models=("a/*", "b/*")),
        lambda old: replace(old, disabled=True, expires_s=1_900_000_000),
    )
    for change in changes:
        stores.clock.now += 1
        await stores.keys.change("acme", key_id, change, by=ADMIN)
    stores.clock.now += 1
    rotated = await stores.keys.rotate("acme", key_id, grace_s=60, by=TESTER)
    assert rotated is not None
    stores.clock.now += 1
    assert await stores.keys.delete("acme", key_id, by=TESTER)

    found = await entries(stores, "acme")
    assert [
        (entry.action, entry.actor, entry.target_name, entry.before, entry.after)
        for entry in found[1:]
    ] == [
        (
            "key.change",
            ADMIN,
            "search",
            {"limits.day": "5"},
            {"limits.day": "1", "limits.month": "20"},
        ),
        (
            "key.change",
            ADMIN,
            "renamed",
            {"name": "search"},
            {"name": "renamed", "labels.team": "blue", "models": "a/*,b/*"},
        ),
        (
            "key.change",
            ADMIN,
            "renamed",
            {"disabled": "false"},
            {"disabled": "true", "expires_at": "2030-03-17T17:46:40Z"},
        ),
        (
            "key.rotate",
            TESTER,
            "renamed",
            {"secret": f"…{last}"},
            {
                "secret": f"…{rotated.summary.last_four}",
                "old_secret_expires_at": "2026-11-21T12:31:05Z",
            },
        ),
        ("key.delete", TESTER, "renamed", {}, {}),
    ]
    assert {entry.target for entry in found} == {key_id}
    assert {entry.workspace_id for entry in found} == {"acme"}
    assert [entry.at_ms // 1000 for entry in found] == list(range(1795264201, 1795264207))
    whole = msgspec.json.encode(found).decode()
    for secret in (created.secret, rotated.secret):
        assert secret not in whole
        assert secret_hash(secret) not in whole


async def test_c90_a_new_key_is_an_entry_of_all_its_settings(stores: AnyStores) -> None:
    await stores.keys.create(KEY, by=ADMIN)
    [made] = await entries(stores, "acme")
    assert (made.action, made.before) == ("key.create", {})
    assert made.after == {
        "name": "search",
        "role": "inference",
        "workspace_id": "acme",
        "limits.day": "5",
        "requests_per_minute": "60",
        "burst": "120",
        "disabled": "false",
    }


async def test_c90_what_changes_nothing_makes_no_entry(stores: AnyStores) -> None:
    created = await stores.keys.create(KEY, by=ADMIN)
    key_id = created.summary.id
    await stores.keys.create(replace(KEY, label="other"), by=ADMIN)
    await stores.credits.grant("acme", "first", 10, "paid", by=ADMIN)
    before = await entries(stores)

    await stores.keys.change("acme", key_id, lambda old: old, by=ADMIN)
    for refused in (
        stores.keys.create(KEY, by=ADMIN),
        stores.keys.change("acme", key_id, lambda old: replace(old, label="other"), by=ADMIN),
        stores.credits.enter(
            CreditEntry(
                id="too much",
                workspace_id="acme",
                kind="adjustment",
                amount_nano_usd=-11,
                note="",
                created_s=0,
            ),
            by=ADMIN,
        ),
        stores.credits.enter(
            CreditEntry(
                id="nothing there",
                workspace_id="missing",
                kind="adjustment",
                amount_nano_usd=-1,
                note="",
                created_s=0,
            ),
            by=ADMIN,
        ),
    ):
        with pytest.raises(RequestError):
            await refused
    assert await workspaces_of(stores).get("missing") is None
    assert not await stores.credits.grant("acme", "first", 10, "paid", by=ADMIN)
    for missing in (
        stores.keys.change("other", key_id, lambda old: replace(old, burst=1), by=ADMIN),
        stores.keys.rotate("other", key_id, grace_s=0, by=ADMIN),
        stores.keys.delete("other", key_id, by=ADMIN),
    ):
        assert await missing is None
    assert await entries(stores) == before


async def test_c90_a_deletion_that_waits_for_a_request_is_one_entry(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 1_000)
    hold = await stores.ledger.hold(principal, 10)
    stores.clock.now += 1
    for _ in range(2):
        assert await stores.keys.delete("acme", principal.key_id, by=ADMIN) is False
    for refused in (
        stores.keys.change("acme", principal.key_id, lambda old: replace(old, burst=1), by=ADMIN),
        stores.keys.rotate("acme", principal.key_id, grace_s=0, by=ADMIN),
    ):
        assert await refused is None
    await stores.ledger.settle(hold, record_of(hold, 5))
    assert await stores.keys.delete("acme", principal.key_id, by=ADMIN)
    found = [it.action for it in await entries(stores, target=principal.key_id)]
    assert found == ["key.create", "key.delete"]


async def test_c90_every_change_of_credit_is_an_entry(stores: AnyStores) -> None:
    await stores.credits.grant("acme", "invoice-7", 25 * 10**9, "November", by=ADMIN)
    for kind, amount, generation in (("adjustment", -5, None), ("refund", 3, "5g0DOGidSaW4fTg")):
        stores.clock.now += 1
        entry = CreditEntry(
            id=f"{kind}-1",
            workspace_id="acme",
            kind=kind,  # type: ignore[arg-type]
            amount_nano_usd=amount * 10**9,
            note="",
            created_s=0,
            generation_id=generation,
        )
        assert await stores.credits.enter(entry, by=TESTER)
    found = [it for it in await entries(stores, "acme") if it.action != "workspace.create"]
    assert [(it.action, it.actor, it.target, it.before, it.after) for it in found] == [
        ("credit.grant", ADMIN, "invoice-7", {}, {"amount": "25", "note": "November"}),
        ("credit.adjustment", TESTER, "adjustment-1", {}, {"amount": "-5"}),
        (
            "credit.refund",
            TESTER,
            "refund-1",
            {},
            {"amount": "3", "generation_id": "gen-5g0DOGidSaW4fTg"},
        ),
    ]


async def test_c90_every_change_of_a_workspace_is_an_entry(stores: AnyStores) -> None:
    workspaces = workspaces_of(stores)
    settings = WorkspaceSettings(budget_nano_usd=300 * 10**9)
    await workspaces.create("acme", settings, by=ADMIN)
    assert await workspaces.create("acme", settings, by=ADMIN) is None
    for pauses in (True, True):
        stores.clock.now += 1
        await workspaces.change("acme", lambda it: replace(it, pause_at_budget=pauses), by=ADMIN)  # noqa: B023 - called at once
    for locked in (True, True, False):
        stores.clock.now += 1
        await workspaces.set_locked("acme", locked=locked, by=TESTER)
    assert [(it.action, it.actor, it.before, it.after) for it in await entries(stores, "acme")] == [
        ("workspace.create", ADMIN, {}, {"budget": "300", "pause_at_budget": "false"}),
        ("workspace.change", ADMIN, {"pause_at_budget": "false"}, {"pause_at_budget": "true"}),
        ("workspace.lock", TESTER, {"locked": "false"}, {"locked": "true"}),
        ("workspace.unlock", TESTER, {"locked": "true"}, {"locked": "false"}),
    ]


async def test_c90_what_maintenance_changes_is_the_sweepers(dynamo: DynamoStores) -> None:
    await dynamo.workspaces.create("acme", WorkspaceSettings(), by=ADMIN)
    for paused in (True, True, False):
        dynamo.clock.now += 1
        await dynamo.workspaces.set_paused("acme", paused=paused)
    dynamo.clock.now += 1
    await dynamo.workspaces.grow("acme")
    assert [(it.action, it.before, it.after) for it in await entries(dynamo, actor="sweeper")] == [
        ("workspace.pause", {"paused": "false"}, {"paused": "true"}),
        ("workspace.resume", {"paused": "true"}, {"paused": "false"}),
        ("workspace.grow", {"shards": "1"}, {"shards": "4"}),
    ]
    assert {it.actor for it in await entries(dynamo, actor="sweeper")} == {SWEEPER}


async def test_c90_a_catalog_moves_with_its_entry_or_not_at_all(dynamo: DynamoStores) -> None:
    signed = Signature(by="arn:aws:sts::1:assumed-role/publish/ci", at_s=1)
    first = publish_to_all(None, "a" * 64, signed)
    entry = an_entry()
    await dynamo.publications.move(first, entry)
    with pytest.raises(RequestError):
        await dynamo.publications.move(publish_to_all(None, "b" * 64, signed), an_entry())
    with pytest.raises(GatewayError):
        await dynamo.publications.move(publish_canary(first, "b" * 64, 5, signed), entry)
    assert [it.revision for it in await dynamo.publications.history()] == [1]
    assert list(await entries(dynamo)) == [entry]
    assert await entries(dynamo, "acme") == ()


async def test_c90_no_row_of_the_log_is_written_twice(dynamo: DynamoStores) -> None:
    entry = replace(an_entry(), workspace_id="acme")
    puts = entry_puts(dynamo.tables.core, entry)
    assert len(puts) == 2
    await dynamo.client.call("TransactWriteItems", {"TransactItems": puts})
    for put in puts:
        with pytest.raises(TransactionCancelled):
            await dynamo.client.call("TransactWriteItems", {"TransactItems": [put]})
    assert not any("ttl" in put["Put"]["Item"] for put in json.loads(json.dumps(puts)))


async def test_c90_a_workspace_sees_its_own_entries_and_lists_are_filtered(
    stores: AnyStores,
) -> None:
    await stores.keys.create(KEY, by=ADMIN)
    stores.clock.now += 10
    theirs = await stores.keys.create(replace(KEY, workspace_id="other"), by=TESTER)
    assert [it.workspace_id for it in await entries(stores)] == ["acme", "other"]
    assert [it.actor for it in await entries(stores, "acme")] == [ADMIN]
    for wanted in ({"actor": ADMIN.id}, {"actor": "admin"}):
        assert [it.actor for it in await entries(stores, None, **wanted)] == [ADMIN]
    assert await entries(stores, "other", actor="admin") == ()
    assert len(await entries(stores, target="search")) == 2
    [found] = await entries(stores, target=theirs.summary.id)
    since = AuditFilter(since_s=found.at_ms // 1000, until_s=found.at_ms // 1000 + 1)
    assert (await stores.audit_log.page(None, since, limit=9)).found == (found,)
    until = AuditFilter(since_s=0, until_s=found.at_ms // 1000)
    page = await stores.audit_log.page("acme", until, limit=9)
    assert [it.workspace_id for it in page.found] == ["acme"]


@pytest.mark.parametrize("workspace_id", ["acme", None])
async def test_c90_a_page_of_many_queries_has_every_entry(
    dynamo: DynamoStores, workspace_id: str | None
) -> None:
    # One query reads 200 rows, and one transaction writes 100.
    made = [replace(an_entry(), workspace_id="acme") for _ in range(250)]
    for start in range(0, len(made), 50):
        puts = [
            put for it in made[start : start + 50] for put in entry_puts(dynamo.tables.core, it)
        ]
        await dynamo.client.call("TransactWriteItems", {"TransactItems": puts})
    assert {it.id for it in await entries(dynamo, workspace_id)} == {it.id for it in made}


async def test_c90_a_renaming_is_found_by_both_names(stores: AnyStores) -> None:
    created = await stores.keys.create(KEY, by=ADMIN)
    for name in ("second", "third"):
        stores.clock.now += 1
        renamed = {"label": name}
        await stores.keys.change(
            "acme",
            created.summary.id,
            lambda old: replace(old, **renamed),  # noqa: B023 - called at once
            by=ADMIN,
        )
    for name, actions in (("search", 2), ("second", 2), ("third", 1)):
        assert len(await entries(stores, "acme", target=name)) == actions


@pytest.mark.parametrize("workspace_id", ["acme", None])
async def test_c90_pages_lead_through_all_entries_of_all_months(
    stores: AnyStores, workspace_id: str | None
) -> None:
    stores.clock.now -= 700 * DAY_S
    first_s = int(stores.clock.now)
    for number in range(6):
        await stores.keys.create(replace(KEY, label=f"{number}"), by=ADMIN)
        # 350 days at first: months without any entry lie between.
        stores.clock.now += 350 * DAY_S if number < 2 else 0.5
    wanted = AuditFilter(since_s=first_s, until_s=int(stores.clock.now) + 1)
    found: list[str | None] = []
    cursor: str | None = None
    for _ in range(20):
        page = await stores.audit_log.page(workspace_id, wanted, limit=2, before=cursor)
        assert len(page.found) <= 2
        found += [entry.target_name for entry in page.found]
        cursor = page.next
        if cursor is None:
            break
    assert found == ["5", "4", "3", "2", "1", "0"]
    with pytest.raises(RequestError):
        await stores.audit_log.page(workspace_id, wanted, limit=2, before="no cursor")
