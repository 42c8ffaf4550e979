"""The key's rates in the reply when the ledger refuses. Keeps C63."""

import pytest
from msgspec.structs import replace

from tests.stores import DynamoStores, MemoryStores, disable, funded_key
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.limits import RateLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.stores.ports.administration import NewKey

AnyStores = MemoryStores | DynamoStores
KEY = NewKey(workspace_id="acme", label="test", requests_per_minute=60, burst=10)
SLOW = TierLimits(requests_per_minute=1)


async def refusal_of(
    stores: AnyStores, principal: Principal, tier: TierLimits | None = None
) -> GatewayError:
    with pytest.raises(GatewayError) as raised:
        await stores.ledger.hold(principal, 5, tokens=5, tier=tier)
    return raised.value


@pytest.mark.parametrize(
    ("new", "tier", "left"),
    [
        # Its requests, then its tier's.
        (replace(KEY, burst=2), None, RateLimit(limit=2, remaining=0, reset_s=2.0)),
        (KEY, SLOW, RateLimit(limit=2, remaining=0, reset_s=120.0)),
        # What is refused before its request is counted has left the rate alone.
        (replace(KEY, concurrency=2), None, RateLimit(limit=10, remaining=8, reset_s=2.0)),
        (replace(KEY, tokens_per_minute=10), None, RateLimit(limit=10, remaining=8, reset_s=2.0)),
        (
            replace(KEY, limits_nano_usd={"day": 10}),
            None,
            RateLimit(limit=10, remaining=8, reset_s=2.0),
        ),
    ],
)
async def test_c63_a_key_at_its_limit_is_told_its_rate(
    stores: AnyStores, new: NewKey, tier: TierLimits | None, left: RateLimit
) -> None:
    _, principal = await funded_key(stores, 10**6, new)
    for _ in range(2):
        await stores.ledger.hold(principal, 5, tokens=5, tier=tier)

    assert (await refusal_of(stores, principal, tier)).rate_limit == left


async def test_c63_a_key_out_of_tokens_is_told_when_there_are_more(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, replace(KEY, tokens_per_minute=5))
    await stores.ledger.hold(principal, 5, tokens=5)

    refusal = await refusal_of(stores, principal)

    assert refusal.code is ErrorCode.RATE_LIMIT_EXCEEDED
    assert refusal.token_limit == RateLimit(limit=5, remaining=0, reset_s=59.0)


async def test_c63_a_workspace_without_credit_still_tells_the_keys_rate(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 5, replace(KEY, tokens_per_minute=100))
    await stores.ledger.hold(principal, 5, tokens=5)

    refusal = await refusal_of(stores, principal)

    assert refusal.code is ErrorCode.INSUFFICIENT_CREDITS
    assert refusal.rate_limit == RateLimit(limit=10, remaining=8, reset_s=2.0)
    assert refusal.token_limit is not None


async def test_c60_a_disabled_key_is_told_nothing(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, KEY)
    await disable(stores, principal.key_id)

    refusal = await refusal_of(stores, principal)

    assert refusal.code is ErrorCode.INVALID_API_KEY
    assert (refusal.rate_limit, refusal.token_limit) == (None, None)
