"""Encodes the lines of a piece for a provider's own batches."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from tollgate.core.clock import Deadline
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError
from tollgate.core.limits import TierLimits
from tollgate.core.work.base import InputWork
from tollgate.engine.admission import budget_left_percent
from tollgate.engine.batches.batch_endpoints import find_batch_endpoint
from tollgate.engine.batches.line_run import LineRun
from tollgate.engine.batches.lines import BatchLine
from tollgate.engine.choices import encode_attempt
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.gateway import Call
from tollgate.engine.generate import planning_request
from tollgate.providers.ports.base import Provider, WireRequest
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.price import PriceSchedule


class _Wires(Protocol):
    @property
    def wires(self) -> tuple[WireRequest, ...]:
        """The requests of one attempt."""


# Imported with the first work other than chat.
_ENCODE_WORK: Final = DottedName[Callable[[Provider, Attempt, InputWork], _Wires]](
    "tollgate.engine.work.batches:encode_work"
)


class EncodedLine(Struct, frozen=True, kw_only=True):
    """A line as its provider gets it."""

    line: BatchLine
    wire: WireRequest
    bound_nano_usd: int
    """The highest cost of the line at the price of the provider's batches."""


class LineEncoding:
    """Encodes lines for one endpoint; leaves out those that do not fit into one batch.

    The gateway runs the lines that are left out.
    """

    def __init__(self, run: LineRun, endpoint_id: str) -> None:
        self._run = run
        self._endpoint_id = endpoint_id
        self._left_percent = budget_left_percent(run.parser.gateway, run.parser.principal)
        self._offered: Attempt | None = None
        self._planner: BatchPlanner | None = None
        self.prices: PriceSchedule | None = None
        """The prices of the provider's batches; None until a line is encoded."""
        self.lines_min = 1
        """The smallest number of lines that the provider accepts."""
        self.tier: TierLimits | None = None
        """The limits of the key's tier."""
        self.models: tuple[str, ...] = ()
        """The model of the lines."""
        self.lines: list[EncodedLine] = []

    def add(self, lines: Sequence[BatchLine]) -> None:
        """Encode lines; a refused line is left out, so its result will have the error."""
        for line in lines:
            try:
                self._add(line)
            except GatewayError:
                continue

    def _add(self, line: BatchLine) -> None:
        parser, gateway = self._run.parser, self._run.parser.gateway
        call = parser.call(
            parser.parse(line),
            gateway.ids.new_id(),
            deadline=Deadline.within(gateway.clock, 0),
            batch_id=self._run.batch.id,
        )
        now_s = gateway.clock.now_s()
        request = planning_request(call, budget_left_percent=self._left_percent)
        plan = gateway.planner.plan(request, now_s=now_s)
        if find_batch_endpoint(gateway, call, plan) != self._endpoint_id:
            return
        planner = self._planner_for(plan.attempts[0])
        if planner is None:
            return
        self.tier, self.models = plan.tier, plan.models[:1]
        planned = planner.plan(request, now_s=now_s)
        wires = self._encode(call, planned.attempts[0])
        if len(wires) != 1 or not self._fits(wires[0]):
            return
        self.lines.append(
            EncodedLine(line=line, wire=wires[0], bound_nano_usd=planned.cost_max_nano_usd)
        )

    def _planner_for(self, offered: Attempt) -> BatchPlanner | None:
        """Return the planner at the price of batches; None if the line has another price."""
        gateway, principal = self._run.parser.gateway, self._run.parser.principal
        prices = offered.batch_prices
        if self._offered is None and offered.batch is not None and prices is not None:
            self._offered, self.prices = offered, prices
            self.lines_min = offered.batch.limits.requests_min
            # No hold is topped up while the provider runs the lines.
            covers = (principal.admission or gateway.admission) == "covered"
            self._planner = BatchPlanner(
                gateway.planner.catalog, self._endpoint_id, prices, covers=covers
            )
        is_same = self._offered is not None and offered.prices == self._offered.prices
        return self._planner if is_same else None

    def _fits(self, wire: WireRequest) -> bool:
        if wire.form or wire.is_raw:
            return False
        first = self.lines[0].wire if self.lines else wire
        return (wire.path, wire.headers) == (first.path, first.headers)

    def _encode(self, call: Call, attempt: Attempt) -> Sequence[WireRequest]:
        gateway, work = self._run.parser.gateway, call.parsed.request
        provider = gateway.providers.provider(attempt.target.provider, call.principal)
        if isinstance(work, InputWork):
            return _ENCODE_WORK()(provider, attempt, work).wires
        media = RequestMedia(gateway.media, work, gateway.files, gateway.computations(call))
        if not media.is_whole_for(attempt.target):
            return ()
        return encode_attempt(provider, attempt, work).wires
