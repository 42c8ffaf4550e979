"""The contract of the stores, which memory, ministack and moto keep alike.

Keeps C2, C51, C60, C61, C64, C66.
"""

import pytest
from msgspec.structs import replace

from tests.stores import PREFIX, TESTER, DynamoStores, MemoryStores, disable, funded_key, record_of
from tollgate.core.clock import approximate_duration
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError
from tollgate.core.limits import Period
from tollgate.core.principal import Principal
from tollgate.core.routing.endpoint_status import CooldownPolicy
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.credit import Balance

AnyStores = MemoryStores | DynamoStores


def new_key(**changes: object) -> NewKey:
    new = NewKey(workspace_id="acme", label="test", requests_per_minute=60_000, burst=1000)
    return replace(new, **changes)


async def refused(stores: AnyStores, principal: Principal, amount: int = 1) -> GatewayError:
    """The error of a hold that must not succeed."""
    with pytest.raises(GatewayError) as raised:
        await stores.ledger.hold(principal, amount)
    return raised.value


# Keys.


async def test_c60_a_key_authenticates_by_its_secret_and_shows_only_its_ends(
    stores: AnyStores,
) -> None:
    created = await stores.keys.create(
        new_key(label="ci", tier="gold", models=("test/*",), role="management"), by=TESTER
    )

    principal = await stores.keys.authenticate(created.secret)

    assert principal == Principal(
        key_id=created.summary.id,
        workspace_id="acme",
        role="management",
        label="ci",
        tier="gold",
        models=("test/*",),
    )
    assert created.secret.startswith(PREFIX)
    assert created.summary.prefix == PREFIX
    assert created.summary.last_four == created.secret[-4:]
    assert created.secret not in repr(await stores.keys.list("acme"))


async def test_c2_a_secret_that_is_malformed_or_unknown_is_refused(stores: AnyStores) -> None:
    known = (await stores.keys.create(new_key(), by=TESTER)).secret
    typo = known[:-1] + ("a" if known[-1] != "a" else "b")
    for secret in ("", "sk-other", PREFIX, typo, known + "x", known.upper(), "sk-tg-é" + known[7:]):
        with pytest.raises(AccessError) as raised:
            await stores.keys.authenticate(secret)
        assert raised.value.code is ErrorCode.INVALID_API_KEY


async def test_c2_an_expired_key_is_refused_at_its_second(stores: AnyStores) -> None:
    expires_s = int(stores.clock.now) + 3
    secret, principal = await funded_key(stores, 100, new_key(expires_s=expires_s))

    stores.clock.now = expires_s
    with pytest.raises(AccessError) as raised:
        await stores.keys.authenticate(secret)

    assert raised.value.code is ErrorCode.INVALID_API_KEY
    assert (await refused(stores, principal)).code is ErrorCode.INVALID_API_KEY


async def test_c60_a_disabled_key_holds_nothing_more_and_is_refused(stores: AnyStores) -> None:
    secret, principal = await funded_key(stores, 100)

    summary = await disable(stores, principal.key_id)

    assert summary is not None
    assert summary.disabled
    assert (await refused(stores, principal)).code is ErrorCode.INVALID_API_KEY
    with pytest.raises(AccessError) as raised:
        await stores.keys.authenticate(secret)
    assert raised.value.code is ErrorCode.INVALID_API_KEY
    assert await disable(stores, principal.key_id) == summary


async def test_c60_keys_are_listed_oldest_first_and_only_in_their_workspace(
    stores: AnyStores,
) -> None:
    made = []
    for label in ("one", "two", "three"):
        made.append((await stores.keys.create(new_key(label=label), by=TESTER)).summary)
        stores.clock.now += 1

    assert [key.label for key in (await stores.keys.list("acme")).found] == ["one", "two", "three"]
    found = await stores.keys.get("acme", made[1].id)
    assert found is not None
    assert replace(found, read_s=made[1].read_s) == made[1]
    assert (await stores.keys.list("other")).found == ()
    assert await stores.keys.get("other", made[1].id) is None
    assert await disable(stores, made[1].id, "other") is None
    assert await stores.keys.get("acme", "nothing") is None


