"""Replays recorded traffic with two revisions, and counts moves, costs and refusals."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date

from msgspec import Struct, field

from tollgate.core.clock import DAY_S
from tollgate.core.service_tiers import BATCH_TIER
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.review.cached_prompts import (
    CachedPrompts,
    ReplayedTurn,
    estimate_cached,
    turn_of,
)
from tollgate.routing.review.traffic import RecordedRequest
from tollgate.routing.review.verdicts import (
    ReplayPlanner,
    ReplayVerdict,
    Unknown,
    WouldRefuse,
    WouldServe,
)
from tollgate.routing.scalars import midnight_s


class Flow(Struct):
    """The number of requests, and their cost under each revision."""

    requests: int = 0
    before_nano_usd: int = 0
    after_nano_usd: int = 0

    def add(self, before_nano_usd: int, after_nano_usd: int) -> None:
        """Add one request with its costs."""
        self.requests += 1
        self.before_nano_usd += before_nano_usd
        self.after_nano_usd += after_nano_usd


class KeyTraffic(Struct):
    """The number of requests made with one key, in total and affected by the change."""

    name: str
    tiers: set[str | None] = field(default_factory=set)
    requests: int = 0
    affected: int = 0
    """Requests that move, change in cost, or are served under only one revision."""


class CostedRequest(Struct, frozen=True):
    """A request with its cost under each revision."""

    id: str
    requested: str
    before_nano_usd: int
    after_nano_usd: int

    @property
    def rise_nano_usd(self) -> int:
        """The increase in cost."""
        return self.after_nano_usd - self.before_nano_usd


class TrafficReplay(Struct):
    """The outcomes of the same requests under two revisions, `base` and `head`."""

    requests: int = 0
    unplanned: int = 0
    """Records written by the sweeper, which do not contain the request and so cannot be planned."""
    as_recorded: int = 0
    """Requests that the base revision serves at the recorded endpoint for exactly the recorded
    cost.
    """
    recorded_nano_usd: int = 0
    """Recorded cost of all requests."""
    first_s: int = 0
    last_s: int = 0
    served: Flow = field(default_factory=Flow)
    """Requests that are served under both revisions."""
    moves: dict[tuple[str, str, str], Flow] = field(default_factory=dict)
    """Requests in `served` that move, keyed by requested name, old endpoint and new endpoint."""
    repriced: dict[str, Flow] = field(default_factory=dict)
    """Requests in `served` that change only in cost, keyed by endpoint."""
    refused: dict[tuple[str, str], Flow] = field(default_factory=dict)
    """Requests that only the base revision serves, keyed by requested name and error."""
    admitted: dict[str, Flow] = field(default_factory=dict)
    """Requests that only the head revision serves, keyed by requested name."""
    undecided: dict[tuple[str, ...], Flow] = field(default_factory=dict)
    """Requests that cannot be predicted, keyed by the metadata that a rule reads but the record
    does not have.
    """
    later: dict[date, Flow] = field(default_factory=dict)
    """Requests that are served under both revisions on a later day, at that day's prices."""
    batched: Flow = field(default_factory=Flow)
    """Requests that the head's providers could run in batches, and their cost with and without."""
    shadows: dict[str, Flow] = field(default_factory=dict)
    """Cost of the shadows' answers under each revision, keyed by route. A request counts if either
    revision draws it."""
    cached: CachedPrompts = CachedPrompts()
    """Prompt tokens that providers would have cached under each revision."""
    refused_by_both: int = 0
    first_endpoints: Counter[str] = field(default_factory=Counter)
    """Number of requests, keyed by the endpoint that is tried first under the base revision."""
    fees: Counter[str] = field(default_factory=Counter)
    """Number of requests that were billed a fee, such as for tool runs or document pages, keyed by
    fee.
    """
    presets: Counter[str] = field(default_factory=Counter)
    """Number of requests by their preset."""
    keys: dict[str, KeyTraffic] = field(default_factory=dict)
    dearest_before: CostedRequest | None = None
    dearest_after: CostedRequest | None = None
    worst: CostedRequest | None = None

    @property
    def moved(self) -> int:
        """The number of requests whose endpoint changes."""
        return sum(flow.requests for flow in self.moves.values())

    @property
    def changes_anything(self) -> bool:
        """True if any request moves, changes in cost, or is served under only one revision."""
        return bool(self.moves or self.repriced or self.refused or self.admitted)

    @property
    def days(self) -> float:
        """The time from the first to the last request in days, at least one."""
        return max(1.0, (self.last_s - self.first_s) / DAY_S)

    def note_shadows(self, before: tuple[str, int] | None, after: tuple[str, int] | None) -> None:
        """Count the shadow of a request under both revisions."""
        old, new = (dict([each]) if each else {} for each in (before, after))
        for route in old | new:
            self.shadows.setdefault(route, Flow()).add(old.get(route, 0), new.get(route, 0))

    def note(self, request: RecordedRequest, before: ReplayVerdict, after: ReplayVerdict) -> None:
        """Count a request with its outcomes under both revisions."""
        self.requests += 1
        self.recorded_nano_usd += request.cost_nano_usd
        self.first_s = min(self.first_s or request.created_s, request.created_s)
        self.last_s = max(self.last_s, request.created_s)
        self.as_recorded += _is_as_recorded(request, before)
        self.fees.update({fee.item for fee in request.fees})
        if request.trace.preset is not None:
            self.presets[request.trace.preset] += 1
        key = self.keys.setdefault(request.key_id, KeyTraffic(request.key_name))
        key.requests += 1
        key.tiers.add(request.trace.tier)
        if isinstance(after, WouldServe) and request.service_tier != BATCH_TIER:
            self._note_batched(after)
        key.affected += self._is_affected(request, before, after)

    def _is_affected(
        self, request: RecordedRequest, before: ReplayVerdict, after: ReplayVerdict
    ) -> bool:
        name = request.trace.requested_model
        match before, after:
            case (Unknown(metadata), _) | (_, Unknown(metadata)):
                cost = request.cost_nano_usd
                self.undecided.setdefault(metadata, Flow()).add(cost, cost)
                return False
            case WouldServe(), WouldServe():
                self._note_cost(request.id, name, before, after)
                return self._is_changed(name, before, after)
            case WouldServe(), WouldRefuse(code):
                flow = self.refused.setdefault((name, code.value), Flow())
                flow.add(before.cost_nano_usd, 0)
                self.first_endpoints[before.endpoint] += 1
                return True
            case WouldRefuse(), WouldServe():
                self.admitted.setdefault(name, Flow()).add(0, after.cost_nano_usd)
                return True
            case _:
                self.refused_by_both += 1
                return False

    def _note_batched(self, served: WouldServe) -> None:
        if served.batched_nano_usd is not None:
            self.batched.add(served.cost_nano_usd, served.batched_nano_usd)

    def _note_cost(self, id_: str, name: str, before: WouldServe, after: WouldServe) -> None:
        self.first_endpoints[before.endpoint] += 1
        self.served.add(before.cost_nano_usd, after.cost_nano_usd)
        single = CostedRequest(id_, name, before.cost_nano_usd, after.cost_nano_usd)
        if not self.dearest_before or single.before_nano_usd > self.dearest_before.before_nano_usd:
            self.dearest_before = single
        if not self.dearest_after or single.after_nano_usd > self.dearest_after.after_nano_usd:
            self.dearest_after = single
        if single.rise_nano_usd > (self.worst.rise_nano_usd if self.worst else 0):
            self.worst = single

    def _is_changed(self, name: str, before: WouldServe, after: WouldServe) -> bool:
        if before.endpoint != after.endpoint:
            place = (name, before.endpoint, after.endpoint)
            flow = self.moves.setdefault(place, Flow())
        elif before.cost_nano_usd != after.cost_nano_usd:
            flow = self.repriced.setdefault(before.endpoint, Flow())
        else:
            return False
        flow.add(before.cost_nano_usd, after.cost_nano_usd)
        return True


