"""Select a route's rule for a request: the first rule whose conditions all hold."""

from collections.abc import Sequence

from msgspec import Struct

from tollgate.routing.chains import ConditionSection, RuleSection
from tollgate.routing.planning.planning_request import PlanningRequest


class SkippedRule(Struct, frozen=True):
    """Rule that does not apply: its number from 1, and its first failed condition in words."""

    number: int
    reason: str


def select_rule(
    rules: Sequence[RuleSection], wanted: PlanningRequest
) -> tuple[int | None, tuple[SkippedRule, ...]]:
    """Return the number of the rule that applies, from 1, and the rules before it.

    The number is None if no rule applies.
    """
    skipped: list[SkippedRule] = []
    for number, rule in enumerate(rules, start=1):
        reason = None if rule.condition is None else _failed_condition(rule.condition, wanted)
        if reason is None:
            return number, tuple(skipped)
        skipped.append(SkippedRule(number, reason))
    return None, tuple(skipped)


def _failed_condition(condition: ConditionSection, wanted: PlanningRequest) -> str | None:
    """Return the first condition that does not hold, in words."""
    if condition.key_tier is not None and wanted.tier != condition.key_tier:
        return f"tier is {wanted.tier or 'none'}, not {condition.key_tier}"
    for name, value in condition.metadata.items():
        if wanted.metadata.get(name) != value:
            return f"metadata {name} is not {value}"
    if condition.input_has is not None and condition.input_has not in wanted.modalities:
        return f"no {condition.input_has} in the input"
    over = condition.prompt_tokens_over
    if over is not None and wanted.input_tokens <= over:
        return f"about {wanted.input_tokens} prompt tokens, not over {over}"
    if condition.capability is not None and condition.capability not in wanted.capabilities:
        return f"{condition.capability} not requested"
    return None
