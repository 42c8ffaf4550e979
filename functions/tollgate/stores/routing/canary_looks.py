"""Decides whether a candidate catalog breaks its terms.

The hash of a key's id alone decides which catalog serves the key, so keys are assigned at random,
and the test is a permutation test over keys. If the candidate keeps its terms exactly, any other
choice of as many keys is as likely to show the observed difference. The test assumes
nothing about the traffic of a key, which may be large, bursty or always wrong. Each key's figures
on the day before are subtracted from its figures during the canary. The subtracted figures do not
depend on the choice of keys, and the subtraction removes most of the difference between keys.

Looks are at fixed times, so their number is bounded. Each look may raise a false alarm with an
equal part of the stated rate, divided among the terms; the sum of these parts is the stated rate.
"""

from collections.abc import Iterable, Sequence
from math import ceil, comb
from typing import Final

from msgspec import Struct, field

from tollgate.core.clock import DAY_S
from tollgate.core.ids import SeededDraws
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.canary import LOOK_TIMES_S, Figure, FigureRead, Look, LookState, Terms
from tollgate.core.routing.publication import Publication

# Every instance follows a publication within 30 s, so looks skip the minute after the publication.
SETTLES_S: Final = 60
BEFORE_S: Final = DAY_S
# Lowest product of the number of shuffles and the rate of false alarms of one look and term.
_SHUFFLES_AT_RATE: Final = 4
# Lowest product of the number of choices of keys and that rate at which an alarm is possible.
_CHOICES_AT_RATE: Final = 2
_P95: Final = 0.95
# From this number of requests on the day before, a key's own figures outweigh those of all keys.
_USUAL_COUNT: Final = 20
_NANO: Final = 1_000_000_000


class Traffic(Struct, kw_only=True):
    """The requests of one key in a period."""

    requests: int = 0
    answers: int = 0
    """Requests without an error."""
    errors: int = 0
    refusals: int = 0
    cost_nano_usd: int = 0
    first_token_ms: list[int] = field(default_factory=list)

    def add(self, record: GenerationRecord) -> None:
        """Count a request."""
        refused = record.finish == "content_filter" or record.error == "content_filter"
        failed = record.outcome in ("error", "lost") and not refused
        self.requests += 1
        self.errors += failed
        self.refusals += refused
        if not failed:
            self.answers += 1
            self.cost_nano_usd += record.cost_nano_usd
        if record.first_token_ms is not None:
            self.first_token_ms.append(record.first_token_ms)


class CanaryKey(Struct, frozen=True, kw_only=True):
    """A key during a canary, with its traffic."""

    on_candidate: bool
    before: Traffic
    """Traffic on the day before the publication, by whichever catalogs it was served."""
    since: Traffic
    """Traffic since the publication, by the key's catalog."""


class _Sum(Struct, frozen=True):
    """A key's part of a figure: the sum of a quantity over `count` requests."""

    total: float
    count: int


def due_look(publication: Publication, now_s: float) -> int | None:
    """Return the number of the latest look that is due; None without terms or a due look."""
    if publication.terms is None or publication.candidate is None:
        return None
    elapsed_s = now_s - publication.moved_s
    return sum(elapsed_s >= due_s for due_s in LOOK_TIMES_S) or None


def group_by_key(
    records: Iterable[GenerationRecord], publication: Publication, into: dict[str, CanaryKey]
) -> None:
    """Add requests to the traffic of their keys, except those that another catalog served.

    Answers from the cache are left out, because a new catalog begins with an empty cache. Shadow
    generations are left out, because no caller receives them.
    """
    for record in records:
        sha = publication.sha_for(record.key_id)
        is_since = record.created_s >= publication.moved_s
        is_ordinary = record.reused is None and record.shadow is None
        if not is_ordinary or (is_since and record.catalog_sha != sha):
            continue
        key = into.get(record.key_id)
        if key is None:
            on_candidate = sha == publication.candidate
            key = CanaryKey(on_candidate=on_candidate, before=Traffic(), since=Traffic())
            into[record.key_id] = key
        (key.since if is_since else key.before).add(record)


