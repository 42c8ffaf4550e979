"""How long records are kept is a setting, which both who writes and who audits them follow.

Keeps C67.
"""

from contextlib import aclosing

import pytest

from tests.stores import TESTER, HandClock, record_of
from tollgate.core.clock import DAY_S
from tollgate.settings import Settings
from tollgate.stores.aws.tables import generation_key, get_item
from tollgate.stores.ports.administration import NewKey
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.upkeep import wire_upkeep


@pytest.mark.parametrize("days", [30, 90])
async def test_c67_a_record_expires_when_the_setting_says_and_is_audited_until_then(
    moto_url: str, days: int
) -> None:
    clock = HandClock()
    settings = Settings(
        core_table=f"core-{days}",
        ledger_table=f"ledger-{days}",
        generations_table=f"generations-{days}",
        dynamodb_endpoint_url=moto_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        record_days=days,
    )
    async with aclosing(wire_stores(settings, clock)) as stores:
        await stores.create_tables()
        administration = wire_administration(settings, stores, clock)
        await administration.credits.grant("acme", "first", 1_000, "test", by=TESTER)
        key = await administration.keys.create(NewKey(workspace_id="acme", label="one"), by=TESTER)
        principal = await administration.keys.authenticate(key.secret)
        hold = await stores.ledger.hold(principal, 400)
        record = await stores.ledger.settle(hold, record_of(hold, 100))
        item = await get_item(
            stores.client, settings.generations_table, generation_key("acme", hold.id)
        )
        assert item is not None
        assert item["ttl"] == {"N": str(record.created_s + days * DAY_S)}

        async with aclosing(wire_upkeep(settings, stores, clock)) as upkeep:
            assert await upkeep.audit.run() == []
            # No day was closed, so that the sum of what was spent is that of the records it reads.
            clock.now += (days - 1) * DAY_S
            assert await upkeep.audit.run() == []
            clock.now += 2 * DAY_S
            assert await upkeep.audit.run() != []
