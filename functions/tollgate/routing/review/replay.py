"""Recorded traffic through two revisions: what moves, what it costs, what is refused.

Keeps sums only, so that memory does not grow with the number of requests.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time

from msgspec import Struct, field

from tollgate.core.activity import DAY_S
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.review.traffic import RecordedRequest
from tollgate.routing.review.verdicts import (
    ReplayPlanner,
    ReplayVerdict,
    Unknown,
    WouldRefuse,
    WouldServe,
)


class Flow(Struct):
    """Some requests, with what they cost before and after."""

    requests: int = 0
    before_nano_usd: int = 0
    after_nano_usd: int = 0

    def add(self, before_nano_usd: int, after_nano_usd: int) -> None:
        """Count one more."""
        self.requests += 1
        self.before_nano_usd += before_nano_usd
        self.after_nano_usd += after_nano_usd


class KeyTraffic(Struct):
    """What one key sent; `affected` of its requests move, cost otherwise, or change sides."""

    name: str
    tiers: set[str | None] = field(default_factory=set)
    requests: int = 0
    affected: int = 0


class Single(Struct, frozen=True):
    """One request, and what it costs before and after."""

    id: str
    asked: str
    before_nano_usd: int
    after_nano_usd: int

    @property
    def rise_nano_usd(self) -> int:
        """How much more it costs."""
        return self.after_nano_usd - self.before_nano_usd


class TrafficReplay(Struct):
    """What two revisions make of the same requests.

    `served` are those that both serve. Of these, `moves` are by the name that was asked for and
    the endpoints before and after, `repriced` by the endpoint that they stay at. `refused` are
    served before only, by name and error, `admitted` after only. `undecided` are by the metadata
    that their records lack; they count nowhere else. `as_recorded` counts those that the base
    serves as they were served then, to the nano-dollar; `unplanned` are records that the sweeper
    wrote, of which nothing is known. `later` is what both serve, made again on a day to come.
    """

    requests: int = 0
    unplanned: int = 0
    as_recorded: int = 0
    recorded_nano_usd: int = 0
    first_s: int = 0
    last_s: int = 0
    served: Flow = field(default_factory=Flow)
    moves: dict[tuple[str, str, str], Flow] = field(default_factory=dict)
    repriced: dict[str, Flow] = field(default_factory=dict)
    refused: dict[tuple[str, str], Flow] = field(default_factory=dict)
    admitted: dict[str, Flow] = field(default_factory=dict)
    undecided: dict[tuple[str, ...], Flow] = field(default_factory=dict)
    later: dict[date, Flow] = field(default_factory=dict)
    refused_by_both: int = 0
    asked_first: Counter[str] = field(default_factory=Counter)
    keys: dict[str, KeyTraffic] = field(default_factory=dict)
    dearest_before: Single | None = None
    dearest_after: Single | None = None
    worst: Single | None = None

    @property
    def moved(self) -> int:
        """How many requests go elsewhere."""
        return sum(flow.requests for flow in self.moves.values())

    @property
    def changes_anything(self) -> bool:
        """Whether a request goes elsewhere, costs otherwise, or is served by one side only."""
        return bool(self.moves or self.repriced or self.refused or self.admitted)

    def note(self, request: RecordedRequest, before: ReplayVerdict, after: ReplayVerdict) -> None:
        """Count one request."""
        self.requests += 1
        self.recorded_nano_usd += request.cost_nano_usd
        self.first_s = min(self.first_s or request.created_s, request.created_s)
        self.last_s = max(self.last_s, request.created_s)
        self.as_recorded += _is_as_recorded(request, before)
        key = self.keys.setdefault(request.key_id, KeyTraffic(request.key_name))
        key.requests += 1
        key.tiers.add(request.trace.tier)
        key.affected += self._is_affected(request, before, after)

    def _is_affected(
        self, request: RecordedRequest, before: ReplayVerdict, after: ReplayVerdict
    ) -> bool:
        asked = request.trace.requested_model
        match before, after:
            case (Unknown(metadata), _) | (_, Unknown(metadata)):
                cost = request.cost_nano_usd
                self.undecided.setdefault(metadata, Flow()).add(cost, cost)
                return False
            case WouldServe(), WouldServe():
                self._note_cost(request.id, asked, before, after)
                return self._is_changed(asked, before, after)
            case WouldServe(), WouldRefuse(code):
                flow = self.refused.setdefault((asked, code.value), Flow())
                flow.add(before.cost_nano_usd, 0)
                self.asked_first[before.endpoint] += 1
                return True
            case WouldRefuse(), WouldServe():
                self.admitted.setdefault(asked, Flow()).add(0, after.cost_nano_usd)
                return True
            case _:
                self.refused_by_both += 1
                return False

    def _note_cost(self, id_: str, asked: str, before: WouldServe, after: WouldServe) -> None:
        self.asked_first[before.endpoint] += 1
        self.served.add(before.cost_nano_usd, after.cost_nano_usd)
        single = Single(id_, asked, before.cost_nano_usd, after.cost_nano_usd)
        if not self.dearest_before or single.before_nano_usd > self.dearest_before.before_nano_usd:
            self.dearest_before = single
        if not self.dearest_after or single.after_nano_usd > self.dearest_after.after_nano_usd:
            self.dearest_after = single
        if single.rise_nano_usd > (self.worst.rise_nano_usd if self.worst else 0):
            self.worst = single

    def _is_changed(self, asked: str, before: WouldServe, after: WouldServe) -> bool:
        if before.endpoint != after.endpoint:
            place = (asked, before.endpoint, after.endpoint)
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
    """What two catalogs make of recorded requests, read one by one, and would on days to come."""
    counted = TrafficReplay(later={day: Flow() for day in days})
    judge_before, judge_after = ReplayPlanner(base), ReplayPlanner(head)
    for request in requests:
        if not request.trace.requested_model:
            counted.unplanned += 1
            continue
        before = judge_before.verdict(request)
        after = before if base.sha == head.sha else judge_after.verdict(request)
        counted.note(request, before, after)
        for day, flow in counted.later.items():
            when_s = _same_time_on(day, request.created_s)
            before = judge_before.verdict(request, when_s=when_s)
            after = judge_after.verdict(request, when_s=when_s)
            if isinstance(before, WouldServe) and isinstance(after, WouldServe):
                flow.add(before.cost_nano_usd, after.cost_nano_usd)
    return counted


def _same_time_on(day: date, created_s: int) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp()) + created_s % DAY_S


def _is_as_recorded(request: RecordedRequest, verdict: ReplayVerdict) -> bool:
    served = (request.model, request.provider_name, request.upstream_model)
    return (
        isinstance(verdict, WouldServe)
        and served == (verdict.model, verdict.provider, verdict.upstream)
        and request.cost_nano_usd == verdict.cost_nano_usd
    )
