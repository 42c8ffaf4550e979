"""What one revision makes of a recorded request: who is asked first, and what that costs.

Exact for the first attempt while no endpoint rests, at the tokens that were recorded.
"""

from typing import TypeAlias

from msgspec import Struct

from tollgate.core.errors import ErrorCode
from tollgate.routing.chains import RuleSection
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner, Survey
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.rules import select_rule
from tollgate.routing.price import bill, total_nano_usd
from tollgate.routing.review.traffic import RecordedRequest


class WouldServe(Struct, frozen=True):
    """The endpoint that is asked first, and the bill if it answers as was recorded."""

    model: str
    provider: str
    upstream: str
    cost_nano_usd: int

    @property
    def endpoint(self) -> str:
        """The endpoint as a diff names it: `acme/large @ openai/large-1`."""
        return f"{self.model} @ {self.provider}/{self.upstream}"


class WouldRefuse(Struct, frozen=True):
    """The request is refused with this error."""

    code: ErrorCode


class Unknown(Struct, frozen=True):
    """A rule reads metadata that no rule read then, so that the record does not have them."""

    metadata: tuple[str, ...]


ReplayVerdict: TypeAlias = WouldServe | WouldRefuse | Unknown


class ReplayPlanner:
    """Says of any number of requests what one catalog makes of them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._planner = Planner(catalog)

    def verdict(self, request: RecordedRequest, *, when_s: int | None = None) -> ReplayVerdict:
        """What happens to a request that is made again, at its own time if none is said."""
        when_s = request.created_s if when_s is None else when_s
        wanted = PlanningRequest.recorded(request.trace)
        survey = self._planner.survey(wanted, now_s=when_s)
        unknown = self._unknown_metadata(survey, wanted, request)
        if unknown:
            return Unknown(unknown)
        if survey.plan is None:
            return WouldRefuse(survey.refusal.code if survey.refusal else ErrorCode.MODEL_NOT_FOUND)
        first = survey.plan.attempts[0]
        price = first.prices.at(when_s, request.tokens.input_tokens)
        lines = bill(request.tokens, price, request.fees) if request.billed else ()
        target = first.target
        return WouldServe(
            target.model, target.provider, target.upstream_model, total_nano_usd(lines)
        )

    def _unknown_metadata(
        self, survey: Survey, wanted: PlanningRequest, request: RecordedRequest
    ) -> tuple[str, ...]:
        """The metadata on which it depends whether the first rule that may apply does."""
        trace = survey.trace
        route = self._catalog.routes.get(trace.route) if trace and trace.route else None
        if trace is None or route is None:
            return ()
        known = {*request.trace.metadata_read, *request.trace.metadata}
        for rule in route.all_rules[: trace.rule]:
            asked = rule.condition.metadata if rule.condition else {}
            unknown = asked.keys() - known
            if unknown and _applies_otherwise(rule, wanted, unknown):
                return tuple(sorted(unknown))
        return ()


def _applies_otherwise(rule: RuleSection, wanted: PlanningRequest, unknown: set[str]) -> bool:
    """Whether all conditions of a rule hold, but for those on metadata that are unknown."""
    condition = rule.condition
    if condition is None:
        return True
    known = {name: value for name, value in condition.metadata.items() if name not in unknown}
    rest = rule.model_copy(update={"condition": condition.model_copy(update={"metadata": known})})
    number, _ = select_rule((rest,), wanted)
    return number is not None
