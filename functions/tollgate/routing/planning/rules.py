"""Which rule of a route applies to a request: the first whose conditions all hold."""

from collections.abc import Sequence

from msgspec import Struct

from tollgate.routing.chains import ConditionSection, RuleSection
from tollgate.routing.planning.planning_request import PlanningRequest


class SkippedRule(Struct, frozen=True):
    """A rule that does not apply, counted from 1, and why not."""

    number: int
    reason: str


def first_that_applies(
    rules: Sequence[RuleSection], demand: PlanningRequest
) -> tuple[int | None, tuple[SkippedRule, ...]]:
    """The number of the rule that counts, from 1, None if there is none; and those before it."""
    skipped: list[SkippedRule] = []
    for number, rule in enumerate(rules, start=1):
        reason = None if rule.condition is None else _obstacle(rule.condition, demand)
        if reason is None:
            return number, tuple(skipped)
        skipped.append(SkippedRule(number, reason))
    return None, tuple(skipped)


def _obstacle(condition: ConditionSection, demand: PlanningRequest) -> str | None:
    """The first condition that does not hold, in words."""
    if condition.key_tier is not None and demand.tier != condition.key_tier:
        return f"tier is {demand.tier or 'none'}, not {condition.key_tier}"
    for name, value in condition.metadata.items():
        if demand.metadata.get(name) != value:
            return f"metadata {name} is not {value}"
    if condition.input_has is not None and condition.input_has not in demand.modalities:
        return f"no {condition.input_has} in the input"
    over = condition.prompt_tokens_over
    if over is not None and demand.input_tokens <= over:
        return f"about {demand.input_tokens} prompt tokens, not over {over}"
    if condition.capability is not None and condition.capability not in demand.capabilities:
        return f"{condition.capability} not requested"
    return None
