"""Keys under administration: changed, rotated, deleted, on everything the stores run on.

Keeps C60, C61, C64, C95.
"""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.stores import TESTER, DynamoStores, MemoryStores, disable, funded_key, record_of
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError, RequestError
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.credit import CreditEntry, EntryKind
from tollgate.stores.rules.key_settings import KeySettings

AnyStores = MemoryStores | DynamoStores
KEY = NewKey(workspace_id="acme", label="test", requests_per_minute=60_000, burst=1000)
HOUR_S = 3600


async def change(stores: AnyStores, key_id: str, **changes: object) -> object:
    return await stores.keys.change(
        "acme", key_id, lambda settings: replace(settings, **changes), by=TESTER
    )


def used(hold: Hold, cost: int, tokens: int) -> GenerationRecord:
    usage = Usage(uncached_input_tokens=tokens - 1, output_tokens=1)
    return replace(record_of(hold, cost), usage=usage)


async def test_c60_keys_are_listed_by_pages(stores: AnyStores) -> None:
    ids = []
    for number in range(5):
        new = replace(KEY, label=f"test {number}")
        ids.append((await stores.keys.create(new, by=TESTER)).summary.id)
        stores.clock.now += 1
    await stores.keys.delete("acme", ids[2], by=TESTER)

    pages = [await stores.keys.list("acme", limit=2)]
    while (after := pages[-1].next) is not None:
        pages.append(await stores.keys.list("acme", after=after, limit=2))

    assert [key.id for page in pages for key in page.found] == [it for it in ids if it != ids[2]]
    assert all(len(page.found) <= 2 for page in pages)
    with pytest.raises(RequestError):
        await stores.keys.list("acme", after="no cursor")


async def test_c95_the_ceiling_of_a_key_is_exact_at_its_next_authentication(
    stores: AnyStores,
) -> None:
    created = await stores.keys.create(replace(KEY, max_cost=Decimal("0.000000001")), by=TESTER)
    assert (await stores.keys.authenticate(created.secret)).cost_max_nano_usd == 1

    for amount, nano_usd in ((Decimal("12.5"), 12_500_000_000), (None, None)):
        await change(stores, created.summary.id, max_cost=amount)
        stores.clock.now += 6
        principal = await stores.keys.authenticate(created.secret)
        assert principal.cost_max_nano_usd == nano_usd


async def test_c60_everything_of_a_key_can_be_changed(stores: AnyStores) -> None:
    created = await stores.keys.create(KEY, by=TESTER)
    settings = KeySettings(
        label="renamed",
        tier="gold",
        models=("test/*",),
        limits_nano_usd={"day": 100, "month": 1000},
        requests_per_minute=30,
        burst=5,
        tokens_per_minute=9_000,
        concurrency=3,
        expires_s=int(stores.clock.now) + HOUR_S,
        labels={"team": "blue", "environment": "ci"},
    )

    shown = await stores.keys.change("acme", created.summary.id, lambda _: settings, by=TESTER)

    assert shown is not None
    for name in settings.__struct_fields__:
        assert getattr(shown, name) == getattr(settings, name), name
    stores.clock.now += 5
    principal = await stores.keys.authenticate(created.secret)
    assert (principal.label, principal.tier, principal.models) == ("renamed", "gold", ("test/*",))
    assert principal.labels == {"team": "blue", "environment": "ci"}
    back = await stores.keys.change(
        "acme", created.summary.id, lambda _: KeySettings(label="test"), by=TESTER
    )
    assert back is not None
    assert (back.tier, back.models, back.labels, back.limits_nano_usd) == (None, None, {}, {})
    assert back.expires_s is None


async def test_c61_a_changed_limit_counts_what_was_spent_and_held_before(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10_000, replace(KEY, limits_nano_usd={"day": 100}))
    hold = await stores.ledger.hold(principal, 40)
    await stores.ledger.settle(hold, record_of(hold, 30))
    held = await stores.ledger.hold(principal, 20)

    for limits, left in (
        ({"day": 60, "total": 200}, {"day": 10, "total": 150}),
        ({"day": 40}, {"day": -10}),
        ({"week": 1000}, {"week": 950}),
        ({}, {}),
    ):
        shown = await stores.keys.change(
            "acme",
            principal.key_id,
            lambda s, limits=limits: replace(s, limits_nano_usd=limits),
            by=TESTER,
        )
        assert shown is not None
        assert (shown.limits_nano_usd, shown.remaining_nano_usd) == (limits, left)
        assert dict(shown.used_nano_usd) == dict.fromkeys(("day", "week", "month", "total"), 30)
    await stores.ledger.settle(held, record_of(held, 20))
    after = await stores.keys.get("acme", principal.key_id)
    assert after is not None
    assert (after.spent_nano_usd, after.used_nano_usd["total"]) == (50, 50)


