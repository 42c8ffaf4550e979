"""What routing.yaml limits for a tier reaches the ledger with every generation.

Keeps C61.
"""

from decimal import Decimal

import pytest

from tests.gateways import House, house
from tollgate.core.errors import AccessError, ErrorCode, LedgerError
from tollgate.stores.ports.administration import NewKey

FREE = NewKey(workspace_id="acme", label="test", tier="free", requests_per_minute=6000, burst=1000)


async def free_house(**limits: object) -> House:
    return await house(key=FREE, key_tiers={"free": limits})


async def test_c61_requests_beyond_the_tiers_rate_are_refused() -> None:
    home = await free_house(rpm=1)
    first = await home.serve()
    await home.serve()
    assert first.headers["x-ratelimit-limit-requests"] == "2"
    with pytest.raises(AccessError) as refused:
        await home.serve()
    assert refused.value.code is ErrorCode.RATE_LIMIT_EXCEEDED


async def test_c61_what_the_tiers_budget_no_longer_covers_is_refused() -> None:
    home = await free_house(budget={"usd": Decimal("0.00006"), "per": "day"})
    reply = await home.serve()
    assert (reply.status, home.record.cost_nano_usd) == (200, 60_000)
    with pytest.raises(LedgerError) as refused:
        await home.serve()
    assert refused.value.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert "$0.00006 per day" in refused.value.message


async def test_c61_a_tier_without_limits_limits_nothing() -> None:
    home = await free_house(models=("acme/*",))
    for _ in range(3):
        assert (await home.serve()).status == 200