def replay_traffic(
    requests: Iterable[RecordedRequest], base: Catalog, head: Catalog, days: Sequence[date] = ()
) -> TrafficReplay:
    """Return the outcomes of recorded requests under two catalogs, and the cost on `days`."""
    counted = TrafficReplay(later={day: Flow() for day in days})
    base_planner, head_planner = ReplayPlanner(base), ReplayPlanner(head)
    turns: list[ReplayedTurn] = []
    for request in requests:
        if not request.trace.requested_model:
            counted.unplanned += 1
            continue
        before = base_planner.predict(request)
        after = before if base.sha == head.sha else head_planner.predict(request)
        counted.note(request, before, after)
        if request.billed and isinstance(before, WouldServe) and isinstance(after, WouldServe):
            turns.append(turn_of(request, before, after, base=base, head=head))
        counted.note_shadows(base_planner.shadow_cost(request), head_planner.shadow_cost(request))
        for day, flow in counted.later.items():
            when_s = midnight_s(day) + request.created_s % DAY_S
            before = base_planner.predict(request, when_s=when_s)
            after = head_planner.predict(request, when_s=when_s)
            if isinstance(before, WouldServe) and isinstance(after, WouldServe):
                flow.add(before.cost_nano_usd, after.cost_nano_usd)
    counted.cached = estimate_cached(turns)
    return counted


def _is_as_recorded(request: RecordedRequest, verdict: ReplayVerdict) -> bool:
    served = (request.model, request.provider_name, request.upstream_model)
    return (
        isinstance(verdict, WouldServe)
        and served == (verdict.model, verdict.provider, verdict.upstream)
        and request.cost_nano_usd == verdict.cost_nano_usd
    )
