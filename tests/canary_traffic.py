"""Simulated traffic of a canary, for tests of its terms.

The keys differ in size by a factor of a hundred, in their own error rates and in their speed, and a
key's errors come in bursts. So the keys differ far more than chance within one key would explain.
"""

from collections.abc import Mapping
from random import Random

from msgspec import Struct

from tollgate.core.routing.canary import LOOK_TIMES_S, Figure, Look, Terms
from tollgate.core.routing.publication import Publication
from tollgate.stores.routing.canary_looks import BEFORE_S, CanaryKey, Traffic, look_at

EVERY_FIGURE: Mapping[Figure, float] = {
    "errors": 0,
    "refusals": 0,
    "first_token_p95": 0,
    "cost": 0,
}


class Fleet(Struct, frozen=True, kw_only=True):
    """The keys of a gateway, and the regression that its candidate brings."""

    keys: int
    percent: int
    requests_an_hour: float
    """Requests of a typical key."""
    more_errors_percent: float = 0
    """Percentage points that the candidate adds to the errors of each key."""
    slower_percent: float = 0
    dearer_percent: float = 0


class SimulatedKey:
    """A key whose traffic grows from look to look."""

    def __init__(self, fleet: Fleet, random: Random, *, on_candidate: bool) -> None:
        self.traffic = CanaryKey(on_candidate=on_candidate, before=Traffic(), since=Traffic())
        self._random = random
        self._an_hour = fleet.requests_an_hour * random.lognormvariate(0, 1)
        self._error_rate = random.betavariate(0.6, 20)
        self._speed = random.lognormvariate(6.5, 0.4)
        self._cost = random.lognormvariate(14, 0.5)
        self._add(self.traffic.before, BEFORE_S)
        if on_candidate:
            self._error_rate += fleet.more_errors_percent / 100
            self._speed *= 1 + fleet.slower_percent / 100
            self._cost *= 1 + fleet.dearer_percent / 100

    def pass_time(self, seconds: float) -> None:
        """Add the requests of a time."""
        self._add(self.traffic.since, seconds)

    def _add(self, traffic: Traffic, seconds: float) -> None:
        random = self._random
        count = round(self._an_hour * seconds / 3600 + random.random() - 0.5)
        if count <= 0:
            return
        # Bursts of errors and the quiet times between them have the mean of the key's rate.
        errors = sum(
            round(random.gauss(mean, mean**0.5))
            for mean in (
                count / 8 * self._error_rate * random.choice((0.2, 0.2, 2.6)) for _ in range(8)
            )
        )
        errors = min(count, max(0, errors))
        traffic.requests += count
        traffic.errors += errors
        traffic.answers += count - errors
        traffic.refusals += round(max(0.0, random.gauss(count * 0.004, (count * 0.004) ** 0.5)))
        traffic.cost_nano_usd += round((count - errors) * self._cost * random.uniform(0.8, 1.2))
        traffic.first_token_ms += [
            round(self._speed * random.lognormvariate(0, 0.3)) for _ in range(min(count, 8))
        ]


def run_canary(fleet: Fleet, terms: Terms, seed: int, *, looks: int) -> Look | None:
    """Return the look that takes a simulated candidate back; None if none does."""
    random = Random(seed)
    tried = max(1, round(fleet.keys * fleet.percent / 100))
    keys = [
        SimulatedKey(fleet, random, on_candidate=number < tried) for number in range(fleet.keys)
    ]
    publication = Publication(
        live="a" * 64,
        candidate=f"{seed:064x}",
        percent=fleet.percent,
        revision=2,
        moved_s=0,
        by="test",
        terms=terms,
    )
    before_s = 0
    for number, at_s in enumerate(LOOK_TIMES_S[:looks], start=1):
        for key in keys:
            key.pass_time(at_s - before_s)
        before_s = at_s
        traffic = [key.traffic for key in keys]
        look = look_at(publication, terms, traffic, number=number, now_s=at_s)
        if look.broken is not None:
            return look
    return None