async def test_a_hold_of_a_key_that_does_not_exist_is_refused(stores: AnyStores) -> None:
    await stores.credits.grant("acme", "first", 100, "test", by=TESTER)
    stranger = Principal(key_id="ghost", workspace_id="acme", role="inference", label="x")

    assert (await refused(stores, stranger)).code is ErrorCode.INVALID_API_KEY
    assert (await stores.credits.balance("acme")).held_nano_usd == 0


# Credits.


async def test_c64_a_grant_counts_once_for_its_id(stores: AnyStores) -> None:
    assert await stores.credits.grant("acme", "invoice-1", 1_000, "invoice", by=TESTER)
    assert not await stores.credits.grant("acme", "invoice-1", 1_000, "invoice", by=TESTER)
    assert not await stores.credits.grant("acme", "invoice-1", 5, "somebody else", by=TESTER)
    assert await stores.credits.grant("acme", "invoice-2", 10**15, "invoice", by=TESTER)

    assert await stores.credits.balance("acme") == Balance(
        granted_nano_usd=10**15 + 1_000,
        available_nano_usd=10**15 + 1_000,
        held_nano_usd=0,
        spent_nano_usd=0,
    )


async def test_a_grant_must_be_positive(stores: AnyStores) -> None:
    with pytest.raises(ValueError, match="positive"):
        await stores.credits.grant("acme", "invoice-1", 0, "invoice", by=TESTER)


async def test_a_workspace_that_does_not_exist_has_no_money(stores: AnyStores) -> None:
    assert await stores.credits.balance("nobody") == Balance(
        granted_nano_usd=0, available_nano_usd=0, held_nano_usd=0, spent_nano_usd=0
    )


# Holding and settling.


async def test_c64_the_books_are_exact_while_held_and_after(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 1_000)

    hold = await stores.ledger.hold(principal, 400)
    during = await stores.credits.balance("acme")
    standing = await stores.ledger.settle(hold, record_of(hold, 150))
    after = await stores.credits.balance("acme")

    assert (hold.wallet_nano_usd, hold.key_nano_usd) == (400, 400)
    assert (during.available_nano_usd, during.held_nano_usd, during.spent_nano_usd) == (600, 400, 0)
    assert (after.available_nano_usd, after.held_nano_usd, after.spent_nano_usd) == (850, 0, 150)
    assert standing == record_of(hold, 150)
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert (key.spent_nano_usd, key.held_nano_usd) == (150, 0)


async def test_settling_again_changes_nothing_and_the_first_record_stands(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 1_000)
    hold = await stores.ledger.hold(principal, 400)
    first = await stores.ledger.settle(hold, record_of(hold, 150))

    again = await stores.ledger.settle(hold, record_of(hold, 399, "cancelled"))

    assert again == first
    balance = await stores.credits.balance("acme")
    assert (balance.available_nano_usd, balance.spent_nano_usd) == (850, 150)
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert key.spent_nano_usd == 150
    assert await stores.generations.get("acme", hold.id) == first


async def test_a_record_of_another_generation_is_not_settled(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 1_000)
    hold = await stores.ledger.hold(principal, 400)

    with pytest.raises(ValueError, match="does not belong"):
        await stores.ledger.settle(hold, replace(record_of(hold, 1), id="0" * 15))


async def test_c66_a_record_is_seen_only_by_its_workspace(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 1_000)
    hold = await stores.ledger.hold(principal, 400)
    await stores.ledger.settle(hold, record_of(hold, 1))

    assert await stores.generations.get("acme", hold.id) is not None
    assert await stores.generations.get("other", hold.id) is None
    assert await stores.generations.get("acme", "not an id") is None


