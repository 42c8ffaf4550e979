"""Predicts the first endpoint and the cost of a recorded request under one revision.

If no endpoint is in cooldown, the prediction is exact for the first attempt. Units that are not in
the record are estimated, because no price depended on them when it was written.
"""

from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode
from tollgate.core.quotas import parse_quotas
from tollgate.core.records.generation import BillLine, total_nano_usd
from tollgate.core.request import RoutingPreferences
from tollgate.core.service_tiers import BATCH_TIER
from tollgate.core.usage import Usage
from tollgate.routing.chains import RuleSection
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.measured_sort import sort_measured
from tollgate.routing.planning.offers import select_rule
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planner import Planner, Survey
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.shadows import is_drawn, without_order
from tollgate.routing.price import Price, PriceSchedule, bill, bill_fees
from tollgate.routing.review.traffic import RecordedRequest

# Prefix of a generation's id in exported records.
_ID_PREFIX: Final = "gen-"


class WouldServe(Struct, frozen=True):
    """The endpoint of the first attempt, and the bill for the recorded reply."""

    model: str
    provider: str
    upstream: str
    cost_nano_usd: int
    batched_nano_usd: int | None = None
    """The cost in the provider's own batches; None if it cannot run the request in one."""

    @property
    def endpoint(self) -> str:
        """The endpoint in the notation of diffs: `acme/large @ openai/large-1`."""
        return f"{self.model} @ {self.provider}/{self.upstream}"


class WouldRefuse(Struct, frozen=True):
    """The refusal of a request."""

    code: ErrorCode


class Unknown(Struct, frozen=True):
    """No prediction is possible, because a rule reads metadata that is not in the record."""

    metadata: tuple[str, ...]


ReplayVerdict: TypeAlias = WouldServe | WouldRefuse | Unknown


def _estimate_unread(request: RecordedRequest, price: Price) -> Usage:
    """Return the recorded usage, with the trace's estimates for units that only this price has."""
    trace, usage = request.trace, request.tokens
    if trace.units is None:
        return usage
    likely = {
        unit: getattr(trace.units, unit)
        for unit in price.usd_per_million_pieces
        if getattr(usage, unit) is None
    }
    if not usage.total_tokens and (price.input or price.output_dearest):
        likely["uncached_input_tokens"] = trace.estimated_input_tokens
        likely["output_tokens"] = trace.units.output_tokens
    return replace(usage, **likely)


