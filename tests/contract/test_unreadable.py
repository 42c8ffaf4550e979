"""A corrupt item is reported by its key, and stops only what needs it.

Keeps C60, C62, C64, C66, C67.
"""

import base64
import json
import zlib
from collections.abc import Awaitable

import pytest

from tests.contract.test_slices import ACME, settle, teamed
from tests.contract.test_workspaces import Inbox, maintenance, percents
from tests.stores import TESTER, DynamoStores, funded_key, record_of
from tollgate.aws.attributes import Item, number, string
from tollgate.core.clock import DAY_S
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.principal import Principal
from tollgate.core.records.activity import GenerationFilter
from tollgate.core.routing.endpoint_status import CooldownPolicy
from tollgate.stores.aws.tables import (
    cooldown_key,
    generation_key,
    get_item,
    key_pointer_key,
    key_state_key,
    level_state_key,
    secret_key,
    wallet_key,
    workspace_key,
)
from tollgate.stores.keys.secret import secret_hash
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.stores.ports.base import Hold
from tollgate.stores.routing.cooldowns import DynamoCooldownStore
from tollgate.stores.rules.level_settings import LevelSettings
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

OTHER = NewKey(workspace_id="other", label="other", requests_per_minute=6000, burst=1000)


async def damage(stores: DynamoStores, table: str, key: Item, **attributes: object) -> str:
    """Overwrite attributes of an item, or remove those that are None; the item's name."""
    item = await get_item(stores.client, table, key)
    assert item is not None
    item.update(attributes)  # type: ignore[arg-type]
    kept = {name: value for name, value in item.items() if value is not None}
    await stores.client.call("PutItem", {"TableName": table, "Item": kept})
    return f"{key['pk']['S']} {key['sk']['S']}"


async def spend(stores: DynamoStores, principal: Principal) -> Hold:
    hold = await stores.ledger.hold(principal, 10)
    await stores.ledger.settle(hold, record_of(hold, 10))
    return hold


async def refusal_of(call: Awaitable[object]) -> str:
    with pytest.raises(LedgerError) as raised:
        await call
    assert raised.value.code is ErrorCode.SERVICE_UNAVAILABLE
    return raised.value.message


async def test_c62_a_key_whose_secrets_row_makes_no_sense_is_refused_by_name(
    dynamo: DynamoStores,
) -> None:
    secret, _ = await funded_key(dynamo, 100)
    other, principal = await funded_key(dynamo, 100, OTHER)
    await dynamo.clock.sleep(5)
    name = await damage(
        dynamo, dynamo.tables.core, secret_key(secret_hash(secret)), n=string("many")
    )
    assert name in await refusal_of(dynamo.keys.authenticate(secret))
    assert await dynamo.keys.authenticate(other) == principal


@pytest.mark.parametrize("what", ["wallet", "key"])
async def test_c62_money_that_makes_no_sense_is_not_spent_and_stops_no_others(
    dynamo: DynamoStores, what: str
) -> None:
    _, principal = await funded_key(dynamo, 100)
    _, other = await funded_key(dynamo, 100, OTHER)
    key = wallet_key("acme", 0) if what == "wallet" else key_state_key(principal.key_id)
    name = await damage(
        dynamo, dynamo.tables.ledger, key, **{"av" if what == "wallet" else "ld": {"N": "1.5"}}
    )
    assert name in await refusal_of(dynamo.ledger.hold(principal, 10))
    await spend(dynamo, other)
    if what == "wallet":
        assert name in await refusal_of(dynamo.credits.balance("acme"))
    else:
        assert (await dynamo.credits.balance("acme")).held_nano_usd == 0


async def test_c60_a_list_of_keys_leaves_one_out_and_says_so(
    dynamo: DynamoStores, caplog: pytest.LogCaptureFixture
) -> None:
    _, first = await funded_key(dynamo, 100)
    dynamo.clock.now += 1
    good = await dynamo.keys.create(NewKey(workspace_id="acme", label="good"), by=TESTER)
    key = key_pointer_key("acme", first.key_id)
    name = await damage(dynamo, dynamo.tables.core, key, label=None)

    page = await dynamo.keys.list("acme", limit=1)
    rest = await dynamo.keys.list("acme", after=page.next, limit=1)

    assert (page.found, page.unreadable) == ((), (name,))
    assert [it.id for it in rest.found] == [good.summary.id]
    assert rest.unreadable == ()
    assert name in caplog.text
    assert name in await refusal_of(dynamo.keys.get("acme", first.key_id))
    # It can be refused for good all the same.
    assert await dynamo.keys.delete("acme", first.key_id, by=TESTER)


async def test_a_list_of_workspaces_leaves_one_out_and_says_so(dynamo: DynamoStores) -> None:
    for id_ in ("acme", "other"):
        await dynamo.workspaces.create(id_, WorkspaceSettings(), by=TESTER)
    name = await damage(dynamo, dynamo.tables.core, workspace_key("acme"), n=string("x"))
    page = await dynamo.workspaces.list()
    assert ([it.id for it in page.found], page.unreadable) == (["other"], (name,))
    assert name in await refusal_of(dynamo.workspaces.get("acme"))