async def test_c60_disabled_keys_can_be_enabled_again(stores: AnyStores) -> None:
    secret, principal = await funded_key(stores, 100, KEY)
    await disable(stores, principal.key_id)

    with pytest.raises(AccessError):
        await stores.keys.authenticate(secret)
    await change(stores, principal.key_id, disabled=False)

    assert (await stores.keys.authenticate(secret)).key_id == principal.key_id
    assert (await stores.ledger.hold(principal, 1)).key_nano_usd == 1


async def test_c60_a_rotated_key_is_the_same_key_and_its_old_secret_works_for_a_while(
    stores: AnyStores,
) -> None:
    old_secret, principal = await funded_key(stores, 1_000, KEY)
    hold = await stores.ledger.hold(principal, 10)
    await stores.ledger.settle(hold, record_of(hold, 7))

    rotated = await stores.keys.rotate("acme", principal.key_id, grace_s=HOUR_S, by=TESTER)

    assert rotated is not None
    assert (rotated.summary.id, rotated.summary.spent_nano_usd) == (principal.key_id, 7)
    assert rotated.summary.old_secret is not None
    assert rotated.summary.old_secret.last_four == old_secret[-4:]
    assert rotated.summary.old_secret.last_used_s is None
    assert not (await stores.keys.authenticate(rotated.secret)).old_secret
    with_old = await stores.keys.authenticate(old_secret)
    assert with_old.old_secret
    await stores.ledger.hold(with_old, 10)
    shown = await stores.keys.get("acme", principal.key_id)
    assert shown is not None
    assert shown.old_secret is not None
    assert shown.old_secret.last_used_s == int(stores.clock.now)
    stores.clock.now += HOUR_S
    with pytest.raises(AccessError):
        await stores.keys.authenticate(old_secret)
    shown = await stores.keys.get("acme", principal.key_id)
    assert shown is not None
    assert shown.old_secret is None
    await stores.keys.authenticate(rotated.secret)


async def test_c60_a_second_rotation_ends_the_first_secret(stores: AnyStores) -> None:
    first, principal = await funded_key(stores, 1_000, KEY)
    second = await stores.keys.rotate("acme", principal.key_id, grace_s=HOUR_S, by=TESTER)
    third = await stores.keys.rotate("acme", principal.key_id, grace_s=HOUR_S, by=TESTER)
    assert second is not None
    assert third is not None
    stores.clock.now += 5

    for secret in (second.secret, third.secret):
        await stores.keys.authenticate(secret)
    with pytest.raises(AccessError):
        await stores.keys.authenticate(first)
    await disable(stores, principal.key_id)
    stores.clock.now += 5
    for secret in (second.secret, third.secret):
        with pytest.raises(AccessError):
            await stores.keys.authenticate(secret)


async def test_c60_a_deleted_key_is_refused_at_once_and_gone_when_nothing_runs(
    stores: AnyStores,
) -> None:
    secret, principal = await funded_key(stores, 1_000, KEY)
    hold = await stores.ledger.hold(principal, 10)

    assert await stores.keys.delete("acme", principal.key_id, by=TESTER) is False
    with pytest.raises(AccessError):
        await stores.keys.authenticate(secret)
    with pytest.raises(GatewayError):
        await stores.ledger.hold(principal, 1)
    await stores.ledger.settle(hold, record_of(hold, 4))

    assert await stores.keys.delete("acme", principal.key_id, by=TESTER) is True
    assert await stores.keys.get("acme", principal.key_id) is None
    assert (await stores.keys.list("acme")).found == ()
    assert (await stores.credits.balance("acme")).spent_nano_usd == 4
    assert await stores.keys.delete("acme", "ghost", by=TESTER) is None
    with pytest.raises(GatewayError):
        await stores.ledger.hold(principal, 1)


async def test_c61_tokens_per_minute_are_taken_given_back_and_start_anew(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10_000, replace(KEY, tokens_per_minute=100))

    first = await stores.ledger.hold(principal, 1, tokens=70)
    second = await stores.ledger.hold(principal, 1, tokens=70)
    with pytest.raises(AccessError) as raised:
        await stores.ledger.hold(principal, 1, tokens=70)

    assert (first.key_tokens, second.key_tokens) == (70, 30)
    assert first.token_limit is not None
    assert (first.token_limit.limit, first.token_limit.remaining) == (100, 30)
    assert first.token_limit.reset_s == 59.0
    assert raised.value.code is ErrorCode.RATE_LIMIT_EXCEEDED
    assert raised.value.retry_after_s == 59.0
    await stores.ledger.settle(first, used(first, 1, tokens=20))
    third = await stores.ledger.hold(principal, 1, tokens=70)
    assert third.key_tokens == 50
    stores.clock.now += 59
    assert (await stores.ledger.hold(principal, 1, tokens=70)).key_tokens == 70


