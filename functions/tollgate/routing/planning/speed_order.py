"""Orders the endpoints of a plan by the speeds that the gateway measured."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Final, Literal

from msgspec.structs import replace

from tollgate.core.request import RoutingPreferences
from tollgate.core.routing.endpoint_status import Speed, SpeedPolicy
from tollgate.routing.planning.plan import Attempt, Plan

# Age of figures from which an endpoint is measured again; all figures of a busy endpoint are of two
# windows of half an hour, and so younger.
_OLD_AFTER_S: Final = 3_600
_PERCENT: Final = 100


def fastest_first(
    plan: Plan,
    speeds: Mapping[str, Speed],
    *,
    request_id: str,
    now_s: float,
    resting: Collection[str] = (),
) -> Plan:
    """Return the plan with each model's endpoints sorted by measured speed, if the request or
    its route asks for that.

    `provider.order` takes precedence. Endpoints with too few answers keep their place. If no two
    endpoints can be compared, the plan reports the preference as unmet. A small share of requests,
    drawn by their ids, tries the endpoint with the oldest figures first.
    """
    measure, preferences = plan.speed_sort, plan.trace.preferences or RoutingPreferences()
    if measure is None:
        return plan
    decides = False
    attempts: list[Attempt] = []
    for cell in _cells(plan, preferences.order):
        values = {
            name: value
            for name in {attempt.target.endpoint_id for attempt in cell}
            if (value := _slowness(speeds.get(name), measure, plan.speed_policy)) is not None
        }
        decides = decides or len(values) > 1
        attempts += _sorted_in_place(cell, values)
    explored = None
    if preferences.fallbacks and not preferences.order and _is_drawn(plan.speed_policy, request_id):
        explored = _least_known(attempts, speeds, plan.speed_policy, now_s=now_s, resting=resting)
        attempts.sort(key=lambda attempt: explored not in (None, attempt.target.endpoint_id))
    if not (preferences.fallbacks or preferences.order):
        attempts = attempts[:1]
    single = len(plan.models) == len(plan.attempts)
    unmet = () if decides or single or preferences.sort is None else ("provider.sort",)
    known = {name: speeds[name] for name in sorted(plan.endpoint_ids & speeds.keys())}
    trace = replace(plan.trace, speeds=known, explored=explored)
    return replace(plan, attempts=tuple(attempts), unmet=unmet, trace=trace)


def describe_thin(speed: Speed | None, policy: SpeedPolicy) -> str | None:
    """Return how few answers an endpoint has; None if it has enough to be compared."""
    answers = 0 if speed is None else speed.answers
    if answers >= policy.answers_min:
        return None
    return f"thin: {answers} of {policy.answers_min} samples"


def _cells(plan: Plan, order: Sequence[str]) -> Iterator[Sequence[Attempt]]:
    """Yield the attempts within which speeds decide: a model's, or those of a listed provider."""

    def cell_of(attempt: Attempt) -> tuple[str, str | None]:
        target = attempt.target
        return target.model, target.provider if target.provider in order else None

    for _, cell in groupby(plan.attempts, key=cell_of):
        yield tuple(cell)


def _sorted_in_place(cell: Sequence[Attempt], values: Mapping[str, float]) -> Iterator[Attempt]:
    """Yield the attempts with the measured ones sorted among their own places."""
    measured = [attempt for attempt in cell if attempt.target.endpoint_id in values]
    fastest = iter(sorted(measured, key=lambda attempt: values[attempt.target.endpoint_id]))
    for attempt in cell:
        yield next(fastest) if attempt.target.endpoint_id in values else attempt


def _slowness(
    speed: Speed | None, measure: Literal["throughput", "latency"], policy: SpeedPolicy
) -> float | None:
    """Return a number that is smaller for faster endpoints; None for one that is not compared."""
    if speed is None or speed.answers < policy.answers_min:
        return None
    if measure == "latency":
        return speed.latency_ms
    return None if speed.tokens_per_s is None else -speed.tokens_per_s


def _is_drawn(policy: SpeedPolicy, request_id: str) -> bool:
    digest = blake2b(f"explore\0{request_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") * _PERCENT >> 64 < policy.explore_percent


def _least_known(
    attempts: Sequence[Attempt],
    speeds: Mapping[str, Speed],
    policy: SpeedPolicy,
    *,
    now_s: float,
    resting: Collection[str],
) -> str | None:
    """Return the endpoint of the first model with the oldest figures, among those whose figures
    are old or few; None if only the endpoint that comes first has such figures.
    """
    first = attempts[0].target
    names = [each.target.endpoint_id for each in attempts if each.target.model == first.model]
    since = {
        name: speeds[name].since_s if name in speeds else 0
        for name in names
        if name not in resting and name != first.endpoint_id
    }
    unknown = [
        name
        for name, since_s in since.items()
        if since_s <= now_s - _OLD_AFTER_S or describe_thin(speeds.get(name), policy)
    ]
    return min(unknown, key=since.__getitem__, default=None)