async def test_a_short_wallet_holds_what_is_left_then_refuses(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 1_000)

    first = await stores.ledger.hold(principal, 900)
    rest = await stores.ledger.hold(principal, 900)
    error = await refused(stores, principal, 900_000_000)

    assert (first.wallet_nano_usd, rest.wallet_nano_usd) == (900, 100)
    assert rest.key_nano_usd == 900
    assert isinstance(error, LedgerError)
    assert error.code is ErrorCode.INSUFFICIENT_CREDITS
    assert "no credit available" in error.message
    assert "tollgate credits add" in error.message


async def test_a_refused_hold_leaves_nothing_held(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 5)
    hold = await stores.ledger.hold(principal, 5)

    await refused(stores, principal, 5)

    assert (await stores.credits.balance("acme")).held_nano_usd == 5
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert key.held_nano_usd == 5
    await stores.ledger.settle(hold, record_of(hold, 0))
    assert (await stores.credits.balance("acme")).available_nano_usd == 5


async def test_a_dearer_answer_is_charged_whole_and_nothing_more_is_admitted(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 100)
    hold = await stores.ledger.hold(principal, 500)

    await stores.ledger.settle(hold, record_of(hold, 450))

    balance = await stores.credits.balance("acme")
    assert (balance.available_nano_usd, balance.spent_nano_usd) == (-350, 450)
    assert (await refused(stores, principal, 0)).code is ErrorCode.INSUFFICIENT_CREDITS


async def test_c61_a_locked_workspace_spends_nothing(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 100)
    await stores.lock("acme")

    assert (await refused(stores, principal)).code is ErrorCode.WORKSPACE_LOCKED
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert key.held_nano_usd == 0


# Limits of a key.


@pytest.mark.parametrize(
    ("period", "until_reset_s"),
    [("day", 41_399), ("week", 41_399 + 86_400), ("month", 41_399 + 9 * 86_400), ("total", None)],
)
async def test_c61_a_limit_holds_for_its_period(
    stores: AnyStores, period: Period, until_reset_s: int | None
) -> None:
    new = new_key(limits_nano_usd={period: 100})
    _, principal = await funded_key(stores, 10_000, new)

    first = await stores.ledger.hold(principal, 70)
    rest = await stores.ledger.hold(principal, 70)
    error = await refused(stores, principal)

    assert (first.key_nano_usd, rest.key_nano_usd, rest.wallet_nano_usd) == (70, 30, 70)
    assert error.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert "$0.0000001" in error.message
    for hold in (first, rest):
        await stores.ledger.settle(hold, record_of(hold, 50))
    assert (await refused(stores, principal)).code is ErrorCode.KEY_LIMIT_EXCEEDED
    if until_reset_s is None:
        stores.clock.now += 400 * 86_400
        assert (await refused(stores, principal)).code is ErrorCode.KEY_LIMIT_EXCEEDED
        return
    assert f"in {approximate_duration(until_reset_s)}." in error.message
    stores.clock.now += until_reset_s - 1
    assert (await refused(stores, principal)).code is ErrorCode.KEY_LIMIT_EXCEEDED
    stores.clock.now += 1
    assert (await stores.ledger.hold(principal, 70)).key_nano_usd == 70


async def test_c61_the_tightest_of_several_limits_decides(stores: AnyStores) -> None:
    new = new_key(limits_nano_usd={"day": 100, "week": 60, "total": 500})
    _, principal = await funded_key(stores, 10_000, new)

    hold = await stores.ledger.hold(principal, 80)
    await stores.ledger.settle(hold, record_of(hold, 25))

    assert hold.key_nano_usd == 60
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert key.remaining_nano_usd == {"day": 75, "week": 35, "total": 475}
    assert key.limits_nano_usd == {"day": 100, "week": 60, "total": 500}


