"""What a plan does with models and endpoints that end: C50, C19, C41."""

from datetime import date
from typing import Any

import pytest

from tests.unit.routing.catalogs import (
    NOW_S,
    catalog,
    endpoint,
    model,
    plan_of,
    principal,
    request,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.plan import Plan

DAY_S = 86_400
# NOW_S is 12:30 of this day.
TODAY = date(2026, 11, 21)
TOMORROW = date(2026, 11, 22)
MIDNIGHT_S = NOW_S - 12.5 * 3600 - 1


def succeeded(**old: Any) -> Catalog:
    """An old model with a successor, which has one too; a route that draws among two models."""
    return catalog(
        models={
            "acme/old": model(endpoint("near", "old"), successor="acme/new", **old),
            "acme/new": model(endpoint("far", "new"), successor="acme/newest"),
            "acme/newest": model(endpoint("near", "newest")),
        },
        aliases={"mine": {"to": "acme/old"}},
        routes={
            "drawn": {"description": "Drawn", "try": ({"acme/old": 100, "acme/newest": 0},)},
            "chain": {"description": "In order", "try": ("acme/old", "acme/newest")},
        },
    )


def planned(of: Catalog, name: str, now_s: float = NOW_S, **key: Any) -> Plan:
    return plan_of(of, request(name), principal=principal(**key), now_s=now_s)


def models_of(plan: Plan) -> list[str]:
    return [attempt.target.model for attempt in plan.attempts]


@pytest.mark.parametrize("name", ["acme/old", "mine"])
def test_c41_a_retired_model_is_refused_by_the_name_of_its_successor(name: str) -> None:
    of = succeeded(retires=TOMORROW)
    assert models_of(planned(of, name)) == ["acme/old"]
    assert models_of(planned(of, name, MIDNIGHT_S + DAY_S - 0.001)) == ["acme/old"]
    with pytest.raises(RequestError) as refused:
        planned(of, name, MIDNIGHT_S + DAY_S)
    assert refused.value.code is ErrorCode.MODEL_NOT_FOUND
    assert refused.value.message == f"{name} retired on 2026-11-22; use acme/new instead."
    assert refused.value.param == "model"


def test_c50_a_chain_goes_on_behind_a_model_that_retired() -> None:
    assert models_of(planned(succeeded(retires=TODAY), "chain")) == ["acme/newest"]


@pytest.mark.parametrize("name", ["acme/old", "mine", "drawn"])
def test_c50_a_successor_serves_only_where_the_file_says_so(name: str) -> None:
    of = succeeded(retires=TOMORROW, after_retirement="successor")
    assert models_of(planned(of, name))[0] == "acme/old"
    later = planned(of, name, NOW_S + DAY_S)
    assert models_of(later)[0] == "acme/new"
    assert later.attempts[0].target.provider == "far"


def test_c50_a_successor_that_retired_too_hands_on() -> None:
    models = {
        "acme/a": model(
            endpoint("near", "a"), retires=TODAY, successor="acme/b", after_retirement="successor"
        ),
        "acme/b": model(
            endpoint("near", "b"), retires=TODAY, successor="acme/c", after_retirement="successor"
        ),
        "acme/c": model(endpoint("near", "c")),
    }
    of = catalog(models=models, aliases={}, routes={})
    assert models_of(planned(of, "acme/a")) == ["acme/c"]


def test_c61_a_key_needs_a_right_to_the_name_or_to_the_successor() -> None:
    of = succeeded(retires=TODAY, after_retirement="successor")
    assert models_of(planned(of, "acme/old", models=("acme/old",))) == ["acme/new"]
    assert models_of(planned(of, "mine", models=("acme/new",))) == ["acme/new"]
    with pytest.raises(Exception, match="may not use mine"):
        planned(of, "mine", models=("acme/old",))


def test_c50_an_endpoint_ends_before_its_model() -> None:
    gone = endpoint("near", "n") | {"retires": TODAY}
    kept = endpoint("far", "f") | {"deprecated": date(2026, 11, 1)}
    of = catalog(models={"acme/large": model(gone, kept)}, aliases={}, routes={})
    assert [it.target.provider for it in planned(of, "acme/large").attempts] == ["far"]
    before = planned(of, "acme/large", NOW_S - DAY_S)
    assert [it.target.provider for it in before.attempts] == ["near", "far"]


def test_the_end_of_an_attempt_is_the_earlier_one_and_announced_a_quarter_before() -> None:
    first = endpoint("near", "n") | {"retires": date(2027, 3, 1)}
    second = endpoint("far", "f")
    of = catalog(
        models={"acme/large": model(first, second, retires=date(2027, 6, 1))}, aliases={}, routes={}
    )
    near, far = (attempt.lifecycle for attempt in planned(of, "acme/large").attempts)
    assert (far.retires_s - near.retires_s) / DAY_S == 92
    assert near.retires_s - near.notice_s == far.retires_s - far.notice_s == 90 * DAY_S
