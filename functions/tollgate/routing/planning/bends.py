"""Routes with rules that apply when little of a budget is left."""

from tollgate.core.records.generation import RoutingTrace
from tollgate.routing.chains import ConditionSection
from tollgate.routing.planning.catalog import Catalog


def find_condition(catalog: Catalog, trace: RoutingTrace) -> ConditionSection | None:
    """Return the condition of the rule that a request follows; None if there is no condition."""
    if trace.route is None or trace.rule is None:
        return None
    return catalog.routes[trace.route].all_rules[trace.rule - 1].condition


def describe_bend(catalog: Catalog, trace: RoutingTrace) -> str | None:
    """Return the rule that a request follows because of its budget, and the remaining share.

    None if the rule has no condition on the budget.
    """
    condition = find_condition(catalog, trace)
    if trace.budget_left_percent is None or condition is None or condition.budget_left is None:
        return None
    return f"{trace.route} rule {trace.rule}; {trace.budget_left_percent}% left"