async def test_c61_a_covered_hold_takes_the_whole_amount_or_nothing(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 100, replace(KEY, limits_nano_usd={"day": 90}))

    with pytest.raises(LedgerError) as short_wallet:
        await stores.ledger.hold(principal, 101, covered=True)
    with pytest.raises(LedgerError) as short_key:
        await stores.ledger.hold(principal, 95, covered=True)
    hold = await stores.ledger.hold(principal, 60, covered=True)
    more = await stores.ledger.top_up(hold, 20)
    with pytest.raises(LedgerError) as short:
        await stores.ledger.top_up(more, 20)

    assert short_wallet.value.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert short_key.value.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert short.value.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert (more.wallet_nano_usd, more.key_nano_usd) == (80, 80)
    # Settling what was held before the top-up finds what is really held.
    await stores.ledger.settle(hold, record_of(hold, 75))
    balance = await stores.credits.balance("acme")
    assert (balance.available_nano_usd, balance.held_nano_usd, balance.spent_nano_usd) == (
        25,
        0,
        75,
    )
    with pytest.raises(LedgerError) as broke:
        await stores.ledger.hold(principal, 26, covered=True)
    assert broke.value.code in (ErrorCode.INSUFFICIENT_CREDITS, ErrorCode.KEY_LIMIT_EXCEEDED)


async def test_c61_a_key_disabled_or_a_workspace_locked_in_flight_gets_no_more(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 1_000, KEY)
    hold = await stores.ledger.hold(principal, 10, covered=True)
    another = await stores.ledger.hold(principal, 10, covered=True)
    await disable(stores, principal.key_id)
    with pytest.raises(AccessError) as refused:
        await stores.ledger.top_up(another, 10)
    await change(stores, principal.key_id, disabled=False)
    await stores.lock("acme")
    with pytest.raises(AccessError) as locked:
        await stores.ledger.top_up(hold, 10)

    assert refused.value.code is ErrorCode.INVALID_API_KEY
    assert locked.value.code is ErrorCode.WORKSPACE_LOCKED
    for held in (hold, another):
        await stores.ledger.settle(held, record_of(held, 9))
    balance = await stores.credits.balance("acme")
    assert (balance.held_nano_usd, balance.spent_nano_usd) == (0, 18)


@pytest.mark.parametrize(
    "bad",
    [
        {"burst": 0},
        {"requests_per_minute": 0},
        {"tokens_per_minute": 0},
        {"concurrency": -1},
        {"limits_nano_usd": {"day": 0}},
    ],
)
def test_limits_and_rates_are_positive(bad: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        replace(KEY, **bad)


# Credit.


async def test_c64_entries_are_listed_latest_first_and_never_change(stores: AnyStores) -> None:
    def entry(id_: str, kind: EntryKind, amount: int) -> CreditEntry:
        return CreditEntry(
            id=id_,
            workspace_id="acme",
            kind=kind,
            amount_nano_usd=amount,
            note="n",
            created_s=int(stores.clock.now),
        )

    written = [
        entry("g1", "grant", 100),
        entry("a1", "adjustment", -30),
        entry("r1", "refund", 5),
    ]
    for one in written:
        assert await stores.credits.enter(one, by=TESTER)
        assert not await stores.credits.enter(replace(one, amount_nano_usd=77), by=TESTER)
        assert await stores.credits.entry("acme", one.id) == one
        stores.clock.now += 1
    with pytest.raises(RequestError):
        await stores.credits.enter(entry("a2", "adjustment", -76), by=TESTER)
    assert await stores.credits.entry("acme", "a2") is None

    first = await stores.credits.entries("acme", limit=2)
    assert first.next is not None
    second = await stores.credits.entries("acme", after=first.next, limit=2)
    assert [*first.found, *second.found] == written[::-1]
    balance = await stores.credits.balance("acme")
    assert (balance.granted_nano_usd, balance.available_nano_usd) == (75, 75)


async def test_c62_one_answer_passes_a_limit_by_what_was_missing_when_it_began(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10_000, replace(KEY, limits_nano_usd={"day": 100}))
    first = await stores.ledger.hold(principal, 90)
    await stores.ledger.settle(first, record_of(first, 90))
    with pytest.raises(LedgerError):
        await stores.ledger.hold(principal, 60, covered=True)

    last = await stores.ledger.hold(principal, 60)
    with pytest.raises(LedgerError) as beside:
        await stores.ledger.hold(principal, 1)
    await stores.ledger.settle(last, record_of(last, 60))
    with pytest.raises(LedgerError) as later:
        await stores.ledger.hold(principal, 1)

    assert beside.value.code == later.value.code == ErrorCode.KEY_LIMIT_EXCEEDED
    shown = await stores.keys.get("acme", principal.key_id)
    assert shown is not None
    assert (shown.used_nano_usd["day"], shown.remaining_nano_usd) == (150, {"day": -50})
