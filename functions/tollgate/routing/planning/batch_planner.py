"""Plans lines of batches at one endpoint, at the price of the provider's own batches."""

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.routing.chains import RetrySection
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.offers import Offer
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.price import PriceSchedule

# A provider answers a line of a batch once.
_ONCE = RetrySection(retries_max=0)


class BatchPlanner(Planner):
    """Plans every request with one attempt, whatever else the catalog says now.

    The provider has accepted the request already, at the given prices.
    """

    def __init__(
        self, catalog: Catalog, endpoint_id: str, prices: PriceSchedule, *, covers: bool = False
    ) -> None:
        """Prepare the planner; `covers` bounds answers without a limit by the longest answer."""
        super().__init__(catalog)
        self._endpoint_id = endpoint_id
        self._prices = prices
        self._covers = covers

    @override
    def plan(self, request: PlanningRequest, *, now_s: float) -> Plan:
        survey = self.survey(request, now_s=now_s)
        attempt = next(
            (
                candidate.attempt
                for candidate in survey.candidates
                if candidate.attempt.target.endpoint_id == self._endpoint_id
            ),
            None,
        )
        if attempt is None or survey.trace is None:
            raise RequestError(
                ErrorCode.MODEL_NOT_FOUND,
                f"{self._endpoint_id} was removed while its provider ran this request.",
            )
        attempt = replace(
            attempt, prices=self._prices, retry=_ONCE, service_tiers={}, service_tier=None
        )
        offer = Offer(attempt=attempt, weight=None)
        return Plan(
            attempts=(attempt,),
            next_on=frozenset(),
            cost_max_nano_usd=self.cost_max_nano_usd(
                offer, request, now_s, has_ceiling=self._covers or request.ceiling is not None
            ),
            tokens_max=0,
            catalog_sha=self.catalog.sha,
            trace=survey.trace,
        )
