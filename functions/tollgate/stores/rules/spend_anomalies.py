"""Finds keys, teams and models whose cost on a day is far above their usual daily cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from tollgate.core.money.amounts import NANO_USD_PER_USD
from tollgate.core.records.activity import TEAM_LABEL, ActivityRow

# Number of preceding days that are searched for days with usage; only the latest of those count.
USUAL_WITHIN_DAYS: Final = 28
_USUAL_DAYS: Final = 14
# With fewer days of usage, a subject has no usual daily cost.
_USUAL_DAYS_MIN: Final = 7
_TIMES: Final = 3
# A day that costs no more than this is never an event, however low the usual cost.
_FLOOR_NANO_USD: Final = 10 * NANO_USD_PER_USD
# The transaction that closes a day has at most 100 items, and each event takes two of them.
_EVENTS_MAX: Final = 40


class SpendSubject(Struct, frozen=True, kw_only=True):
    """A key, team or model."""

    kind: Literal["key", "team", "model"]
    id: str


class SpendAnomaly(Struct, frozen=True, kw_only=True):
    """A day whose cost is far above the subject's usual cost, as shown in an audit entry."""

    kind: Literal["key", "team", "model"]
    day: str
    cost_nano_usd: int
    usual_day_nano_usd: int
    """The median cost of the last days with usage before this day."""


def find_costly(rows: Iterable[ActivityRow]) -> dict[SpendSubject, int]:
    """Return one day's cost of each subject that cost more than the floor."""
    costs = add_by_subject(rows)
    return {subject: cost for subject, cost in costs.items() if cost > _FLOOR_NANO_USD}


def add_by_subject(rows: Iterable[ActivityRow]) -> dict[SpendSubject, int]:
    """Return the cost of each key, team and model in the rows of one day."""
    costs: dict[SpendSubject, int] = {}
    for row in rows:
        for subject in _subjects_of(row):
            costs[subject] = costs.get(subject, 0) + row.cost_nano_usd
    return costs


def find_anomalies(
    day: str, costly: Mapping[SpendSubject, int], before: Mapping[str, Mapping[SpendSubject, int]]
) -> list[tuple[SpendSubject, SpendAnomaly]]:
    """Return the subjects whose cost is more than three times the usual cost, most expensive first.

    `before` has the costs of the preceding days, by day.
    """
    found: list[tuple[SpendSubject, SpendAnomaly]] = []
    for subject, cost in costly.items():
        used = [before[each].get(subject, 0) for each in sorted(before, reverse=True)]
        latest = [each for each in used if each > 0][:_USUAL_DAYS]
        if len(latest) < _USUAL_DAYS_MIN or cost <= _TIMES * (usual := _median(latest)):
            continue
        anomaly = SpendAnomaly(
            kind=subject.kind, day=day, cost_nano_usd=cost, usual_day_nano_usd=usual
        )
        found.append((subject, anomaly))
    found.sort(key=lambda each: -each[1].cost_nano_usd)
    return found[:_EVENTS_MAX]


def _median(amounts: Sequence[int]) -> int:
    # Imported here, because importing `statistics` would add milliseconds to each cold start.
    ordered = sorted(amounts)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


def _subjects_of(row: ActivityRow) -> Iterator[SpendSubject]:
    if row.key_id:
        yield SpendSubject(kind="key", id=row.key_id)
    if team_id := row.labels.get(TEAM_LABEL):
        yield SpendSubject(kind="team", id=team_id)
    if row.model:
        yield SpendSubject(kind="model", id=row.model)
