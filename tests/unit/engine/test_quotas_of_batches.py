"""Quotas of a key hold for the lines of its batches.

Keeps C83 and C95.
"""

import pytest

from tests.batches import batch_of, line
from tests.provider_batches import ScriptedBatches, batching_house
from tollgate.stores.ports.administration import NewKey


@pytest.mark.parametrize(
    ("quotas", "is_submitted"),
    [
        ("requests/day=2", False),
        ("tokens/month=1000@acme/*", False),
        ("usd/day=1", True),
        ("requests/day=2@other/*", True),
    ],
)
async def test_c83_c95_lines_that_quotas_count_one_by_one_are_served_by_the_gateway(
    quotas: str, is_submitted: bool
) -> None:
    batches = ScriptedBatches()
    key = NewKey(workspace_id="acme", label="k", quotas=quotas)
    home = await batching_house(batches, key=key)
    works = await batch_of(home, [line(f"n{number}") for number in range(3)])
    # The lines that a quota refuses run on a later day.
    await works.run(time_s=200_000)
    await works.check_once(3)
    assert bool(batches.accepted) == is_submitted
    assert len(works.home.near.requests) == (0 if is_submitted else 3)
