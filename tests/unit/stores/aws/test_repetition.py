"""What is sent again while the store refuses, and what is not.

Keeps C64.
"""

import pytest

from tests.stores import HandClock
from tollgate.aws.failures import CorruptItem, StoreUnavailable, repeat_while_refused


class Writes:
    """Writes that fail in turn, then land."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.count = 0

    async def __call__(self) -> str:
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        return "landed"


def refused() -> StoreUnavailable:
    return StoreUnavailable("throttled", maybe_applied=False)


async def test_a_write_that_is_refused_is_sent_again() -> None:
    writes = Writes(refused(), refused())
    assert await repeat_while_refused(writes, HandClock(), jitter=lambda: 1.0) == "landed"


@pytest.mark.parametrize(
    "failure",
    [
        StoreUnavailable("timed out", maybe_applied=True),
        CorruptItem("", ValueError()),
    ],
)
async def test_a_write_that_may_have_landed_or_finds_a_corrupt_item_is_sent_once(
    failure: Exception,
) -> None:
    writes = Writes(failure)
    with pytest.raises(type(failure)):
        await repeat_while_refused(writes, HandClock(), jitter=lambda: 1.0)
    assert writes.count == 1


async def test_a_write_that_may_land_twice_is_sent_again_after_silence() -> None:
    writes = Writes(StoreUnavailable("timed out", maybe_applied=True), refused())
    repeated = repeat_while_refused(writes, HandClock(), jitter=lambda: 1.0, is_idempotent=True)
    assert await repeated == "landed"


async def test_a_store_that_goes_on_refusing_is_given_up_within_three_seconds() -> None:
    clock = HandClock()
    began_s = clock.now
    with pytest.raises(StoreUnavailable):
        await repeat_while_refused(Writes(*(refused() for _ in range(99))), clock, jitter=lambda: 1)
    assert 2.0 < clock.now - began_s <= 3.0