def look_at(
    publication: Publication,
    terms: Terms,
    traffic: Sequence[CanaryKey],
    *,
    number: int,
    now_s: float,
) -> Look:
    """Return the result of a look; the same traffic always has the same result."""
    active = [key for key in traffic if key.since.requests]
    tried = [key.since for key in active if key.on_candidate]
    others = [key.since for key in active if not key.on_candidate]
    rate = terms.false_alarms_percent / 100 / len(LOOK_TIMES_S) / len(terms.worse_percent)
    figures: dict[Figure, FigureRead] = {}
    broken: Figure | None = None
    for figure, worse_percent in terms.worse_percent.items():
        draws = SeededDraws(f"{publication.candidate} {number} {figure}")
        sums = _subtract_before(figure, worse_percent, active)
        p = _chance(sums, len(tried), draws, rate=rate)
        figures[figure] = FigureRead(
            live=_read(figure, others), candidate=_read(figure, tried), p=p
        )
        if broken is None and p is not None and p <= rate:
            broken = figure
    state: LookState
    if not tried or not others:
        state = "no_traffic"
    elif broken is not None:
        state = "broken"
    else:
        choices = comb(len(active), len(tried))
        state = "kept" if choices * rate >= _CHOICES_AT_RATE else "too_few_keys"
    return Look(
        revision=publication.revision,
        number=number,
        at_s=int(now_s),
        state=state,
        requests=sum(key.requests for key in tried),
        live_requests=sum(key.requests for key in others),
        keys=len(tried),
        live_keys=len(others),
        figures=figures,
        broken=broken,
    )


def _subtract_before(figure: Figure, worse_percent: float, keys: Sequence[CanaryKey]) -> list[_Sum]:
    """Return each key's part of a figure, minus its part on the day before.

    The candidate's keys come first, and their parts are reduced by what the terms allow.
    """
    allowed = worse_percent / 100
    factor = 1 + allowed if figure in ("first_token_p95", "cost") else 1.0
    slower_than_ms = _slow_limit(keys, factor)
    before = [_sum(figure, key.before, slower_than_ms) for key in keys]
    usual = sum(part.total for part in before) / max(1, sum(part.count for part in before))
    sums = []
    for key, part in sorted(zip(keys, before, strict=True), key=lambda it: not it[0].on_candidate):
        # A key with few requests on the day before is expected to be like the others.
        expected = (part.total + _USUAL_COUNT * usual) / (part.count + _USUAL_COUNT)
        if key.on_candidate and factor == 1:
            expected += allowed
        since = _sum(figure, key.since, slower_than_ms, factor if key.on_candidate else 1.0)
        sums.append(_Sum(since.total - since.count * expected, since.count))
    return sums


def _slow_limit(keys: Sequence[CanaryKey], factor: float) -> float:
    """Return the 95th percentile of first-token times on the day before, or else since then."""
    before = [ms for key in keys for ms in key.before.first_token_ms]
    return _quantile(before) or _quantile(
        [
            ms / (factor if key.on_candidate else 1.0)
            for key in keys
            for ms in key.since.first_token_ms
        ]
    )


def _chance(sums: Sequence[_Sum], tried: int, draws: SeededDraws, *, rate: float) -> float | None:
    """Return the share of random choices of keys that differ as much as the first `tried` keys.

    The shuffles end as soon as this probability certainly exceeds `rate`. None if these keys are
    not worse, or if one of the catalogs served nothing.
    """
    total, count = sum(part.total for part in sums), sum(part.count for part in sums)
    seen = _difference(sums[:tried], total, count)
    if seen is None or seen <= 0:
        return None
    as_large, shuffles = 1, ceil(_SHUFFLES_AT_RATE / rate)
    for number in range(1, shuffles + 1):
        drawn = _difference(draws.choose(sums, tried), total, count)
        # A draw without a difference counts against the alarm, like a draw with a large one.
        as_large += drawn is None or drawn >= seen - abs(seen) * 1e-9
        if as_large > rate * (shuffles + 1):
            return as_large / (number + 1)
    return as_large / (shuffles + 1)


def _difference(tried: Sequence[_Sum], total: float, count: int) -> float | None:
    """Return the mean over some keys minus the mean over the others."""
    tried_total = sum(part.total for part in tried)
    tried_count = sum(part.count for part in tried)
    if tried_count in (0, count):
        return None
    return tried_total / tried_count - (total - tried_total) / (count - tried_count)


def _sum(figure: Figure, traffic: Traffic, slower_than_ms: float = 0, factor: float = 1.0) -> _Sum:
    """Return a key's part of a figure; costs and times are divided by `factor`."""
    match figure:
        case "errors":
            return _Sum(traffic.errors, traffic.requests)
        case "refusals":
            return _Sum(traffic.refusals, traffic.requests)
        case "cost":
            return _Sum(traffic.cost_nano_usd / _NANO / factor, traffic.answers)
        case "first_token_p95":
            slow = sum(ms / factor > slower_than_ms for ms in traffic.first_token_ms)
            return _Sum(slow, len(traffic.first_token_ms))


def _read(figure: Figure, keys: Sequence[Traffic]) -> float:
    """Return a figure over all requests of some keys: percent, milliseconds or dollars."""
    if figure == "first_token_p95":
        return _quantile([ms for key in keys for ms in key.first_token_ms])
    sums = [_sum(figure, key) for key in keys]
    mean = sum(part.total for part in sums) / max(1, sum(part.count for part in sums))
    return mean if figure == "cost" else mean * 100


def _quantile(times: Sequence[float]) -> float:
    return sorted(times)[ceil(_P95 * len(times)) - 1] if times else 0.0
