"""The looks at a candidate: when they are due, what they count, and what breaks a term.

Keeps C57.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.canary_traffic import EVERY_FIGURE, Fleet, run_canary
from tests.stores import record_of
from tollgate.core.clock import DAY_S
from tollgate.core.ids import first_id_of
from tollgate.core.records.generation import GenerationRecord, ReusedAnswer, ShadowTrace
from tollgate.core.routing.canary import LOOK_TIMES_S, Figure, Look, Terms
from tollgate.core.routing.publication import (
    Publication,
    Signature,
    publish_canary,
    publish_to_all,
    withdraw_canary,
)
from tollgate.stores.ports.base import Hold
from tollgate.stores.routing.canary_looks import (
    CanaryKey,
    Traffic,
    due_look,
    group_by_key,
    look_at,
)

SIGNED = Signature(by="somebody", at_s=1_000)
LIVE = publish_to_all(None, "a" * 64, SIGNED)


def terms_of(worse_percent: Mapping[Figure, float]) -> Terms:
    return Terms(worse_percent=worse_percent, false_alarms_percent=5)


CANARY = publish_canary(LIVE, "b" * 64, 50, SIGNED, terms=terms_of({"errors": 1}))
TRIED = next(f"k{number}" for number in range(99) if CANARY.sha_for(f"k{number}") == "b" * 64)
OTHER = next(f"k{number}" for number in range(99) if CANARY.sha_for(f"k{number}") == "a" * 64)


def look(
    tried: Traffic, other: Traffic, worse_percent: Mapping[Figure, float], keys: int = 10
) -> Look:
    """Look at keys of which half have the one traffic and half the other, after an equal day."""
    traffic = [
        CanaryKey(on_candidate=on_candidate, before=other, since=tried if on_candidate else other)
        for on_candidate in (True, False)
        for _ in range(keys)
    ]
    return look_at(CANARY, terms_of(worse_percent), traffic, number=1, now_s=2_000)


def test_c57_looks_are_due_at_fixed_times_of_a_canary_with_terms() -> None:
    assert due_look(CANARY, 1_000 + 599) is None
    assert due_look(CANARY, 1_000 + 600) == 1
    assert due_look(CANARY, 1_000 + 899) == 1
    assert due_look(CANARY, 1_000 + 900) == 2
    assert due_look(CANARY, 1_000 + 365 * DAY_S) == len(LOOK_TIMES_S) == 19
    assert due_look(replace(CANARY, terms=None), 9e9) is None
    assert due_look(LIVE, 9e9) is None


@pytest.mark.parametrize(
    ("figure", "worse", "same"),
    [
        ("errors", {"errors": 40}, {"errors": 10}),
        ("refusals", {"refusals": 40}, {"refusals": 10}),
        ("cost", {"cost_nano_usd": 2_000}, {"cost_nano_usd": 1_000}),
        ("first_token_p95", {"first_token_ms": [900] * 9}, {"first_token_ms": [300] * 9}),
    ],
)
def test_c57_each_figure_is_compared_with_the_live_catalog(
    figure: Figure, worse: dict[str, Any], same: dict[str, Any]
) -> None:
    usual = Traffic(requests=100, answers=90, **same)
    assert look(usual, usual, {figure: 0}).broken is None
    assert look(usual, Traffic(requests=100, answers=90, **worse), {figure: 0}).broken is None
    found = look(Traffic(requests=100, answers=90, **worse), usual, {figure: 0})
    assert (found.state, found.broken) == ("broken", figure)
    # 30 points, twice as dear and three times as slow are within these terms.
    allowed = {"errors": 30, "refusals": 30, "cost": 100, "first_token_p95": 200}[figure]
    tried = Traffic(requests=100, answers=90, **worse)
    assert look(tried, usual, {figure: allowed}).broken is None
    assert look(tried, usual, {figure: allowed / 2}).broken == figure


def test_c57_what_a_key_always_did_is_not_the_candidates_fault() -> None:
    bad, good = Traffic(requests=1_000, errors=500), Traffic(requests=1_000, errors=10)
    traffic = [
        CanaryKey(on_candidate=on_candidate, before=usual, since=usual)
        for on_candidate, usual in [(True, bad), (False, good)] * 6
        + [(True, good), (False, bad)] * 2
    ]
    found = look_at(CANARY, terms_of({"errors": 0}), traffic, number=1, now_s=2_000)
    assert found.figures["errors"].candidate > 35 > 15 > found.figures["errors"].live
    assert found.broken is None


def test_c57_a_single_key_that_goes_wrong_raises_no_alarm() -> None:
    usual = Traffic(requests=100, errors=1)
    traffic = [
        CanaryKey(on_candidate=number < 10, before=usual, since=usual) for number in range(20)
    ]
    traffic[0] = replace(traffic[0], since=Traffic(requests=1_000, errors=1_000))
    found = look_at(CANARY, terms_of({"errors": 0}), traffic, number=1, now_s=2_000)
    assert found.figures["errors"].candidate > 50
    assert found.state == "kept"


def test_c57_too_few_keys_and_no_traffic_are_said_and_decide_nothing() -> None:
    fails, works = Traffic(requests=9, errors=9), Traffic(requests=9)
    assert look(fails, works, {"errors": 0}, keys=3).state == "too_few_keys"
    assert look(fails, works, {"errors": 0}, keys=8).state == "broken"
    empty = look(Traffic(), works, {"errors": 0})
    assert (empty.state, empty.keys, empty.broken) == ("no_traffic", 0, None)
    nothing = look_at(CANARY, terms_of(EVERY_FIGURE), [], number=1, now_s=0)
    assert (nothing.state, nothing.live_keys) == ("no_traffic", 0)


def record(key_id: str, **changes: object) -> GenerationRecord:
    hold = Hold(
        id=first_id_of(1_100),
        workspace_id="w",
        key_id=key_id,
        shard=0,
        wallet_nano_usd=0,
        key_nano_usd=0,
    )
    made = {"created_s": 1_100, "catalog_sha": CANARY.sha_for(key_id), "first_token_ms": 70}
    return replace(record_of(hold, 7), **{**made, **changes})


def test_c57_only_what_a_keys_catalog_served_counts() -> None:
    into: dict[str, CanaryKey] = {}
    shadow = ShadowTrace(
        generation_id="g-0",
        route="r",
        model=None,
        cost_nano_usd=0,
        duration_ms=1,
        first_token_ms=None,
        output_tokens=0,
    )
    reused = ReusedAnswer(generation_id="g-0", saved_nano_usd=1)
    group_by_key(
        [
            record(TRIED),
            record(TRIED, outcome="error", error="provider_timeout", first_token_ms=None),
            record(TRIED, finish="content_filter"),
            record(TRIED, outcome="error", error="content_filter"),
            record(TRIED, outcome="cancelled"),
            record(TRIED, catalog_sha="a" * 64),  # the candidate could not be loaded
            record(TRIED, reused=reused),
            record(TRIED, shadow=shadow),
            record(TRIED, created_s=999, catalog_sha="f" * 64),  # on the day before
            record(OTHER),
        ],
        CANARY,
        into,
    )
    tried, other = into[TRIED], into[OTHER]
    assert (tried.on_candidate, other.on_candidate) == (True, False)
    since = tried.since
    assert (since.requests, since.errors, since.refusals, since.answers) == (5, 1, 2, 4)
    assert (since.cost_nano_usd, since.first_token_ms) == (28, [70] * 4)
    assert (tried.before.requests, other.before.requests, other.since.requests) == (1, 0, 1)


def test_c57_taking_back_leaves_live_and_previous_as_they_were() -> None:
    second = publish_to_all(LIVE, "d" * 64, SIGNED)
    canary = publish_canary(second, "b" * 64, 50, SIGNED, terms=CANARY.terms)
    after = withdraw_canary(canary, "errors", SIGNED)
    assert after == Publication(
        live="d" * 64,
        previous="a" * 64,
        revision=4,
        moved_s=1_000,
        by="somebody",
        withdrawn="errors",
    )


def test_c57_a_simulated_regression_is_found_and_a_null_run_is_not() -> None:
    fleet = Fleet(keys=24, percent=50, requests_an_hour=10)
    terms = terms_of({"errors": 0})
    assert run_canary(fleet, terms, 1, looks=3) is None
    found = run_canary(replace(fleet, more_errors_percent=30), terms, 1, looks=3)
    assert found is not None
    assert found.broken == "errors"
