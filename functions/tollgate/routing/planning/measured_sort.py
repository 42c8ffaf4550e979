"""Orders the endpoints of a plan by the speeds and cached prompts that the gateway measured."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Final, Literal

from msgspec.structs import replace

from tollgate.core.records.generation import RoutingTrace
from tollgate.core.request import RoutingPreferences
from tollgate.core.routing.endpoint_status import Speed, SpeedPolicy
from tollgate.routing.planning.plan import Attempt, Plan

# An endpoint whose figures are older than this is measured again. The figures of a busy endpoint
# are younger, because they cover two windows of half an hour.
_OLD_AFTER_S: Final = 3_600
_PERCENT: Final = 100
# Cached shares are rounded to this number of steps. Otherwise, conversations would move for small
# differences, and find nothing cached at their new endpoint.
_SHARE_STEPS: Final = 10
_PIECES_PER_RATE: Final = 1_000_000


def sort_measured(
    plan: Plan,
    speeds: Mapping[str, Speed],
    *,
    request_id: str,
    now_s: float,
    resting: Collection[str] = (),
) -> Plan:
    """Return the plan with each model's endpoints sorted by measured speed, or by price and
    cached prompts, if the request or its route asks for that.

    `provider.order` takes precedence. Endpoints with too few answers keep their place. If no two
    endpoints can be compared, the plan reports a caller's preference for speed as unmet. A small
    share of requests tries the endpoint with the oldest figures first.
    """
    measure, preferences = plan.measured_sort, plan.trace.preferences or RoutingPreferences()
    if measure is None:
        return plan
    decides = False
    attempts: list[Attempt] = []
    for cell in _cells(plan, preferences.order):
        compared = {
            name: speed
            for name, speed in speeds.items()
            if any(name == attempt.target.endpoint_id for attempt in cell)
            and describe_thin(speed, plan.speed_policy) is None
        }
        if measure == "price":
            values = _expected_prices(cell, compared, plan.trace, now_s)
        else:
            values = _slownesses(compared, measure)
        decides = decides or len(values) > 1
        attempts += _sorted_in_place(cell, values)
    explored = None
    # With `sort: price`, either all turns of a conversation explore or none does: an endpoint that
    # gets a single turn has nothing cached.
    talk = plan.trace.conversation_hash or plan.trace.draw_key_hash
    drawn_by = talk if measure == "price" else request_id
    if preferences.fallbacks and not preferences.order and _is_drawn(plan.speed_policy, drawn_by):
        explored = _least_known(attempts, speeds, plan.speed_policy, now_s=now_s, resting=resting)
        attempts.sort(key=lambda attempt: explored not in (None, attempt.target.endpoint_id))
    if not (preferences.fallbacks or preferences.order):
        attempts = attempts[:1]
    single = len(plan.models) == len(plan.attempts)
    wanted = preferences.sort in ("throughput", "latency")
    unmet = ("provider.sort",) if wanted and not (decides or single) else ()
    known = {name: speeds[name] for name in sorted(plan.endpoint_ids & speeds.keys())}
    trace = replace(plan.trace, speeds=known, explored=explored, sorted_by=measure)
    return replace(plan, attempts=tuple(attempts), unmet=unmet, trace=trace)


def describe_thin(speed: Speed | None, policy: SpeedPolicy) -> str | None:
    """Return a remark on an endpoint with too few answers to be compared; None if it has enough."""
    answers = 0 if speed is None else speed.answers
    if answers >= policy.answers_min:
        return None
    return f"too few answers: {answers} of {policy.answers_min}"


def _cells(plan: Plan, order: Sequence[str]) -> Iterator[Sequence[Attempt]]:
    """Yield groups of attempts; measurements change the order only within a group.

    A group has the same model, and the same provider if `order` lists that provider.
    """

    def cell_of(attempt: Attempt) -> tuple[str, str | None]:
        target = attempt.target
        return target.model, target.provider if target.provider in order else None

    for _, cell in groupby(plan.attempts, key=cell_of):
        yield tuple(cell)


def _sorted_in_place(cell: Sequence[Attempt], values: Mapping[str, float]) -> Iterator[Attempt]:
    """Yield the attempts, sorted by their values; attempts without a value keep their place."""
    measured = [attempt for attempt in cell if attempt.target.endpoint_id in values]
    fastest = iter(sorted(measured, key=lambda attempt: values[attempt.target.endpoint_id]))
    for attempt in cell:
        yield next(fastest) if attempt.target.endpoint_id in values else attempt


def _slownesses(
    compared: Mapping[str, Speed], measure: Literal["throughput", "latency"]
) -> dict[str, float]:
    """Return a number for each endpoint; faster endpoints have smaller numbers."""
    if measure == "latency":
        return {name: speed.latency_ms for name, speed in compared.items()}
    rates = {name: speed.tokens_per_s for name, speed in compared.items()}
    return {name: -rate for name, rate in rates.items() if rate is not None}


def _expected_prices(
    cell: Sequence[Attempt], compared: Mapping[str, Speed], trace: RoutingTrace, now_s: float
) -> dict[str, float]:
    """Return the price in dollars of an average answer to this prompt at each endpoint."""
    counted = {name: speed for name, speed in compared.items() if speed.cached_share is not None}
    answers = sum(speed.answers for speed in counted.values())
    # The length of an answer depends on the model, so it is the same at all of its endpoints.
    output = sum(speed.output_tokens * speed.answers for speed in counted.values()) / max(
        answers, 1
    )
    if trace.output_tokens_max is not None:
        output = min(output, trace.output_tokens_max)
    prices: dict[str, float] = {}
    for attempt in cell:
        name = attempt.target.endpoint_id
        if name not in counted or name in prices:
            continue
        price = attempt.asked_prices.at(now_s, trace.estimated_input_tokens)
        share = round((counted[name].cached_share or 0) * _SHARE_STEPS) / _SHARE_STEPS
        cached = price.input if price.cache_read is None else price.cache_read
        prompt = share * float(cached) + (1 - share) * float(price.input)
        tokens = trace.estimated_input_tokens * prompt + output * float(price.output)
        prices[name] = tokens / _PIECES_PER_RATE + float(price.request or 0)
    return prices


def _is_drawn(policy: SpeedPolicy, drawn_by: str) -> bool:
    digest = blake2b(f"explore\0{drawn_by}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") * _PERCENT >> 64 < policy.explore_percent


def _least_known(
    attempts: Sequence[Attempt],
    speeds: Mapping[str, Speed],
    policy: SpeedPolicy,
    *,
    now_s: float,
    resting: Collection[str],
) -> str | None:
    """Return the endpoint to explore: the one with the oldest figures, if these are old or few.

    Candidates are the endpoints of the first model, except the one that comes first anyway.
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