async def test_a_hold_from_before_midnight_is_settled_in_its_own_day(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10_000, new_key(limits_nano_usd={"day": 100}))
    hold = await stores.ledger.hold(principal, 100)

    stores.clock.now += 41_399
    tomorrow = await stores.ledger.hold(principal, 100)
    await stores.ledger.settle(hold, record_of(hold, 10))

    assert tomorrow.key_nano_usd == 100
    assert tomorrow.key_buckets[0] == "b_20261122"
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert key.remaining_nano_usd == {"day": 0}


async def test_c61_requests_per_minute_allow_a_burst_then_one_at_a_time(
    stores: AnyStores,
) -> None:
    new = new_key(requests_per_minute=60, burst=3)
    _, principal = await funded_key(stores, 10_000, new)

    holds = [await stores.ledger.hold(principal, 1) for _ in range(3)]
    error = await refused(stores, principal)

    shown = [hold.rate_limit for hold in holds]
    assert [limit and (limit.limit, limit.remaining, limit.reset_s) for limit in shown] == [
        (3, 2, 1.0),
        (3, 1, 2.0),
        (3, 0, 3.0),
    ]
    assert error.code is ErrorCode.RATE_LIMIT_EXCEEDED
    assert error.retry_after_s == 1.0
    assert "60 requests per minute" in error.message
    stores.clock.now += 0.999
    assert (await refused(stores, principal)).code is ErrorCode.RATE_LIMIT_EXCEEDED
    stores.clock.now += 0.001
    await stores.ledger.hold(principal, 1)
    assert (await refused(stores, principal)).code is ErrorCode.RATE_LIMIT_EXCEEDED
    stores.clock.now += 60
    assert (await stores.ledger.hold(principal, 1)).rate_limit == shown[0]


async def test_c61_a_burst_of_one_spaces_requests(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 100, new_key(requests_per_minute=60, burst=1))

    await stores.ledger.hold(principal, 1)
    assert (await refused(stores, principal)).retry_after_s == 1.0
    stores.clock.now += 1
    await stores.ledger.hold(principal, 1)


async def test_c61_concurrency_is_how_many_holds_a_key_may_have(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 100, new_key(concurrency=2))

    holds = [await stores.ledger.hold(principal, 1) for _ in range(2)]
    error = await refused(stores, principal)
    await stores.ledger.settle(holds[0], record_of(holds[0], 1))

    assert error.code is ErrorCode.RATE_LIMIT_EXCEEDED
    assert error.retry_after_s == 1.0
    await stores.ledger.hold(principal, 1)


# Cooldowns.

POLICY = CooldownPolicy(after_failures=3, within_s=60, rest_s=30)


async def test_c51_an_endpoint_rests_after_repeated_failures(stores: AnyStores) -> None:
    for _ in range(2):
        assert not await stores.cooldowns.count_failure("near/large-1", POLICY)
    assert await stores.cooldowns.find_resting(["near/large-1", "far/L"], POLICY) == {}
    assert await stores.cooldowns.count_failure("near/large-1", POLICY)
    resting = await stores.cooldowns.find_resting(["near/large-1", "far/L"], POLICY)
    assert resting == {"near/large-1": int(stores.clock.now) + 30}


async def test_c51_a_rested_endpoint_that_fails_again_within_the_window_rests_again(
    stores: AnyStores,
) -> None:
    for _ in range(3):
        await stores.cooldowns.count_failure("near/large-1", POLICY)
    stores.clock.now += 31
    await stores.cooldowns.count_failure("near/large-1", POLICY)
    assert "near/large-1" in await stores.cooldowns.find_resting(["near/large-1"], POLICY)


async def test_c51_failures_far_apart_do_not_add_up(stores: AnyStores) -> None:
    for _ in range(5):
        await stores.cooldowns.count_failure("near/large-1", POLICY)
        assert await stores.cooldowns.find_resting(["near/large-1"], POLICY) == {}
        stores.clock.now += 45
