"""A simulated failure leads where the engine goes when it happens.

Keeps C44, C50, C53.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.cells import cells
from tests.gateways import house
from tests.scripted import FOREVER, Answer, Scripted, answers, refuses
from tests.unit.routing.catalogs import catalog, plan_of, principal, request
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.engine.routing.simulation import Fault, simulate
from tollgate.routing.planning.plan import Plan

STATUSES = (400, 401, 403, 404, 408, 429, 500, 503, 504, 529)


def plan(name: str = "smart") -> Plan:
    return plan_of(catalog(), request(name), principal=principal())


def answer(kind: str | None) -> Answer:
    if kind is None:
        return answers("Hello")
    return [FOREVER] if kind == "timeout" else refuses(int(kind))


kinds = st.none() | st.just("timeout") | st.sampled_from(STATUSES).map(str)


@cells("near", [None, "timeout", *map(str, STATUSES)])
@cells("far", [None, "timeout", "429", "401"])
async def test_c53_the_tries_are_those_that_the_engine_makes(
    near: str | None, far: str | None
) -> None:
    home = await house(near=Scripted(answer(near)), far=Scripted(answer(far)))
    await home.serve("smart")
    faults = [Fault(kind, where) for kind, where in ((near, "near"), (far, "far")) if kind]
    made = simulate(plan(), faults, time_s=877)
    assert [(each.attempt.target.endpoint_id, each.error) for each in made.attempts] == [
        (f"{tried.provider}/{_upstream(tried.provider, tried.model)}", tried.error)
        for tried in home.record.attempts
    ]
    assert made.error == home.record.error


def _upstream(provider: str, model: str) -> str:
    return {("near", "acme/small"): "small-1", ("near", "acme/large"): "large-1"}.get(
        (provider, model), "L" if model == "acme/large" else "T"
    )


@given(kinds, kinds, st.floats(0.1, 900))
def test_c53_a_simulation_ends_and_takes_no_longer_than_there_is_time(
    near: str | None, far: str | None, time_s: float
) -> None:
    faults = [Fault(kind, where) for kind, where in ((near, "near"), (far, "far")) if kind]
    made = simulate(plan(), faults, time_s=time_s)
    assert sum(each.took_s + each.pause_s for each in made.attempts) <= time_s * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "serves"), [("no_key", True), ("auth", False), ("401", False)])
def test_c44_an_absent_key_moves_on_where_a_refused_one_does_not(kind: str, serves: bool) -> None:
    made = simulate(replace(plan(), next_on=frozenset()), [Fault.parse(f"{kind}@near")], time_s=60)
    assert (made.error is None) == serves


@pytest.mark.parametrize("where", ["far", "far/L", "acme/large"])
def test_a_fault_is_at_a_provider_an_endpoint_or_a_model(where: str) -> None:
    made = simulate(plan("acme/large"), [Fault.parse(f"auth@{where}")], time_s=60)
    met = [each.attempt.target.endpoint_id for each in made.attempts if each.error]
    assert met == (["near/large-1", "far/L"] if where == "acme/large" else [])


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("auth", ErrorCode.PROVIDER_AUTH),
        ("no_key", ErrorCode.PROVIDER_AUTH),
        ("content_filter", ErrorCode.CONTENT_FILTER),
        ("context", ErrorCode.CONTEXT_LENGTH_EXCEEDED),
        ("overloaded", ErrorCode.PROVIDER_OVERLOADED),
        ("rate_limit", ErrorCode.PROVIDER_RATE_LIMIT),
        ("timeout", ErrorCode.PROVIDER_TIMEOUT),
        ("unavailable", ErrorCode.PROVIDER_UNAVAILABLE),
        ("429", ErrorCode.PROVIDER_RATE_LIMIT),
        ("503", ErrorCode.PROVIDER_OVERLOADED),
        ("500", ErrorCode.PROVIDER_UNAVAILABLE),
        ("400", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_kind_of_failure_is_a_status_or_a_name(kind: str, code: ErrorCode) -> None:
    made = simulate(plan("acme/large"), [Fault.parse(f"{kind}@near")], time_s=60)
    assert made.attempts[0].error is code


@pytest.mark.parametrize("text", ["", "429", "@near", "429@", "399@near", "600@near", "slow@near"])
def test_what_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refusal:
        Fault.parse(text)
    assert refusal.value.param == "simulate"


def test_a_fault_that_meets_nothing_is_refused_with_what_there_is() -> None:
    with pytest.raises(RequestError, match="near/large-1, far/L"):
        simulate(plan("acme/large"), [Fault.parse("429@other")], time_s=60)
