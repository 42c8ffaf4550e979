"""A covered hold is topped up while its answer streams; refused, the answer ends with `length`.

Keeps C61.
"""

import pytest
from msgspec.structs import replace

from tests.gateways import house
from tests.scripted import Scripted, answers

LONG = ["x" * 1_000] * 60


@pytest.mark.parametrize(("funds", "finish"), [(10**10, "stop"), (200_000_000, "length")])
async def test_c61_a_covered_answer_goes_on_as_long_as_there_is_credit(
    funds: int, finish: str
) -> None:
    home = await house(near=Scripted(answers(*LONG)), funds_nano_usd=funds)
    home.gateway = replace(home.gateway, admission="covered")

    await home.serve()

    record = home.record
    assert (record.outcome, record.finish) == ("ok", finish)
    assert home.trace.count("top-up") >= 1
    if finish == "length":
        assert 0 < record.cost_nano_usd <= funds
        assert home.stores.books.wallets["acme"].available >= 0


async def test_a_positive_answer_is_delivered_whole_and_never_topped_up() -> None:
    home = await house(near=Scripted(answers(*LONG)), funds_nano_usd=200_000_000)

    await home.serve()

    assert home.record.finish == "stop"
    assert "top-up" not in home.trace
