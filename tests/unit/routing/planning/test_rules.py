"""Rules: the first whose conditions all hold counts.

Keeps C50.
"""

import pytest

from tests.unit.routing.catalogs import NOW_S, catalog, endpoint, model, plan_of, principal, request
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.routing.chains import ConditionSection, RuleSection
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.offers import SkippedRule, select_rule
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest

WANTED = PlanningRequest(
    model="smart",
    draw_key_hash="0",
    tier="team",
    capabilities=frozenset({"tools"}),
    modalities=frozenset({"text", "pdf"}),
    input_tokens=1_000,
    metadata={"team": "legal"},
    budget_left_percent=15,
)


def rule(**condition: object) -> RuleSection:
    return RuleSection.model_validate(
        {"if": condition, "try": ("acme/large",)} if condition else {"try": ("acme/large",)},
        strict=True,
    )


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({"key_tier": "team"}, None),
        ({"key_tier": "free"}, "tier is team, not free"),
        ({"metadata": {"team": "legal"}}, None),
        ({"metadata": {"team": "legal", "app": "x"}}, "metadata app is not x"),
        ({"input_has": "pdf"}, None),
        ({"input_has": "image"}, "no image in the input"),
        ({"prompt_tokens_over": 999}, None),
        ({"prompt_tokens_over": 1_000}, "about 1000 prompt tokens, not over 1000"),
        ({"capability": "tools"}, None),
        ({"capability": "reasoning"}, "reasoning not requested"),
        ({"compaction": True}, "no conversation is compacted"),
        ({"budget_left": "<16%"}, None),
        ({"budget_left": "<15%"}, "15% of the budget left, not under 15%"),
        ({"key_tier": "team", "capability": "reasoning"}, "reasoning not requested"),
    ],
)
def test_c50_a_rule_applies_when_all_that_it_says_holds(
    condition: dict[str, object], reason: str | None
) -> None:
    number, skipped = select_rule([rule(**condition)], WANTED)
    assert number == (1 if reason is None else None)
    assert skipped == (() if reason is None else (SkippedRule(1, reason),))


def test_c50_the_first_rule_that_applies_counts() -> None:
    rules = [rule(key_tier="free"), rule(capability="tools"), rule()]
    number, skipped = select_rule(rules, WANTED)
    assert (number, [each.number for each in skipped]) == (2, [1])


def test_a_condition_without_a_word_is_refused() -> None:
    with pytest.raises(ValueError, match="must name a condition"):
        ConditionSection.model_validate({}, strict=True)


def ruled() -> Catalog:
    return catalog(
        routes={
            "smart": {
                "description": "By size and team",
                "rules": (
                    {"if": {"prompt_tokens_over": 1_000}, "try": ("acme/large",)},
                    {"if": {"metadata": {"team": "legal"}}, "try": ("other/tools",)},
                ),
            }
        },
        models={
            "acme/large": model(endpoint("near", "large-1")),
            "other/tools": model(endpoint("far", "T")),
        },
        aliases={},
    )


def test_the_trace_names_the_rule_and_keeps_the_metadata_that_rules_read() -> None:
    metadata = {"team": "legal", "user": "somebody"}
    wanted = PlanningRequest.of(
        request("smart", metadata=metadata), principal=principal(), request_id="r-1"
    )
    survey = Planner(ruled()).survey(wanted, now_s=NOW_S)
    assert survey.trace is not None
    assert (survey.trace.route, survey.trace.rule) == ("smart", 2)
    assert survey.trace.metadata == {"team": "legal"}
    assert [each.number for each in survey.skipped_rules] == [1]


def test_a_request_that_no_rule_is_for_is_refused() -> None:
    with pytest.raises(RequestError, match="No rule of smart applies") as refused:
        plan_of(ruled(), request("smart"), principal=principal())
    assert refused.value.code is ErrorCode.INVALID_REQUEST