class ReplayPlanner:
    """Plans recorded requests with one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._planner = Planner(catalog)
        tools = catalog.tools.section
        priced = {"web_search": tools.web_search, "web_fetch": tools.web_fetch}
        self._usd_per_run = {
            item: section.price.call
            for item, section in priced.items()
            if section is not None and section.price is not None
        }

    def predict(self, request: RecordedRequest, *, when_s: int | None = None) -> ReplayVerdict:
        """Plan a request again at `when_s` (by default, at its own time), and bill its first
        attempt.
        """
        when_s = request.created_s if when_s is None else when_s
        planning_request = PlanningRequest.recorded(request.trace)
        preset = request.trace.preset
        if preset is not None and preset not in self._catalog.presets.rows:
            return WouldRefuse(ErrorCode.MODEL_NOT_FOUND)
        survey = self._planner.survey(planning_request, now_s=when_s)
        unknown = self._unknown_metadata(survey, planning_request, request)
        if unknown:
            return Unknown(unknown)
        if survey.plan is None:
            return WouldRefuse(survey.refusal.code if survey.refusal else ErrorCode.MODEL_NOT_FOUND)
        plan = self._measured(survey.plan, request)
        if not plan.attempts:
            return WouldRefuse(ErrorCode.KEY_LIMIT_EXCEEDED)
        first = plan.attempts[0]
        target, batched = first.target, self._batch_prices(request, first)
        schedule = first.schedule(_billed_tier(request, first))
        if batched is not None and request.service_tier == BATCH_TIER:
            schedule = batched
        return WouldServe(
            target.model,
            target.provider,
            target.upstream_model,
            self._cost(request, schedule, when_s),
            None if batched is None else self._cost(request, batched, when_s),
        )

    def _measured(self, plan: Plan, request: RecordedRequest) -> Plan:
        """Return the plan without models whose quota was used up, sorted by the measurements in
        the request's record.
        """
        plan = sort_measured(
            plan,
            request.trace.speeds,
            request_id=request.id.removeprefix(_ID_PREFIX),
            now_s=request.created_s,
        )
        return plan.under_quotas(parse_quotas(",".join(request.trace.quotas_used_up)))

    def shadow_cost(self, request: RecordedRequest) -> tuple[str, int] | None:
        """Return the route whose shadow would get a request, and the cost of the shadow's answer.

        Returns None if no shadow would. Records do not show how long the shadow's answer would be
        or whether the key stores content: it is assumed to do so, and the lengths to be equal.
        """
        trace = request.trace
        route = self._planner.route_of(trace.requested_model)
        shadow = None if route is None else self._catalog.routes[route].shadow
        if (
            route is None
            or shadow is None
            or request.status != "ok"
            or request.rounds
            or trace.choices > 1
            or not is_drawn(shadow, route, trace.draw_key_hash)
        ):
            return None
        preferences = RoutingPreferences() if trace.preferences is None else trace.preferences
        asked = replace(
            trace,
            requested_model=shadow.model,
            preset=None,
            ceiling=None,
            service_tier=None,
            preferences=without_order(preferences),
        )
        verdict = self.predict(replace(request, trace=asked))
        return (route, verdict.cost_nano_usd) if isinstance(verdict, WouldServe) else None

    def _batch_prices(self, request: RecordedRequest, first: Attempt) -> PriceSchedule | None:
        """Return the prices of an endpoint's batches; None if the gateway would run the request.

        The result ignores files, limited sessions and guardrails of a key, which are not recorded.
        """
        trace = request.trace
        own_policy = trace.preferences is not None and trace.preferences.prompt_policy
        if trace.prompt_policies or own_policy or self._catalog.defaults.prompt_policy:
            return None
        if trace.rounds or trace.documents or request.rounds or request.fees:
            return None
        if first.target.guardrail or first.service_tier:
            return None
        if first.batch is None or not first.batch.takes(trace.inputs, trace.capabilities):
            return None
        return first.batch_prices

    def _cost(self, request: RecordedRequest, schedule: PriceSchedule, when_s: int) -> int:
        return total_nano_usd(self._bill(request, schedule, when_s)) if request.billed else 0

    def _bill(
        self, request: RecordedRequest, schedule: PriceSchedule, when_s: int
    ) -> tuple[BillLine, ...]:
        """Return the bill for a recorded answer at an endpoint; rates depend on each round's
        prompt.

        Tool runs cost what this revision charges. Pages, images and tools that this revision does
        not have keep their recorded cost.
        """
        fees = bill_fees(
            replace(fee, usd_each=self._usd_per_run.get(fee.item, fee.usd_each))
            for fee in request.fees
        )
        if request.rounds:
            rounds = request.billed_rounds
            prices = [schedule.at(when_s, usage.input_tokens) for usage in rounds]
            billed = map(bill, rounds, prices)
            return (*chain.from_iterable(billed), *fees)
        price = schedule.at(when_s, request.tokens.input_tokens, request.trace.picture)
        return (*bill(_estimate_unread(request, price), price), *fees)

    def _unknown_metadata(
        self, survey: Survey, planning_request: PlanningRequest, request: RecordedRequest
    ) -> tuple[str, ...]:
        """Return the metadata that decides which rule applies but that is not in the record."""
        trace = survey.trace
        route = self._catalog.routes.get(trace.route) if trace and trace.route else None
        if trace is None or route is None:
            return ()
        known = {*request.trace.metadata_read, *request.trace.metadata}
        for rule in route.all_rules[: trace.rule]:
            read = rule.condition.metadata if rule.condition else {}
            unknown = read.keys() - known
            if unknown and _applies_without(rule, planning_request, unknown):
                return tuple(sorted(unknown))
        return ()


def _billed_tier(request: RecordedRequest, first: Attempt) -> str | None:
    """Return the tier that served, if the request was sent for the same tier, or else that tier."""
    if any(each.service_tier == first.service_tier for each in request.attempts):
        return first.billed_tier(request.service_tier)
    return first.service_tier


def _applies_without(
    rule: RuleSection, planning_request: PlanningRequest, unknown: set[str]
) -> bool:
    """Return True if all conditions of a rule hold, ignoring those on unknown metadata."""
    condition = rule.condition
    if condition is None:
        return True
    known = {name: value for name, value in condition.metadata.items() if name not in unknown}
    rest = rule.model_copy(update={"condition": condition.model_copy(update={"metadata": known})})
    number, _ = select_rule((rest,), planning_request)
    return number is not None