async def test_c66_c67_a_record_is_named_left_out_of_lists_and_keeps_its_day_open(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 100)
    _, other = await funded_key(dynamo, 100, OTHER)
    good, bad = await spend(dynamo, principal), await spend(dynamo, principal)
    await spend(dynamo, other)
    name = await damage(
        dynamo, dynamo.tables.generations, generation_key("acme", bad.id), z={"B": "bm9uc2Vuc2U="}
    )
    day_s = int(dynamo.clock.now) // DAY_S * DAY_S
    wanted = GenerationFilter(since_s=day_s, until_s=day_s + DAY_S)

    assert name in await refusal_of(dynamo.generations.get("acme", bad.id))
    page = await dynamo.generations.page("acme", wanted, limit=10)
    assert ([it.id for it in page.found], page.unreadable) == ([good.id], (name,))
    live = await dynamo.activity.activity("acme", day_s, day_s + DAY_S)
    assert (sum(row.requests for row in live.rows), live.partial_days) == (1, ("2026-11-21",))

    dynamo.clock.now += 2 * DAY_S
    assert "acme 2026-11-21" in await refusal_of(dynamo.activity.close_due())
    marks = await refusal_of(dynamo.activity.close_due())
    assert "other" not in marks


async def test_c66_a_record_of_a_later_version_is_read_as_far_as_this_one_goes(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 100)
    hold = await spend(dynamo, principal)
    key = generation_key("acme", hold.id)
    item = await get_item(dynamo.client, dynamo.tables.generations, key)
    assert item is not None
    fields = json.loads(zlib.decompress(base64.b64decode(item["z"]["B"])))
    for part in (fields, fields["trace"], fields["usage"]):
        part["of_next_year"] = 1
    later = base64.b64encode(zlib.compress(json.dumps(fields).encode())).decode()
    await damage(dynamo, dynamo.tables.generations, key, z={"B": later})
    assert await dynamo.generations.get("acme", hold.id) == record_of(hold, 10)


@pytest.mark.parametrize("what", ["record", "wallet", "key", "id"])
async def test_the_sweeper_expires_what_it_can(
    dynamo: DynamoStores, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, principal = await funded_key(dynamo, 100)
    _, other = await funded_key(dynamo, 100, OTHER)
    bad, good = await dynamo.ledger.hold(principal, 10), await dynamo.ledger.hold(other, 10)
    match what:
        case "record":
            await dynamo.generations.put_if_absent(record_of(bad, 10))
            name = await damage(
                dynamo, dynamo.tables.generations, generation_key("acme", bad.id), z=None
            )
        case "wallet":
            key = wallet_key("acme", 0)
            name = await damage(dynamo, dynamo.tables.ledger, key, h={"M": {bad.id: string("ten")}})
        case "key":
            key = key_state_key(principal.key_id)
            name = await damage(dynamo, dynamo.tables.ledger, key, ws=None)
        case _:
            key = wallet_key("acme", 0)
            name = await damage(dynamo, dynamo.tables.ledger, key, h={"M": {"x": number(1)}})
    dynamo.clock.now += HOLD_LIFETIME_S + 1

    await dynamo.sweeper.run()

    assert name in caplog.text
    assert (await dynamo.credits.balance("other")).held_nano_usd == 0
    assert good.id != bad.id


async def test_the_audit_names_what_it_cannot_read_and_compares_the_rest(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 100)
    await funded_key(dynamo, 100, OTHER)
    await spend(dynamo, principal)
    name = await damage(dynamo, dynamo.tables.ledger, wallet_key("acme", 0), sp=None)
    await damage(dynamo, dynamo.tables.ledger, wallet_key("other", 0), av=number(99))

    differences = await dynamo.audit.run()

    assert [(it.workspace_id, it.invariant) for it in differences] == [
        ("acme", f"I0 every item can be read: {name}"),
        ("other", "I1 available + held + spent"),
        ("other", "I1 available + held + spent"),
    ]


async def test_c51_an_endpoint_whose_failures_make_no_sense_does_not_rest(
    dynamo: DynamoStores,
) -> None:
    policy = CooldownPolicy(after_failures=1)
    for endpoint in ("near", "far"):
        await dynamo.cooldowns.count_failure(endpoint, policy)
    await damage(dynamo, dynamo.tables.core, cooldown_key("near"), l=string("x"))
    another = DynamoCooldownStore(dynamo.client, dynamo.tables.core, dynamo.clock)
    assert set(await another.find_resting(["near", "far"], policy)) == {"far"}


async def test_the_audit_sees_a_slice_that_is_gone_and_parts_that_are_not_the_limit(
    dynamo: DynamoStores,
) -> None:
    await teamed(dynamo, LevelSettings(limits_nano_usd={"day": 400}))
    assert await dynamo.audit.run() == []

    third = level_state_key("team", ACME, "search", 2)
    await damage(dynamo, dynamo.tables.ledger, third, ld=number(90))
    [wrong] = await dynamo.audit.run()
    assert wrong.invariant == f"I6 limit of T#{ACME}#search, day"
    assert (wrong.expected_nano_usd, wrong.found_nano_usd) == (400, 390)

    await dynamo.forget("ledger", f"T#{ACME}#search#2", "S")
    gone, less = await dynamo.audit.run()
    assert gone.invariant == f"I6 slices of T#{ACME}#search"
    assert (gone.expected_nano_usd, gone.found_nano_usd) == (4, 3)
    assert less.found_nano_usd == 300


async def test_a_slice_that_is_gone_holds_up_no_budget_of_its_workspace(
    dynamo: DynamoStores,
) -> None:
    _, principal = await teamed(dynamo, LevelSettings(limits_nano_usd={"day": 400}))
    await dynamo.workspaces.change(ACME, lambda _: WorkspaceSettings(budget_nano_usd=10), by=TESTER)
    await settle(dynamo, await dynamo.ledger.hold(principal, 20), 20)
    await dynamo.forget("ledger", f"T#{ACME}#search#2", "S")

    inbox = Inbox()
    report = await maintenance(dynamo, inbox).run()

    assert (report.failed, report.alerts) == (1, 4)
    assert percents(inbox) == [50, 75, 90, 100]
